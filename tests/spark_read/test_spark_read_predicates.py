"""Spark as the second opinion: filters in generated text keep the rows that `keeps` keeps."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

from frazil.format import types as T
from frazil.format.predicates import bind, parse_predicate, to_spark_sql
from frazil.format.schema import Schema
from frazil.format.values import coerce
from scalar_predicates import keeps

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
DDL = (
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
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    frame = spark.createDataFrame([(n, *row) for n, row in enumerate(ROWS)], DDL).cache()
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
