"""Rows and seeded random conditions over them, as texts of Spark's SQL; no code of frazil decides.

Rows hold internal values by column name: days, microseconds, decimals.
"""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from frazil.format import types as T
from frazil.format.schema import Schema

TYPES: dict[str, Any] = {
    "i": T.IntegerType(),
    "L": T.LongType(),
    "f": T.FloatType(),
    "g": T.DoubleType(),
    "dec": T.DecimalType(9, 2),
    "big": T.DecimalType(30, 10),
    "d": T.DateType(),
    "ts": T.TimestampType(),
    "tz": T.TimestamptzType(),
    "s": T.StringType(),
    "b": T.BinaryType(),
    "flag": T.BooleanType(),
    "u": T.UUIDType(),
}
INNER = (T.NestedField(101, "a", T.IntegerType()), T.NestedField(102, "b.c", T.StringType()))
SCHEMA = Schema(
    (
        *(T.NestedField(n, name, t) for n, (name, t) in enumerate(TYPES.items(), 1)),
        T.NestedField(100, "st", T.StructType(INNER)),
    )
)
IDS = {name: n for n, name in enumerate(TYPES, 1)} | {"st.a": 101, "st.b.c": 102}
EPOCH = datetime(1970, 1, 1)
DAY = 86_400_000_000
UUIDS = ("00000000-0000-0000-0000-00000000000a", "f79c3e09-677c-4bbd-a479-3f349cb785e7")
SPRING = int((datetime(2024, 3, 10, 2, 30) - EPOCH).total_seconds()) * 1_000_000
# fmt: off
VALUES: dict[str, list[Any]] = {
    "i": [0, 1, -1, 5, 7, 2**31 - 1, -(2**31), 16_777_217],
    "L": [0, 1, -5, 7, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)],
    "f": [0.0, -0.0, 1.5, -1.5, 16_777_216.0, float("nan"), float("inf"), -float("inf")],
    "g": [0.0, -0.0, 0.1, 1.5, 9007199254740993.0, float("nan"), float("inf"), -float("inf")],
    "dec": [Decimal("0.00"), Decimal("1.50"), Decimal("-1.20"), Decimal("9999999.99")],
    "big": [Decimal("0E-10"), Decimal("0.1000000000"), Decimal("1.5000000000"),
            Decimal("12345678901234567890.0123456789")],
    "d": [0, -1, 19_723, 19_792, -141_428],
    "ts": [0, -1, SPRING, SPRING + 3_600_000_000, SPRING - 3_600_000_000, 19_723 * DAY + 5],
    "tz": [0, -1, SPRING, SPRING + 5 * 3_600_000_000, 19_723 * DAY,
                 19_723 * DAY + 5 * 3_600_000_000],
    "s": ["", "a", "ab", "A", "a%", "it's", "5", "2024-01-01", "true", "é"],
    "b": [b"", b"a", b"\xff", b"a\x00"],
    "flag": [True, False],
    "u": list(UUIDS),
    "st.a": [0, 1, 7],
    "st.b.c": ["", "x", "xy"],
}
LITERALS: dict[str, list[str]] = {
    "number": ["0", "1", "-1", "5", "7", "3.5", "-1.20", "1.5BD", "1.5D", "0.1", "0.1D",
                 "1.5F", "0.1F",
               "1e0", "5L", "7S", "16777217", "9007199254740993", "9007199254740993D",
               "9007199254740992e0", "9223372036854775807", "9223372036854775808", "-0.0", "-0.0D",
               "double('NaN')", "double('-Infinity')", "null", "1.000000000000000000000000000001",
               "12345678901234567890.0123456789", "cast(1.5 as decimal(2,1))", "cast(1.9 as int)",
               "(1)", "- (5)", "+7", "2 + 5", "1 - 1"],
    "text": ["''", "'a'", "'ab'", '"a"', "'it''s'", "'it\\'s'", "'5'", "'A'", "null",
                 "'\\u00e9'", "r'a%'"],
    "day": ["'2024-01-01'", "DATE '2024-01-01'", "DATE '1970-01-01'", "'1969-12-31'", "null",
            "TIMESTAMP_NTZ '2024-01-01 00:00:00'", "TIMESTAMP '2024-01-01 00:00:00'",
            "TIMESTAMP '2024-03-10 02:30:00'", "date('2024-03-10')", "DATE '1582-10-10'"],
    "moment": ["'2024-01-01'", "'2024-03-10 02:30:00'", "'2024-03-10T03:30:00.000000'", "null",
               "DATE '2024-03-10'", "TIMESTAMP_NTZ '2024-03-10 02:30:00'",
               "TIMESTAMP '2024-03-10 03:30:00'", "TIMESTAMP '2024-03-10 02:30:00'",
               "TIMESTAMP '2024-01-01 00:00:00.000005'", "'1970-01-01 00:00:00'",
               "TIMESTAMP_LTZ '2024-01-01 05:00:00+00:00'", "TIMESTAMP '2024-06-01 00:00:00'"],
    "bytes": ["X''", "X'61'", "X'FF'", "x'6100'", "null"],
    "uuid": [*(f"'{u}'" for u in UUIDS), "'8'", "null"],
}
# fmt: on
KINDS = {
    "i": "number",
    "L": "number",
    "f": "number",
    "g": "number",
    "dec": "number",
    "big": "number",
    "st.a": "number",
    "d": "day",
    "ts": "moment",
    "tz": "moment",
    "s": "text",
    "st.b.c": "text",
    "b": "bytes",
    "u": "uuid",
}  # fmt: skip
NAMES = {"st.a": "st.a", "st.b.c": "st.`b.c`", "L": "L", "s": "`s`"}
# What only Spark can evaluate, or what could be taken for something else.
OTHERS = [
    "upper(s) = 'A'", "i + 1L > 2", "i = L", "abs(f) > 1", "length(s) > 1", "coalesce(flag, false)",
    "s rlike '^a'", "s ilike 'A%'", "s like '%b'", "(i, L) in ((1, 1), (7, 7))", "i in (L, 7)",
    "case when i > 0 then flag else null end", "st = named_struct('a', 1, 'b.c', 'x')",
    "cast(d as string) like '2024%'", "year(tz) = 2024", "(i = 1) is null", "i = 1 = flag",
    "isnull(i + 1L)", "if(flag, i > 1, g > 1)", "i % 2 = 0", "nvl(g, 2.0D) > 1", "f = g",
    "not flag = (i = 1)", "i between st.a and L", "cast(i as double) > 1.5", "u like 'f%'",
    "nullif(i, 1) is null", "exists(array(i), x -> x = 1)", "1 = 1", "'a' = 'b'", "null", "true",
    "false", "0.1 = 0.1D", "1.0 = 1", "flag is not distinct from null", "st is null",
    "array_contains(array(1, 7), i)", "not (i <=> L)", "cast(null as boolean)",
]  # fmt: skip
# Comparisons whose casts fail under ANSI.
LOOSE = [
    "s = 5", "s > 1.5", "i = '5'", "i in ('5', '7')", "L < 'abc'", "flag = 'true'", "d > s",
    "dec = '1.5'", "g >= '0.1'", "f = '1.5'", "s = DATE '2024-01-01'", "b = 'a'", "i = '5.0'",
    "cast(s as int) = 5", "tz = s", "ts in ('2024-01-01', '1970-01-01 00:00:00')", "i = '05'",
    "d in ('2024-01-01', '1969-12-31')", "d = '2024-1-1'", "i = true", "d = 'x'", "isnan(s)",
]  # fmt: skip


def rows(count: int, seed: int) -> list[dict[str, Any]]:
    dice = random.Random(seed)
    made: list[dict[str, Any]] = []
    for _ in range(count):
        row = {c: None if dice.random() < 0.2 else dice.choice(v) for c, v in VALUES.items()}
        if dice.random() < 0.2:
            row["st"] = row["st.a"] = row["st.b.c"] = None
        else:
            row["st"] = {}
        made.append(row)
    return [dict.fromkeys([*VALUES, "st"]), *made]


def internal(row: dict[str, Any]) -> dict[int, Any]:
    from uuid import UUID

    values = {IDS[name]: value for name, value in row.items() if name in IDS}
    uuid = values[IDS["u"]]
    return {**values, IDS["u"]: None if uuid is None else UUID(uuid), 100: row["st"]}


def as_frame(spark: Any, made: list[dict[str, Any]]) -> Any:
    """The rows as plain Spark has them, with their number as `n`."""
    lines = (
        "(" + ", ".join([str(n), *(_sql(c, row[c]) for c in TYPES), _struct(row)]) + ")"
        for n, row in enumerate(made)
    )
    names = ", ".join(["n", *TYPES, "st"])
    return spark.sql(f"select * from values {', '.join(lines)} as rows({names})")


_SPARK = {"L": "bigint", "i": "int", "f": "float", "g": "double", "dec": "decimal(9,2)",
          "big": "decimal(30,10)", "d": "date", "ts": "timestamp_ntz", "tz": "timestamp", "s": "string",  # noqa: E501
          "b": "binary", "flag": "boolean", "u": "string", "st.a": "int", "st.b.c": "string"}  # fmt: skip  # noqa: E501


def _sql(column: str, value: Any) -> str:
    kind = _SPARK[column]
    if value is None:
        text = "null"
    elif kind == "date":
        return f"date_add(date'1970-01-01', {value})"
    elif kind == "timestamp_ntz":
        return f"timestamp_ntz'{EPOCH + timedelta(microseconds=value)}'"
    elif kind == "timestamp":
        return f"timestamp_micros({value}L)"
    elif kind == "binary":
        return f"X'{value.hex()}'"
    elif kind == "string":
        text = '"' + value + '"'
    else:
        text = f"'{value}'"
    return f"cast({text} as {kind})"


def _struct(row: dict[str, Any]) -> str:
    if row["st"] is None:
        return "cast(null as struct<a: int, `b.c`: string>)"
    inner = ", ".join(f"'{name[3:]}', {_sql(name, row[name])}" for name in ("st.a", "st.b.c"))
    return f"named_struct({inner})"


def condition(dice: random.Random, *, loose: bool, depth: int = 3) -> str:
    """A random condition; with `loose` also with casts that fail under ANSI."""
    if depth == 0 or dice.random() < 0.3:
        return _leaf(dice, loose=loose)
    one = condition(dice, loose=loose, depth=depth - 1)
    match dice.choice(["and", "or", "not", "!", "()"]):
        case "and" | "or" as word:
            return f"{one} {word} {condition(dice, loose=loose, depth=depth - 1)}"
        case "not":
            return f"not ({one})" if dice.random() < 0.7 else f"not {one}"
        case "!":
            return f"!({one})"
        case _:
            return f"({one})"


def _leaf(dice: random.Random, *, loose: bool) -> str:
    if dice.random() < 0.25:
        return dice.choice(OTHERS + LOOSE if loose else OTHERS)
    column = dice.choice([*KINDS, "flag"])
    name = NAMES.get(column, column)
    if column == "flag":
        return dice.choice(
            ["flag", "flag = true", "flag is false", "flag is not true", "flag <> false"]
        )
    if dice.random() < 0.15:
        return f"{name} is {dice.choice(['null', 'not null'])}"
    if column in ("f", "g") and dice.random() < 0.1:
        return f"isnan({name})"
    if KINDS[column] == "text" and dice.random() < 0.3:
        word, pattern = dice.choice(["like", "not like"]), dice.choice(["a%", "a", "a_", "%"])
        return f"{name} {word} '{pattern}'"
    literals = LITERALS[KINDS[column]]
    one, other = dice.choice(literals), dice.choice(literals)
    match dice.randrange(5):
        case 0:
            return f"{name} {dice.choice(['in', 'not in'])} ({one}, {other})"
        case 1:
            return f"{name} {dice.choice(['between', 'not between'])} {one} and {other}"
        case 2:
            return f"{one} {dice.choice(['=', '<', '>=', '<=>'])} {name}"
        case _:
            return (
                f"{name} {dice.choice(['=', '==', '!=', '<>', '<', '<=', '>', '>=', '<=>'])} {one}"
            )
