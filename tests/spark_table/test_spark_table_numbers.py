"""Numbers as Spark compares them: the same rows in plain DataFrames say what a scan must find."""

import functools
import math
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from table_rows import frame

from ci_share import in_circles, only_in_soak
from frazil.format import types as I
from frazil.format.manifests import DataFile
from frazil.format.schema import Schema
from frazil.format.values import to_bytes

NAN = math.nan
# Files of one kind of value each: what Parquet says of a file is then all that it holds.
FILES = [[-0.0] * 3, [0.0] * 3, [NAN] * 2, [1.0, NAN], [1.0, 1.0], [-3.5, None], [7.0, math.inf]]
PREDICATES = [
    *(f"d {op} {zero}" for op in ("=", "!=", "<", "<=", ">", ">=") for zero in ("0D", "-0D")),
    "d in (0D, 7D)",
    "d not in (0D, 7D)",
    "d in (-0D, 1D, 7D)",
    *(f"d {op} 1D" for op in ("=", "!=", "<", "<=", ">", ">=")),
    "d > 5D",
    "not (d <= 1D)",
    "d not in (1D, 2D)",
    "d = double('NaN')",
    "d >= double('NaN')",
    "d < double('NaN')",
    "d != double('NaN')",
    "isnan(d) or d = 0D",
    "not (d > 5D or d is null)",
]


def foreign_file(table, name, values, *, with_bounds):
    """A file as a writer leaves it that skips NaN in ranges and counts none."""
    folder = table.location.removeprefix("file:")
    path = f"{folder}/data/{name}.parquet"
    fields = [
        pa.field("id", pa.int32(), metadata={"PARQUET:field_id": "1"}),
        pa.field("d", pa.float64(), metadata={"PARQUET:field_id": "2"}),
    ]
    ids = list(range(len(values)))
    rows = pa.table([pa.array(ids, pa.int32()), pa.array(values, pa.float64())], pa.schema(fields))
    pq.write_table(rows, path)
    numbers = [v for v in values if v is not None and not math.isnan(v)]
    bounds = {2: min(numbers)} if numbers and with_bounds else {}
    tops = {2: max(numbers)} if numbers and with_bounds else {}
    size = Path(path).stat().st_size
    return DataFile(
        file_path=path,
        record_count=len(values),
        file_size_in_bytes=size,
        value_counts={2: len(values)},
        null_value_counts={2: values.count(None)},
        lower_bounds={i: to_bytes(I.DoubleType(), v) for i, v in bounds.items()},
        upper_bounds={i: to_bytes(I.DoubleType(), v) for i, v in tops.items()},
    )


def table_of(kind, lake, spark):
    """A table of `FILES`, and its rows as a DataFrame."""
    rows = [(n, value) for n, value in enumerate(v for values in FILES for v in values)]
    start = 0
    if kind == "arrow":
        types = {"i": I.IntegerType(), "d": I.DoubleType(), "u": I.UUIDType()}
        fields = (I.NestedField(n, *item) for n, item in enumerate(types.items(), 1))
        table = lake.create_table("db.t", Schema(tuple(fields)))
    else:
        table = lake.create_table("db.t", "i int, d double")
    if kind == "foreign":
        Path(table.location.removeprefix("file:"), "data").mkdir(parents=True)
    for number, values in enumerate(FILES):
        part = frame(spark, rows[start : start + len(values)], "i int, d double").coalesce(1)
        start += len(values)
        if kind == "foreign":
            file = foreign_file(table, f"f{number}", values, with_bounds=number % 2 == 0)
            table.files.append([file])
        elif kind == "arrow":
            table.append(part.selectExpr("i", "d", "uuid() as u"))
        else:
            table.append(part)
    return table, frame(spark, rows, "i int, d double")


def shown(df):
    """The values of a column, zeros with their signs."""
    return sorted(str(row.d) for row in df.select("d").collect())


ALL = slice(None)
CHOSEN = [
    ("native", slice(0, None, 2)),
    ("arrow", slice(1, None, 2)),
    ("foreign", ALL),
    only_in_soak("native", ALL),
    only_in_soak("arrow", ALL),
]
"""Files that say little of their values are the hardest: CI takes every predicate for them."""


@pytest.mark.parametrize(("kind", "chosen"), in_circles(CHOSEN, test=1), ids=str)
def test_float_predicates_find_the_rows_that_spark_finds(lake, spark, kind, chosen):
    table, plain = table_of(kind, lake, spark)
    predicates = PREDICATES[chosen]
    every = plain.coalesce(1).select("d", *(F.expr(text) for text in predicates)).collect()
    expected = [sorted(str(d) for d, *is_so in every if is_so[n]) for n in range(len(predicates))]
    frames = [table.scan(where=text).to_df().select("d") for text in predicates]
    numbered = [df.select(F.lit(n).alias("n"), "d") for n, df in enumerate(frames)]
    found = [[] for _ in predicates]
    for n, d in functools.reduce(DataFrame.unionAll, numbered).collect():
        found[n].append(str(d))
    for text, mine, wanted in zip(predicates, found, expected, strict=True):
        assert sorted(mine) == wanted, text
    for n in range(0, len(predicates), 1 if kind == "foreign" else 3):
        assert table.scan(where=predicates[n]).count() == len(expected[n]), predicates[n]


@pytest.mark.parametrize(
    "predicate",
    in_circles(
        ["d = 0D", only_in_soak("d < 0D"), only_in_soak("d != 0D"), "d <= 5D", "d not in (0D)"],
        test=1,
    ),
)
def test_an_overwrite_keeps_zeros_and_nan_as_spark_does(lake, spark, predicate):
    required = Schema(
        (
            I.NestedField(1, "d", I.DoubleType(), required=True),
            I.NestedField(2, "u", I.UUIDType()),
        )
    )
    table = lake.create_table("db.t", required)
    rows = frame(spark, [(v,) for v in (-0.0, -0.0, 0.0, NAN, 1.0, 7.0, -1.0)], "d double not null")
    table.append(rows.selectExpr("d", "uuid() as u").coalesce(1))
    table.overwrite(rows.limit(0).selectExpr("d", "uuid() as u"), where=predicate)
    assert shown(table.to_df()) == shown(rows.where(f"not ({predicate})"))


@pytest.mark.check
@pytest.mark.parametrize("kind", [only_in_soak("native"), "arrow"])
def test_comparisons_of_floats_are_pushed_where_no_file_holds_nan(lake, spark, kind):
    table, _ = table_of(kind, lake, spark)
    table.overwrite(table.to_df().limit(0), where="isnan(d)")

    def pushed(where):
        plan = table.scan(where=where).to_df()._jdf.queryExecution().executedPlan().toString()
        return "GreaterThan(d,8.0)" in plan or "GreaterThanOrEqual(d,8.0)" in plan

    assert pushed("d > 8D")
    assert pushed("d >= 8D")


@pytest.mark.check
@pytest.mark.parametrize(
    "values",
    ["nan, 1, 2", only_in_soak("1, nan, 2"), only_in_soak("1, 2, nan"), "null, nan, -1", "nan"],
)
def test_only_files_without_nan_count_none_of_it(lake, spark, values):
    numbers = [None if v == "null" else float(v) for v in values.split(", ")]
    known = [v for v in numbers if v is not None and not math.isnan(v)]
    table = lake.create_table("db.t", "d double, s struct<f: float>")
    for part in (numbers, known, [None]):
        rows = frame(spark, [(v, (v,)) for v in part], "d double, s struct<f: float>")
        table.append(rows.coalesce(1))
    files = table.files().collect()
    assert len(files) == (3 if known else 2)
    for row in files:
        stored = spark.read.parquet(row.file_path)
        has_nan = stored.where("isnan(d)").count() > 0
        assert row.nan_value_counts == ({} if has_nan else {1: 0, 3: 0})


EXACT = Decimal("-1234567890123456789012345678.55")


@pytest.mark.check
def test_decimals_of_38_digits_are_compared_and_overwritten_by_all_their_digits(lake, spark):
    near = [EXACT, Decimal(str(EXACT)[:-1] + "4"), Decimal(str(EXACT)[:-1] + "6"), Decimal(0)]
    rows = spark.createDataFrame(list(enumerate(near)), "id int, d decimal(38,2)").coalesce(1)
    table = lake.create_table("db.t", rows)
    table.append(rows)
    for predicate in (f"d = {EXACT}", f"d > {EXACT}", f"d <= {EXACT}", f"d in ({EXACT}, 0)"):
        found = {row.id for row in table.scan(where=predicate).to_df().collect()}
        assert found == {row.id for row in rows.where(predicate).collect()}, predicate
    table.overwrite(rows.limit(0), where=f"d > {EXACT}")
    assert {row.id for row in table.to_df().collect()} == {0, 2}


def test_a_write_default_of_38_digits_is_written_with_all_of_them(lake, spark):
    table = lake.create_table("db.t", "id int", format_version=3)
    default = "-1234567890123456789012345678.1234567890"
    with table.update_schema() as change:
        change.add_column("c", "decimal(38,10)", default=default)
        change.add_column("e", "decimal(9,9)", default="0.000000001")
    table.append(spark.sql("select 1 id"))
    assert [tuple(row) for row in table.to_df().collect()] == [
        (1, Decimal(default), Decimal("0.000000001"))
    ]
