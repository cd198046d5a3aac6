"""An independent model of SQL's WHERE: exact arithmetic, three values, no code of frazil.

A predicate is a nested tuple; rows hold internal values by column name. Everything is mapped to
keys that Python orders as SQL does.
"""

from __future__ import annotations

import struct
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from frazil.format import types as T
from frazil.format.predicates import Expression, col

EPOCH = datetime(1970, 1, 1)
DAY_US = 86_400_000_000
HOUR_US = 3_600_000_000


def float32(value: float) -> float:
    return struct.unpack("<f", struct.pack("<f", value))[0]


def near(*points: int) -> st.SearchStrategy[int]:
    return st.sampled_from(sorted({p + d for p in points for d in (-2, -1, 0, 1, 2)}))


def whole(bits: int) -> st.SearchStrategy[int]:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    edges = [low, low + 1, low + 5, low + 9, low + 12, high - 9, high - 1, high]
    return st.integers(-25, 25) | st.sampled_from(edges)


MICROS = near(*(h * HOUR_US for h in (-48, -25, -24, -23, -1, 0, 1, 24))) | near(
    *(d * DAY_US for d in (-731, -366, -365, -31, 31, 364, 365, 11_000, -200_000))
)
DAYS = near(-731, -366, -365, -59, -31, 0, 31, 365, 19_000, -141_428)
TEXT = st.text("ab\u00e9\uffff\U0001f600%_'\\`\n\t\x00 ", max_size=5)
BYTES = st.binary(max_size=4) | st.sampled_from([b"a", b"ab", b"abc", b"\xff", b"\xff\xff"])
FLOATS = st.sampled_from(
    [0.0, -0.0, 1.5, -1.5, 2.25, float("nan"), float("inf"), -float("inf"), 1e30]
)
UUIDS = st.sampled_from(
    [UUID(int=n) for n in (0, 1, 1 << 63, 1 << 127, (1 << 127) + (1 << 63), (1 << 128) - 1)]
)

VALUES: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "i": (T.IntegerType(), whole(32)),
    "l": (T.LongType(), whole(64)),
    "dec": (T.DecimalType(9, 2), st.integers(-400, 400).map(lambda n: Decimal(n).scaleb(-2))),
    "d": (T.DateType(), DAYS),
    "ts": (T.TimestampType(), MICROS),
    "tz": (T.TimestamptzType(), MICROS),
    "ns": (
        T.TimestampNanoType(),
        MICROS.filter(lambda n: abs(n) < 9_000_000_000_000_000).map(lambda n: n * 1000)
        | near(-1, 0, -3_600_000_000_000),
    ),
    "s": (T.StringType(), TEXT),
    "b": (T.BinaryType(), BYTES),
    "fx": (T.FixedType(2), st.binary(min_size=2, max_size=2)),
    "u": (T.UUIDType(), UUIDS),
    "flag": (T.BooleanType(), st.booleans()),
    "f": (T.FloatType(), FLOATS.map(float32)),
    "g": (T.DoubleType(), FLOATS),
}
NUMBERS = (
    whole(32)
    | whole(64)
    | st.sampled_from([2**31, -(2**31) - 1, 3_000_000_000, 2**63, 10**30, -(10**30)])
    | st.sampled_from([Decimal("3.5"), Decimal("-0.5"), Decimal("10.00"), Decimal("1e30")])
)
_DATES = DAYS.filter(lambda n: n > -719_000).map(lambda n: date(1970, 1, 1) + timedelta(days=n))
_MOMENTS = MICROS.map(lambda n: EPOCH + timedelta(microseconds=n))
LITERALS: dict[str, st.SearchStrategy[Any]] = {
    "i": NUMBERS | FLOATS.filter(lambda x: x == x),
    "l": NUMBERS | FLOATS.filter(lambda x: x == x),
    "dec": NUMBERS | st.sampled_from([Decimal("1.234"), Decimal("-1.005"), Decimal("4.00")]),
    "d": _DATES | _MOMENTS,
    "ts": _DATES | _MOMENTS,
    "tz": _DATES | _MOMENTS,
    "ns": _DATES | _MOMENTS,
    "s": TEXT,
    "b": BYTES,
    "fx": BYTES,
    "u": UUIDS,
    "flag": st.booleans(),
    "f": FLOATS | st.integers(-3, 3),
    "g": FLOATS | st.integers(-3, 3),
}
OPS = ("=", "!=", "<", "<=", ">", ">=")


@cache
def leaves_of(name: str) -> st.SearchStrategy[Any]:
    literal = LITERALS[name]
    options = [
        st.tuples(st.just("cmp"), st.just(name), st.sampled_from(OPS), literal),
        st.tuples(st.just("cmp"), st.just(name), st.sampled_from(OPS), literal),
        st.tuples(st.just("in"), st.just(name), st.lists(literal, max_size=4)),
        st.tuples(st.just("null"), st.just(name)),
    ]
    if name in ("f", "g"):
        options.append(st.tuples(st.just("nan"), st.just(name)))
    if name == "s":
        options.append(st.tuples(st.just("starts"), st.just(name), TEXT))
    return st.one_of(options)


def predicates(names: list[str]) -> st.SearchStrategy[Any]:
    return _predicates(frozenset(names))


@cache
def _predicates(names: frozenset[str]) -> st.SearchStrategy[Any]:
    return st.recursive(
        st.one_of([leaves_of(name) for name in sorted(names)]),
        lambda inner: st.one_of(
            st.tuples(st.just("and"), st.lists(inner, min_size=1, max_size=3)),
            st.tuples(st.just("or"), st.lists(inner, min_size=1, max_size=3)),
            st.tuples(st.just("not"), inner),
        ),
        max_leaves=5,
    )


def rows(names: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({name: st.none() | VALUES[name][1] for name in names})


def build(tree: Any) -> Expression:
    """The predicate in frazil's own expressions."""
    kind = tree[0]
    if kind in ("and", "or"):
        parts = [build(part) for part in tree[1]]
        result = parts[0]
        for part in parts[1:]:
            result = result & part if kind == "and" else result | part
        return result
    if kind == "not":
        return ~build(tree[1])
    column = col(tree[1])
    if kind == "cmp":
        op, literal = tree[2], tree[3]
        return {
            "=": lambda: column == literal,
            "!=": lambda: column != literal,
            "<": lambda: column < literal,
            "<=": lambda: column <= literal,
            ">": lambda: column > literal,
            ">=": lambda: column >= literal,
        }[op]()
    if kind == "in":
        return column.is_in(tree[2])
    if kind == "starts":
        return column.starts_with(tree[2])
    return column.is_null() if kind == "null" else column.is_nan()


def key(value: Any) -> Any:
    """A number, string or bytes as a key that orders as in Spark: NaN last, -0.0 equal to 0.0."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float | Decimal):
        if value != value:
            return (2, Fraction(0))
        if value in (float("inf"), -float("inf")):
            return (1 if value > 0 else -1, Fraction(0))
        return (0, Fraction(value))
    if isinstance(value, str):
        return value.encode("utf-8")
    return value.bytes if isinstance(value, UUID) else value


def literal_key(column_type: Any, literal: Any) -> Any:
    unit = {"date": Fraction(1, DAY_US), "timestamp_ns": 1000}.get(str(column_type), 1)
    if isinstance(literal, datetime):
        return (0, (literal - EPOCH) // timedelta(microseconds=1) * Fraction(unit))
    if isinstance(literal, date):
        days = literal.toordinal() - date(1970, 1, 1).toordinal()
        return (0, days * DAY_US * Fraction(unit))
    return key(literal)


def truth(tree: Any, row: dict[str, Any]) -> bool | None:
    """TRUE, FALSE or NULL (None) of a predicate for a row."""
    kind = tree[0]
    if kind == "not":
        inner = truth(tree[1], row)
        return None if inner is None else not inner
    if kind in ("and", "or"):
        parts = [truth(part, row) for part in tree[1]]
        decisive = kind == "or"
        if decisive in parts:
            return decisive
        return None if None in parts else not decisive
    value, column_type = row[tree[1]], VALUES[tree[1]][0]
    if kind == "null":
        return value is None
    if kind == "nan":
        return value is not None and value != value
    if kind == "in" and not tree[2]:
        return False
    if value is None:
        return None
    if kind == "starts":
        return value.encode("utf-8").startswith(tree[2].encode("utf-8"))
    ours = key(value)
    if kind == "in":
        return any(ours == literal_key(column_type, literal) for literal in tree[2])
    theirs = literal_key(column_type, tree[3])
    return {
        "=": ours == theirs,
        "!=": ours != theirs,
        "<": ours < theirs,
        "<=": ours <= theirs,
        ">": ours > theirs,
        ">=": ours >= theirs,
    }[tree[2]]
