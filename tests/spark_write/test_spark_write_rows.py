"""Rows from pandas, Arrow, Polars and tables: what becomes of each type, and what is refused."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest

from ci_share import one_in
from frazil.errors import SchemaMismatchError, UnsupportedError, ValidationError
from frazil.spark.session.facts import temporary_settings
from frazil.spark.write.rows import rows_of
from frazil.storage.files import local_path

NEW_YEAR = dt.datetime(2024, 1, 1)
# So many digits that a double has not.
LONG = Decimal("12345678901234567890.123456789012345678")


def kinds(df):
    return {field.name: field.dataType.simpleString() for field in df.schema.fields}


def test_pandas(spark):
    frame = pd.DataFrame(
        {
            "whole": pd.array([2**62 + 1, None], dtype="Int64"),
            "real": [1.5, np.nan],
            "text": ["a", None],
            "naive": pd.to_datetime([NEW_YEAR, None]),
            "aware": pd.to_datetime([NEW_YEAR, None]).tz_localize("Europe/Oslo"),
            "kind": pd.Categorical(["x", None]),
            "money": [Decimal("1.10"), None],
            "flag": pd.array([True, None], dtype="boolean"),
            "day": [dt.date(2024, 1, 1), None],
        },
        index=[5, 6],
    )
    # The session's zone has no part in it.
    with temporary_settings(spark, {"spark.sql.session.timeZone": "Asia/Tokyo"}):
        df = rows_of(spark, frame)
        first, second = df.selectExpr("*", "unix_micros(aware) as micros").collect()
    assert kinds(df) == {
        "whole": "bigint", "real": "double", "text": "string", "naive": "timestamp_ntz",
        "aware": "timestamp", "kind": "string", "money": "decimal(3,2)", "flag": "boolean",
        "day": "date",
    }  # fmt: skip
    assert (first["whole"], first["real"], first["naive"]) == (2**62 + 1, 1.5, NEW_YEAR)
    assert first["micros"] == 1_704_063_600_000_000
    assert (first["kind"], first["money"], first["flag"]) == ("x", Decimal("1.10"), True)
    assert set(second) == {None}


def test_nanoseconds_are_never_cut(spark):
    exact = pa.table({"t": pa.array([1_000], pa.timestamp("ns"))})
    finer = pa.table({"t": pa.array([1_001], pa.timestamp("ns", "UTC"))})
    assert kinds(rows_of(spark, exact)) == {"t": "timestamp_ntz"}
    assert rows_of(spark, finer).collect() == [(1_001,)]


def test_arrow(spark):
    columns = {
        "u8": (pa.array([255], pa.uint8()), "smallint", 255),
        "u64": (pa.array([2**64 - 1], pa.uint64()), "decimal(20,0)", Decimal(2**64 - 1)),
        "half": (pa.array([np.float16(1.5)], pa.float16()), "float", 1.5),
        "seconds": (pa.array([NEW_YEAR], pa.timestamp("s")), "timestamp_ntz", NEW_YEAR),
        "time": (pa.array([1_000], pa.time64("ns")), "bigint", 1),
        "coarse": (pa.array([1_000], pa.time32("ms")), "bigint", 1_000_000),
        "fixed": (pa.array([b"ab"], pa.binary(2)), "binary", b"ab"),
        "large": (pa.array(["x"], pa.large_string()), "string", "x"),
        "view": (pa.array(["v"], pa.string_view()), "string", "v"),
        "coded": (pa.array(["q"]).dictionary_encode(), "string", "q"),
        "list": (pa.array([["x", None]], pa.large_list(pa.string())), "array<string>", ["x", None]),
        "map": (pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int32())), "map<string,int>",
                {"a": 1}),
        "struct": (
            pa.array([{"x": 1, "y": NEW_YEAR}],
                     pa.struct([("x", pa.uint16()), ("y", pa.timestamp("ns"))])),
            "struct<x:int,y:timestamp_ntz>", (1, NEW_YEAR)),
        "decimal": (pa.array([LONG], pa.decimal128(38, 18)), "decimal(38,18)", LONG),
        "nothing": (pa.nulls(1), "void", None),
        "uuid": (pa.array([uuid.UUID(int=5).bytes], pa.uuid()), "string", str(uuid.UUID(int=5))),
    }  # fmt: skip
    table = pa.table({name: array for name, (array, _, _) in columns.items()})
    for given in (table, table.to_batches()[0], table.to_reader()):
        df = rows_of(spark, given)
        assert kinds(df) == {name: kind for name, (_, kind, _) in columns.items()}
        (row,) = df.collect()
        assert row.asDict() == {name: value for name, (_, _, value) in columns.items()}


def test_polars(spark):
    frame = pl.DataFrame(
        {
            "whole": [1, None],
            "real": [float("nan"), 1.0],
            "naive": [NEW_YEAR, None],
            "kind": pl.Series(["a", None], dtype=pl.Categorical),
            "list": [[1], None],
            "time": [dt.time(1), None],
        }
    )
    for given in (frame, frame.lazy()):
        df = rows_of(spark, given)
        assert kinds(df) == {
            "whole": "bigint", "real": "double", "naive": "timestamp_ntz", "kind": "string",
            "list": "array<bigint>", "time": "bigint",
        }  # fmt: skip
        first, second = df.collect()
        assert np.isnan(first["real"])
        assert first["time"] == 3_600_000_000
        assert tuple(second) == (None, 1.0, None, None, None, None)
    assert rows_of(spark, frame.head(0)).collect() == []
    assert kinds(rows_of(spark, frame.head(0))) == kinds(rows_of(spark, frame))


@pytest.mark.parametrize(
    "value", [None, 5, "db.t", [(1,)], {"a": [1]}, pd.Series([1]), pl.Series([1]), pl.DataFrame]
)
def test_what_is_no_rows_is_refused(spark, value):
    with pytest.raises(ValidationError, match=r"rows cannot be made of a .*pandas.*Frazil"):
        rows_of(spark, value)


def test_types_that_spark_has_not_are_all_listed(spark):
    table = pa.table({"x": pa.array([1], pa.duration("us")), "ok": [1], "y": pa.array(
        [Decimal(10**40)], pa.decimal256(41, 0))})  # fmt: skip
    with pytest.raises(SchemaMismatchError, match=r"'x' \(duration\[us\]\).*'y' \(decimal256"):
        rows_of(spark, table)
    with pytest.raises(SchemaMismatchError, match="no one type"):
        rows_of(spark, pd.DataFrame({"mixed": [1, "a"]}))


# Columns that no file holds: what they are made of is evaluated as plain Spark would.


FAILING = [
    ("v void", "raise_error('boom') as v"),
    ("v string", "raise_error('boom') as v"),
    ("v struct<a bigint, v void>", "named_struct('a', id, 'v', raise_error('boom')) as v"),
    ("v struct<a bigint, v string>", "named_struct('a', id, 'v', raise_error('boom')) as v"),
    ("v array<struct<a bigint, v void>>",
     "array(named_struct('a', id, 'v', raise_error('boom'))) as v"),
    ("v map<string, struct<a bigint, v void>>",
     "map('k', named_struct('a', id, 'v', raise_error('boom'))) as v"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("column", "expression"), one_in(2, FAILING), ids=[column for column, _ in FAILING]
)
def test_expressions_that_fail_stop_the_write(spark, lake, tmp_path, column, expression):
    table = lake.create_table("db.t", f"id bigint, {column}", format_version=3)
    df = spark.range(3).selectExpr("id", expression)
    with pytest.raises(Exception, match="boom"):
        df.write.format("noop").mode("overwrite").save()
    with pytest.raises(Exception, match="boom"):
        table.append(df)
    assert table.current_snapshot is None
    assert not list(tmp_path.rglob("*.parquet"))
    # Without rows nothing is evaluated.
    table.append(df.where("id < 0"))


def test_nulls_of_any_form_are_written(spark, lake):
    ddl = "id bigint, v void, s struct<a bigint, v void>, l array<struct<a bigint, v void>>, t int"
    table = lake.create_table("db.t", ddl, format_version=3)
    table.append(spark.range(1).selectExpr("id", "null v", "null s", "null l", "null t"))
    table.append(
        spark.range(1, 2).selectExpr(
            "id", "null v", "named_struct('v', null, 'a', id) s",
            "array(named_struct('a', id, 'v', null)) l", "int(id) t",
        )
    )  # fmt: skip
    assert sorted(tuple(row) for row in table.to_df().collect()) == [
        (0, None, None, None, None),
        (1, None, (1, None), [(1, None)], 1),
    ]
    for path in table.scan().plan().files["file_path"]:
        columns = pq.ParquetFile(local_path(path)).schema
        names = {columns.column(index).path for index in range(len(columns))}
        assert names == {"id", "s.a", "l.list.element.a", "t"}


# Columns of variants, on Sparks that know their files and on one that does not.


def test_variants_are_written_and_read_or_refused_by_name(lake, spark):
    """A Parquet reader that does not know the type reads no column of such a file."""
    table = lake.create_table("db.t", "id bigint, v variant", format_version=3)
    rows = spark.sql("""SELECT 1L AS id, parse_json('{"a": 2}') AS v""")
    if pyspark.__version__ >= "4.1":
        table.append(rows)
        assert table.to_df().selectExpr("id", "to_json(v)").collect() == [(1, '{"a":2}')]
        return
    with pytest.raises(UnsupportedError, match=r"type variant: take Spark 4\.1 or newer"):
        table.append(rows)
    assert table.refresh().current_snapshot is None
