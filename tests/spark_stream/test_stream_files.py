"""Streams over files that are not plain: deletes, other formats, old schemas, other partitions."""

import sys
from pathlib import Path

import pyarrow as pa
import pytest

from frazil.catalog.static import StaticCatalog
from frazil.errors import ValidationError
from frazil.spark.files.layout.variants import with_variants_apart
from frazil.spark.table import Table
from frazil.storage.moved import MovedFileIO

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "conformance"))
import run as conformance

from ci_share import in_circles

CASES = [
    "impala_iceberg_v2_delete_pos_and_multi_eq_ids",
    "impala_iceberg_v3_deletion_vectors",
    "duckdb_uuid",
]


def expected():
    if not conformance.FIXTURES.is_dir():
        return []
    known = [case for case in conformance.expectations(conformance.FIXTURES) if case.rows]
    return [
        pytest.param(case, id=case.table, marks=[] if case.table in CASES else pytest.mark.soak)
        for case in known
        if case.table not in conformance.NULL_MAPS
    ]


@pytest.mark.parametrize("case", in_circles(expected(), test=1))
def test_the_rows_of_other_engines_tables(spark, fixtures_dir, tmp_path, case):
    """What the table holds, deletes applied, is what a stream begins with."""
    folder = f"file://{fixtures_dir}/{case.path}"
    place = f"{folder}/metadata/{case.metadata}" if case.metadata else folder
    plain = StaticCatalog(place)
    location = plain.load_table(plain.identifier).metadata.location
    io = MovedFileIO(conformance.moved_prefixes(fixtures_dir, case, location))
    catalog = StaticCatalog(place, io=io)
    table = Table(spark, catalog, catalog.load_table(catalog.identifier))
    got = []

    def take(batch, batch_id):
        got.append(with_variants_apart(batch).toArrow())

    df = table.read_stream(checkpoint=tmp_path / "checkpoint")
    writer = df.writeStream.foreachBatch(take).trigger(availableNow=True)
    writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()
    rows = sorted(conformance.plain_rows(table.scan(), pa.concat_tables(got)), key=_order)
    wanted = sorted(case.rows, key=_order)
    assert len(rows) == len(wanted)
    assert all(conformance.same(mine, theirs) for mine, theirs in zip(rows, wanted, strict=True))


def _order(row):
    return conformance._order(row)


@pytest.mark.check
def test_files_older_and_newer_than_the_schema(spark, lake, stream):
    """Columns are found by id; a stream keeps the schema that it was made with."""
    table = lake.create_table("db.t", "id int, name string, gone int", format_version=3)
    table.append(spark.createDataFrame([(1, "a", 7)], "id int, name string, gone int"))
    with table.update_schema() as change:
        change.rename_column("name", "label")
        change.delete_column("gone")
        change.update_column("id", "long")
        change.add_column("name", "string", default="x")
        change.move_first("name")
    table.append(spark.createDataFrame([("n", 2, "b")], "name string, id long, label string"))
    assert stream.drain() == [("n", 2, "b"), ("x", 1, "a")]
    df = stream.read()
    with table.update_schema() as change:
        change.rename_column("label", "name2")
        change.add_column("later", "int")
    table.append(spark.createDataFrame([("m", 3, "c", 9)], table.to_df().schema))
    assert stream.drain(df) == [("m", 3, "c")]
    table.append(spark.createDataFrame([("o", 4, "d", 10)], table.to_df().schema))
    assert stream.drain() == [("o", 4, "d", 10)]
    assert stream.read().columns == ["name", "id", "name2", "later"]


def test_a_promoted_column_asks_for_a_restart(spark, lake, stream):
    table = lake.create_table("db.t", "id int")
    df = stream.read()
    query = stream.start(df, processingTime="0 seconds")
    with table.update_schema() as change:
        change.update_column("id", "long")
    table.append(spark.createDataFrame([(2**40,)], "id long"))
    with pytest.raises(Exception, match="restart the stream"):
        query.awaitTermination(60)
    assert stream.drain() == [(2**40,)]


def test_a_column_of_changes_names_is_told(lake, stream):
    lake.create_table("db.t", "id int, _change_type string")
    with pytest.raises(ValidationError, match="_change_type"):
        stream.read(on_delete="changes")


@pytest.mark.check
def test_partitions_that_evolve(spark, lake, stream):
    ddl = "id bigint, city string"
    table = lake.create_table("db.t", ddl, partition_by=["city"])
    made = lambda i, city: spark.createDataFrame([(i, city)], ddl)  # noqa: E731
    table.append(made(1, "Oslo"))
    assert stream.drain() == [(1, "Oslo")]
    with table.update_spec() as change:
        change.remove_field("city")
        change.add_field("bucket(4, id)")
    table.append(made(2, "a b/c=%41"))
    with table.update_spec() as change:
        change.add_field("city")
    table.append(made(3, "é{}[]"))
    assert stream.drain() == [(2, "a b/c=%41"), (3, "é{}[]")]


def test_a_default_that_spark_cannot_fill_in(spark, lake, stream):
    """Those files are written anew; what they hold stays in order with the others."""
    table = lake.create_table("db.t", "id bigint", format_version=3)
    for i in (1, 2):
        table.append(spark.createDataFrame([(i,)], "id bigint"))
    start = table.metadata.snapshots[0].snapshot_id
    with table.update_schema() as change:
        change.add_column("price", "decimal(9,2)", default="1.50")
    table.append(spark.createDataFrame([(3, None)], "id bigint, price decimal(9,2)"))
    read = stream.drain(from_snapshot_id=start, max_files_per_batch=1)
    assert [(i, None if price is None else str(price)) for i, price in read] == [
        (2, "1.50"),
        (3, None),
    ]
    assert stream.last.sizes == [1, 1]


@pytest.mark.check
def test_a_filter_of_the_query_does_not_meet_another_column(spark, lake, stream):
    """Filters are pushed by name; a file may hold another column of that name."""
    table = lake.create_table("db.t", "a int, b int")
    table.append(spark.createDataFrame([(1, 100)], "a int, b int"))
    df = stream.read()
    with table.update_schema() as change:
        change.rename_column("a", "c")
    with table.update_schema() as change:
        change.rename_column("b", "a")
    table.append(spark.createDataFrame([(1, 100)], "c int, a int"))
    assert stream.drain(df.where("a = 1")) == [(1, 100), (1, 100)]
