"""Columns are found by id: parts of nested ones, renamed ones, those that conditions name."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql import DataFrame

from frazil.catalog.static import StaticCatalog
from frazil.errors import MissingFileError
from frazil.format import types as T
from frazil.format.predicates import bind, parse_predicate, to_spark_sql
from frazil.format.schema import Schema
from frazil.format.values import coerce
from frazil.spark.lake import Lake
from frazil.spark.scan import Scan
from frazil.storage.files import FileIO
from scalar_predicates import keeps

DDL = """id bigint, s struct<x: int, y: int, at: struct<u: int, v: int>>,
    l array<struct<a: int, b: int>>, m map<string, struct<a: int, b: int>>"""


def row(number: int, table: Any) -> str:
    """One row; every value tells its row and, by its last digit, its place."""
    s, at, items, pairs = (
        [field.name for field in table.schema.find_field(name).field_type.fields]
        for name in ("s", "s.at", "l.element", "m.value")
    )
    return (
        f"select {number}L id, named_struct('{s[0]}', {number}1, '{s[1]}', {number}2, 'at', "
        f"named_struct('{at[0]}', {number}3, '{at[1]}', {number}4)) s, "
        f"array(named_struct('{items[0]}', {number}5, '{items[1]}', {number}6)) l, "
        f"map('k', named_struct('{pairs[0]}', {number}7, '{pairs[1]}', {number}8)) m"
    )


def values(df: DataFrame, *expressions: str) -> list[list[Any]]:
    """The values of each expression alone, and then of all together, sorted."""
    alone = [df.selectExpr(f"{n} as n", f"{e} as v") for n, e in enumerate(expressions)]
    found = reduce(DataFrame.unionAll, alone).collect()
    together = df.selectExpr(*(f"{e} as v{n}" for n, e in enumerate(expressions))).collect()
    columns = [sorted(r["v"] for r in found if r["n"] == n) for n in range(len(expressions))]
    assert [sorted(r[f"v{n}"] for r in together) for n in range(len(expressions))] == columns
    return columns


PARTS = ("s.{0}", "s.at.{1}", "l.{2}[0]", "m['k'].{3}")


@pytest.mark.check
@pytest.mark.parametrize("checked", [64, 1], ids=["every footer", "a sample"])
def test_parts_of_renamed_columns(
    lake: Lake, spark: Any, monkeypatch: pytest.MonkeyPatch, checked: int
) -> None:
    monkeypatch.setattr("frazil.spark.files.file_layouts.CHECKED_FILES", checked)
    table = lake.create_table("db.t", DDL)
    table.append(spark.sql(row(1, table)))
    before = [part.format("x", "u", "a", "a") for part in PARTS]
    assert values(table.to_df(), *before) == [[11], [13], [15], [17]]
    with table.update_schema() as update:
        update.rename_column("s.x", "z")
        update.rename_column("s.at.u", "w")
        update.rename_column("l.element.a", "c")
        update.rename_column("m.value.a", "c")
    table.append(spark.sql(row(2, table)))
    inner = [part.format("z", "w", "c", "c") for part in PARTS]
    assert values(table.to_df(), *inner) == [[11, 21], [13, 23], [15, 25], [17, 27]]
    for old, new in (("s.at", "place"), ("s", "t"), ("l", "items"), ("m", "pairs")):
        with table.update_schema() as update:
            update.rename_column(old, new)
    outer = ["t.z", "t.place.w", "items.c[0]", "pairs['k'].c"]
    found = table.to_df()
    assert values(found, *outer) == [[11, 21], [13, 23], [15, 25], [17, 27]]
    assert [r[0] for r in found.where("t.place.w = 13 and t.y = 12").select("id").collect()] == [1]
    assert found.where("t.z is null").count() == 0
    assert values(table.scan(columns=["t.z", "items"]).to_df(), "t.z", "items.b[0]") == [
        [11, 21], [16, 26],
    ]  # fmt: skip


def test_parts_under_names_that_were_others(lake: Lake, spark: Any) -> None:
    table = lake.create_table("db.t", DDL)
    table.append(spark.sql(row(1, table)))
    for old, new in (("x", "tmp"), ("y", "x"), ("tmp", "y")):
        with table.update_schema() as update:
            update.rename_column(f"s.{old}", new)
    with table.update_schema() as update:
        update.delete_column("l.element.a")
    with table.update_schema() as update:
        update.add_column("l.element.a", "int")
    found = table.to_df()
    assert values(found, "s.x", "s.y", "coalesce(l.a[0], 0)", "l.b[0]") == [[12], [11], [0], [16]]
    assert found.where("s.x = 12").count() == 1
    assert values(table.scan(columns=["s.x", "_pos"]).to_df(), "s.x", "_pos") == [[12], [0]]


def test_parts_alone_are_read_where_every_file_has_the_names(lake: Lake, spark: Any) -> None:
    """Reading less is what Spark cuts a schema down for."""
    table = lake.create_table("db.t", DDL)
    table.append(spark.sql(row(1, table)))
    files = table.scan().to_df().select("s.at.u")
    plan = files._jdf.queryExecution().executedPlan().toString()
    assert "ReadSchema: struct<s:struct<at:struct<u:int>>>" in plan


# Scans of tables that PyIceberg made and changed (SPEC rules 44, 52-57, 81).


@pytest.fixture
def catalog(tmp_path: Path) -> SqlCatalog:
    catalog = SqlCatalog("test", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}/w")
    catalog.create_namespace("db")
    return catalog


def scan(spark: Any, table: Any, **options: Any) -> Scan:
    catalog = StaticCatalog(table.metadata_location)
    metadata = catalog.load_table(catalog.identifier).metadata
    return Scan(spark, metadata, FileIO(), **options)


def rows(found: Scan) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, found.to_df().collect()), key=repr)


def people(start: int, count: int = 50) -> pa.Table:
    ids = list(range(start, start + count))
    return pa.table(
        {
            "a": pa.array(ids, pa.int64()),
            "b": pa.array([i + 100_000 for i in ids], pa.int64()),
            "s": pa.array([{"x": i, "y": str(i)} for i in ids]),
        }
    )


@pytest.fixture
def made(catalog: SqlCatalog) -> Any:
    made = catalog.create_table("db.t", schema=people(0).schema)
    made.append(people(0))
    return made


def swap(table: Any, one: str, other: str) -> None:
    for old, new in ((one, "tmp"), (other, one), ("tmp", other)):
        with table.update_schema() as update:
            update.rename_column(old, new)


def test_filters_on_swapped_names_skip_no_row(spark: Any, made: Any) -> None:
    swap(made, "a", "b")
    df = scan(spark, made).to_df()
    assert df.columns == ["b", "a", "s"]
    assert df.where("b = 5").select("a", "b").collect() == [(100_005, 5)]
    assert df.where("a = 100005").count() == 1
    assert rows(scan(spark, made, where="b = 7", columns=["a"])) == [(100_007,)]


@pytest.mark.skipif(
    pyspark.__version__ < "4.1", reason="Spark 4.0 keeps a column's metadata, as the page says"
)
def test_results_carry_no_field_ids_and_can_be_counted_from_metadata(spark: Any, made: Any) -> None:
    found = scan(spark, made)
    assert [field.metadata for field in found.to_df().schema.fields] == [{}, {}, {}]
    assert found.count() == 50
    assert scan(spark, made, where="a >= 0").count() == 50
    assert scan(spark, made, where="a > 10").count() == 39


def test_no_files_is_an_empty_dataframe_of_the_schema(spark: Any, made: Any) -> None:
    found = scan(spark, made, where="a = -5", columns=["s.y", "_partition", "a"])
    assert found.to_df().collect() == []
    assert found.to_df().columns == ["s", "_partition", "a"]
    assert found.to_arrow().num_rows == 0


def test_a_missing_file_is_named_with_its_snapshot(spark: Any, made: Any) -> None:
    (task,) = made.scan().plan_files()
    found = scan(spark, made)
    found.to_df()
    Path(task.file.file_path.removeprefix("file://")).unlink()
    with pytest.raises(MissingFileError, match=str(made.current_snapshot().snapshot_id)) as caught:
        found.to_arrow()
    assert task.file.file_path.rsplit("/", 1)[1] in str(caught.value)


# Spark as the second opinion: filters in generated text keep the rows that `keeps` keeps.


COLUMNS: dict[str, Any] = {
    "i": T.IntegerType(),
    "l": T.LongType(),
    "f": T.FloatType(),
    "g": T.DoubleType(),
    "dec": T.DecimalType(9, 2),
    "d": T.DateType(),
    "ts": T.TimestampType(),
    "tz": T.TimestamptzType(),
    "s": T.StringType(),
    "b": T.BinaryType(),
    "flag": T.BooleanType(),
    "select `x": T.StructType((T.NestedField(101, "a.b", T.IntegerType()),)),
}
GENERATED = (
    "n int, i int, l bigint, f float, g double, dec decimal(9,2), d date, ts timestamp_ntz, "
    "tz timestamp, s string, b binary, flag boolean, `select ``x` struct<`a.b`: int>"
)
SCHEMA = Schema(tuple(T.NestedField(n, c, t) for n, (c, t) in enumerate(COLUMNS.items(), 1)))
NAN = float("nan")
MOMENT = datetime(2024, 1, 1, 12, 30, 0, 5)
# fmt: off
ROWS: list[tuple[Any, ...]] = [
    (0, 0, -0.0, 0.0, Decimal("0.00"), date(1970, 1, 1), MOMENT, MOMENT, "", b"", True, (1,)),
    (-1, 2**40, NAN, NAN, Decimal("-1.20"), date(1969, 12, 31), None, None, "it's",
     b"\xff", False, (None,)),
    (2**31 - 1, -(2**63), 0.1, 0.1, Decimal("1.23"), date(9999, 1, 1), datetime(1960, 1, 1),
     datetime(1960, 1, 1), "a\\b\n\t\x01é😀", b"\x00\x0a", None, None),
    (7, 7, 1.5, float("inf"), Decimal("9999999.99"), date(2024, 1, 1), datetime(2024, 1, 1),
     datetime(2024, 1, 1), "a%_", b"a%", True, (7,)),
    (None,) * 12,
]
# fmt: on
PREDICATES = """
    i < 3000000000 | i = 3.5 | i <= 3.5 | not (i > 6) | i in (0, 7, null) | i not in (7, null)
    i not in (0, 3000000000) | i not between 0 and 6 | i is not null | not (i <=> 7) | i <=> null
    l = -9223372036854775808L | l >= 1099511627776
    f = 0 | f = 0.1 | f = 1.5 | f > 1 | not f > 1 | g = 0.1 | g > 5 | isnan(g)
    not isnan(f) | g != 0
    g <= double('NaN') | g < double('NaN') | g in (1, double('NaN')) | g = double('Infinity')
    dec = 1.23 | dec > 1.225 | dec = -1.2 | dec < 99999999.5 | dec != 0
    d = '2024-01-01' | d < DATE '1970-01-01' | d >= TIMESTAMP_NTZ '1969-12-31 01:00:00'
    ts = '2024-01-01 12:30:00.000005' | ts < '1970-01-01' | tz = '2024-01-01 12:30:00.000005'
    tz <= TIMESTAMP_LTZ '2024-01-01 01:00:00+01:00' | ts is null or tz > '2000-01-01'
    s = 'it''s' | s like 'a\\\\\\\\%' | s like 'a\\%%' | s not like 'a%' | s not like 'a'
    s >= 'é' | s = ''
    s in ('a\\\\b\\n\\t\\u0001é😀', 'x') | b = X'FF' | b < X'0b'
    flag | not flag | flag is not true
    `select ``x`.`a.b` = 7 | `select ``x`.`a.b` is null | not (`select ``x`.`a.b` = 7 and i = 7)
    true | 1 = 2 | i = null | not (i = null or i = 7)
"""


def test_spark_keeps_the_same_rows(spark: Any) -> None:
    texts = [text.strip() for text in PREDICATES.replace("\n", " | ").split(" | ") if text.strip()]
    if pyspark.__version__ < "4.1":
        # There two quotes within a text end one text and begin the next.
        texts = [text for text in texts if "''" not in text]
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    frame = spark.createDataFrame([(n, *row) for n, row in enumerate(ROWS)], GENERATED).cache()
    rows = []
    for row in ROWS:
        values = dict(enumerate(row, 1))
        inner = values.pop(len(COLUMNS))
        known = {n: coerce(SCHEMA.find_type(n), value) for n, value in values.items()}
        rows.append({**known, 101: inner[0] if inner else None, len(COLUMNS): inner})
    bound = [bind(parse_predicate(text), SCHEMA) for text in texts]
    ours = {
        text: [n for n, row in enumerate(rows) if keeps(expression, row)]
        for text, expression in zip(texts, bound, strict=True)
    }
    # One query for all: a column of booleans for each predicate, as written and as generated.
    chosen = frame.selectExpr(
        "n",
        *(f"coalesce({text}, false) AS w{k}" for k, text in enumerate(texts)),
        *(f"coalesce({to_spark_sql(e)}, false) AS g{k}" for k, e in enumerate(bound)),
    ).collect()
    written = {t: sorted(r.n for r in chosen if r[f"w{k}"]) for k, t in enumerate(texts)}
    generated = {t: sorted(r.n for r in chosen if r[f"g{k}"]) for k, t in enumerate(texts)}
    assert written == ours
    assert generated == ours
