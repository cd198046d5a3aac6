"""Parquet files without field ids (SPEC rules 54, 58-63, 260)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spark_read_model import file_row, plan_of

from frazil.errors import UnsupportedError
from frazil.format import types as I
from frazil.format.new_table import new_table_metadata
from frazil.format.schema import Schema
from frazil.format.schema.name_mapping import NameMapping
from frazil.spark.files.projection import project
from frazil.spark.read.dataframe import PlannedRead
from frazil.spark.read.prepared import ReadRequest
from frazil.spark.session.facts import prepare_session
from frazil.spark.types import SparkTypeSupport
from frazil.storage.files import FileIO

POINT = I.StructType((I.NestedField(4, "x", I.LongType()), I.NestedField(5, "gone", I.LongType())))
SCHEMA = Schema(
    (
        I.NestedField(2, "number", I.LongType()),
        I.NestedField(1, "name", I.StringType()),
        I.NestedField(3, "points", I.ListType(6, POINT)),
        I.NestedField(9, "added", I.IntegerType(), initial_default=7),
    )
)
MAPPING = [
    {"field-id": 1, "names": ["who", "name"]},
    {"field-id": 2, "names": ["n.o"]},
    {
        "field-id": 3,
        "names": ["pts"],
        "fields": [
            {"field-id": 6, "names": ["element"], "fields": [{"field-id": 4, "names": ["px"]}]}
        ],
    },
]


def dataframe(spark: Any, path: Path, mapping: NameMapping | None) -> Any:
    prepare_session(spark)
    return (
        PlannedRead.of(
            spark,
            plan_of(SCHEMA, [file_row(0, path, 2)]),
            ReadRequest(
                projection=project(SCHEMA, None), support=SparkTypeSupport(), mapping=mapping
            ),
            metadata=new_table_metadata(SCHEMA, location="file:///t", format_version=3),
            io=FileIO(),
        )
        .prepared()
        .frame()
    )


def test_a_name_mapping_at_every_level(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    data = {
        "pts": [[{"px": 1, "other": "a"}], None],
        "unmapped": [True, False],
        "n.o": pa.array([5, 6], pa.int32()),
        "who": ["x", "y"],
    }
    pq.write_table(pa.table(data), path)
    df = dataframe(spark, path, NameMapping.from_json(MAPPING))
    assert df.columns == ["number", "name", "points", "added"]
    assert sorted(df.collect()) == [(5, "x", [(1, None)], 7), (6, "y", None, 7)]
    assert df.where("number = 6 and name = 'y'").count() == 1


def test_positions_without_a_mapping(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"p": ["x", "y"], "q": pa.array([5, 6], pa.int64())}), path)
    df = dataframe(spark, path, None)
    assert sorted(df.collect()) == [(5, "x", None, 7), (6, "y", None, 7)]


def test_nested_columns_of_other_names_need_a_mapping(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": ["x"], "b": [5], "c": [[{"z": 1}]]}), path)
    with pytest.raises(UnsupportedError, match="name mapping"):
        dataframe(spark, path, None)
