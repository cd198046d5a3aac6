"""Metadata of files of an earlier spec whose source columns were dropped from the schema."""

import datetime as dt
from dataclasses import replace

import pytest
from table_rows import rows_of

from ci_share import one_of_each
from frazil.cli.format import partition_text
from frazil.spark.metadata_frames.shape import dataframe_of
from frazil.spark.session import costs
from frazil.spark.session.facts import type_support
from frazil.table.inspect.inspector import Inspector
from frazil.table.inspect.schemas import partition_struct_type, partitions_struct

SOURCES = "id int, city string, fare decimal(9,2), ts timestamp, point struct<x:int>"
PARTITIONING = ["city", "truncate(2, city)", "fare", "day(ts)", "bucket(4, id)", "point.x"]
# Of the truncation rule of strings, of the days and of the bucket hash in the specification.
OSLO = ("Oslo", "Os", "12.50", dt.date(2024, 1, 1), 0, 7)
NULLS = (None, None, None, None, None, None)


@pytest.fixture
def dropped(lake, spark):
    made = lake.create_table("db.t", SOURCES, partition_by=PARTITIONING)
    made.append(
        spark.sql(
            "select 1 id, 'Oslo' city, 12.50BD fare, timestamp'2024-01-01 10:00:00' ts,"
            " named_struct('x', 7) point"
        )
    )
    with made.update_spec() as update:
        for field in made.spec.fields:
            update.remove_field(field.name)
    with made.update_schema() as update:
        for name in ("city", "fare", "ts", "point"):
            update.delete_column(name)
    made.append(spark.sql("select 2 id"))
    return made


def partitions_in(df):
    rows = [tuple(row.partition) for row in df.collect()]
    return sorted(
        (
            tuple(str(v) if i == 2 and v is not None else v for i, v in enumerate(row))
            for row in rows
        ),
        key=str,
        reverse=True,
    )


@pytest.mark.parametrize(
    ("name", "place"),
    one_of_each(
        ["files", "all_files", "partitions"], ["driver", "executors"], without=("all_files",)
    ),
)
def test_partitions_have_the_values_that_they_were_made_of(dropped, monkeypatch, name, place):
    if place == "executors":
        monkeypatch.setattr(costs, "DECODED_BYTES", 0)
    assert partitions_in(getattr(dropped.inspect.dataframes, name)()) == [NULLS, OSLO]


def test_entries_manifests_and_position_deletes(dropped):
    entries = dropped.inspect.dataframes.entries().selectExpr("data_file.partition")
    assert partitions_in(entries) == [NULLS, OSLO]
    bounds = [
        [(part.lower_bound, part.upper_bound) for part in row.partition_summaries]
        for row in dropped.inspect.dataframes.manifests().collect()
    ]
    shown = ("Oslo", "Os", "12.50", "2024-01-01", "0", "7")
    assert sorted(bounds) == [[], [(value, value) for value in shown]]
    assert dropped.inspect.dataframes.position_deletes().collect() == []


def test_the_partition_of_a_row(dropped):
    df = dropped.scan(columns=["id", "_partition"]).to_df()
    assert rows_of(df.selectExpr("id", "_partition.city", "_partition.ts_day")) == [
        (1, "Oslo", dt.date(2024, 1, 1)),
        (2, None, None),
    ]


def test_a_source_that_no_schema_knows_is_unknown(dropped, spark):
    """Where metadata keeps no schema that has the column, its partition values are NULL."""
    metadata = replace(dropped.metadata, schemas=(dropped.metadata.schema,))
    found = Inspector(metadata, dropped.metadata_location, dropped.io).partitions()
    columns = partitions_struct(partition_struct_type(metadata))
    rows = partitions_in(dataframe_of(spark, found, columns, type_support(spark)))
    assert set(rows) == {NULLS, (None, None, None, dt.date(2024, 1, 1), 0, None)}


def test_the_command_line_shows_them(dropped):
    first = next(row for row in dropped.inspect.partitions().to_dicts() if row["spec_id"] == 0)
    shown = partition_text(dropped.metadata, 0, first["partition"])
    assert shown == (
        "city=Oslo, city_trunc=Os, fare=12.50, ts_day=2024-01-01, id_bucket=0, point.x=7"
    )
