"""Initial defaults of columns that files lack (SPEC rules 30, 39-41, 55), looked at or trusted."""

from __future__ import annotations

import datetime as dt
import math
import shutil
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spark_read_model import file_row, plan_of, with_id

from ci_share import only_in_soak
from frazil.format import types as I
from frazil.format.new_table import new_table_metadata
from frazil.format.schema import Schema
from frazil.spark.files import file_layouts as survey
from frazil.spark.files.projection import project
from frazil.spark.read.reader import TableReader
from frazil.spark.session.facts import type_support
from frazil.spark.types import type_to_spark
from frazil.storage.files import FileIO

KEY = uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")
UTC_MOMENT = dt.datetime(2017, 11, 16, 22, 31, 8, 1)
MICROS = 1_510_871_468_000_001
DEFAULTS: list[tuple[I.IcebergType, Any, Any]] = [
    (I.BooleanType(), True, True),
    (I.IntegerType(), -7, -7),
    (I.LongType(), 2**40, 2**40),
    (I.FloatType(), 0.5, 0.5),
    # A float's decimal text is of a double that no float equals: the nearest one is meant.
    (I.FloatType(), 0.34234, 0.34233999252319336),
    (I.FloatType(), -math.inf, -math.inf),
    (I.DoubleType(), -1e300, -1e300),
    (I.DoubleType(), math.inf, math.inf),
    (I.DecimalType(9, 2), Decimal("-14.20"), Decimal("-14.20")),
    (
        I.DecimalType(38, 3),
        Decimal("12345678901234567890.123"),
        Decimal("12345678901234567890.123"),
    ),
    (I.DateType(), 17_486, dt.date(2017, 11, 16)),
    (I.TimeType(), 81_068_000_001, 81_068_000_001),
    (I.TimestampType(), MICROS, UTC_MOMENT),
    (I.TimestampNanoType(), MICROS * 1000 + 5, MICROS * 1000 + 5),
    (I.StringType(), "it's \\ ü", "it's \\ ü"),
    (I.UUIDType(), KEY, str(KEY)),
    (I.FixedType(2), b"\x00\xff", bytearray(b"\x00\xff")),
    (I.BinaryType(), b"", bytearray(b"")),
]
SCHEMA = Schema(
    (
        I.NestedField(1, "id", I.LongType()),
        *(
            I.NestedField(10 + place, f"c{place}", kind, initial_default=value)
            for place, (kind, value, _) in enumerate(DEFAULTS)
        ),
    )
)
STRUCT = I.StructType(
    (
        I.NestedField(3, "x", I.LongType()),
        I.NestedField(4, "y", I.LongType(), initial_default=0),
    )
)


def read(spark: Any, schema: Schema, *paths: Path) -> list[tuple[Any, ...]]:
    files = [file_row(ordinal, path, 1) for ordinal, path in enumerate(paths)]
    location = f"file://{paths[0].parent}"
    made = new_table_metadata(Schema((I.NestedField(1, "id", I.LongType()),)), location=location)
    support = type_support(spark)
    rows = TableReader(spark, made, FileIO()).rows(plan_of(schema, files), project(schema, None))
    types = [type_to_spark(field.field_type, support=support) for field in schema.fields]
    assert [field.dataType for field in rows.schema] == types
    return sorted((tuple(row) for row in rows.collect()), key=repr)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "a.parquet"
    pq.write_table(pa.table([[1]], schema=pa.schema([with_id("id", pa.int64(), 1)])), made)
    return made


def test_defaults_of_every_type(spark: Any, path: Path) -> None:
    assert read(spark, SCHEMA, path) == [(1, *(value for _, _, value in DEFAULTS))]


def test_defaults_in_files_whose_footers_were_not_read(
    spark: Any, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(survey, "CHECKED_FILES", 1)
    copies = [path, *(Path(shutil.copy(path, path.with_name(name))) for name in ("b.p", "c.p"))]
    plain = [f for f in SCHEMA.fields if not isinstance(f.field_type, survey.NO_NATIVE_DEFAULT)]
    values = [
        value for kind, _, value in DEFAULTS if not isinstance(kind, survey.NO_NATIVE_DEFAULT)
    ]
    assert len(values) > 8
    assert read(spark, Schema(tuple(plain)), *copies) == [(1, *values)] * 3


@pytest.mark.parametrize(
    ("default", "stored", "expected"),
    [
        (None, {"x": 3}, (3, 0)),
        ((), "missing", (None, 0)),
        only_in_soak(None, "missing", None),
        (None, None, None),
    ],
)
def test_defaults_of_fields_in_a_struct(
    spark: Any, tmp_path: Path, default: Any, stored: Any, expected: Any
) -> None:
    schema = Schema(
        (
            I.NestedField(1, "id", I.LongType()),
            I.NestedField(2, "point", STRUCT, initial_default=default),
        )
    )
    fields, columns = [with_id("id", pa.int64(), 1)], [pa.array([1])]
    if stored != "missing":
        kind = pa.struct([with_id("x", pa.int64(), 3)])
        fields.append(with_id("point", kind, 2))
        columns.append(pa.array([stored], kind))
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(columns, schema=pa.schema(fields)), path)
    assert read(spark, schema, path) == [(1, expected)]
