"""Where a comparison of a column with literals means in Spark what `bind` makes of it.

Spark casts the two sides of a comparison to one type, and casts can lose: a bigint becomes a
double, text becomes a date. What is listed here is alike with ANSI mode and without it. A pair that
is not listed may differ, and is left to Spark.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, tzinfo
from decimal import Decimal
from enum import Enum
from typing import Any

from sqlglot import exp

from frazil.errors import PredicateError
from frazil.format.predicates.sql.quoting import TypedText
from frazil.format.predicates.sql.sql_literals import (
    NOT_A_LITERAL,
    literal_value,
    without_parentheses,
)
from frazil.format.types import DecimalType, IcebergType
from frazil.format.types.forms import FORMS, form_of
from frazil.format.values.zones import offset_at, zone_of


class LiteralKind(Enum):
    """Spark's type of a literal, as far as it matters for comparisons."""

    NULL = "null"
    BOOLEAN = "boolean"
    INTEGER = "integer"
    DECIMAL = "decimal"
    DOUBLE = "double"
    FLOAT = "float"
    STRING = "string"
    BINARY = "binary"
    DATE = "date"
    TIMESTAMP = "timestamp"
    TIMESTAMP_NTZ = "timestamp_ntz"


@dataclass(frozen=True, slots=True)
class SparkLiteral:
    """A literal: its type in Spark and the Python object that predicates hold."""

    kind: LiteralKind
    value: Any


TYPES_OF_OWN = tuple(
    form.kind for form in FORMS if form.meaning in ("uuid", "time") or form.unit == 1
)
"""Types that Spark lacks: literals of them are read by their Iceberg type."""

_MOST_DIGITS = 38
_LONG_DIGITS = 20
_LONG_LIMIT = (1 << 63) - 1
_DOUBLE_DIGITS = 15
_EXACT_IN_DOUBLE = 1 << 53
_EXACT_IN_FLOAT = 1 << 24
_WHOLE_TYPES = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_WHOLE_TEXT = re.compile(r"0|-?[1-9]\d{0,8}", re.ASCII)
_NUMBER_TEXT = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_DOUBLE_TEXT = re.compile(rf"NaN|-?Infinity|{_NUMBER_TEXT.pattern}", re.ASCII)
_UUID_TEXT = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
_DATE_TEXT = re.compile(r"(?!0000)\d{4}-\d\d-\d\d", re.ASCII)
_MOMENT_TEXT = re.compile(rf"{_DATE_TEXT.pattern}([ T]\d\d:\d\d:\d\d(\.\d{{1,6}})?)?", re.ASCII)
_ZONED_TEXT = re.compile(rf"{_MOMENT_TEXT.pattern}(Z|[+-]\d\d:\d\d)?", re.ASCII)
_TIMESTAMPS = {
    "TIMESTAMP": LiteralKind.TIMESTAMP,
    "TIMESTAMPTZ": LiteralKind.TIMESTAMP,
    "TIMESTAMPLTZ": LiteralKind.TIMESTAMP,
    "TIMESTAMPNTZ": LiteralKind.TIMESTAMP_NTZ,
}
_EPOCH = datetime(1970, 1, 1)
_HOUR = 3600
# No two offsets of any zone differ by more.
_WIDEST_CHANGE_HOURS = 30
# Of older years Java's and Python's zone databases tell different things.
_FIRST_SURE_YEAR = 1971


def spark_literal(node: exp.Expression) -> SparkLiteral | None:
    """Return a literal that Spark surely reads as `literal_value` does; None for anything else."""
    try:
        value = literal_value(node)
    except PredicateError:
        return None
    if value is NOT_A_LITERAL:
        return None
    while isinstance(node, exp.Paren | exp.Neg):
        node = node.this
    kind = LiteralKind.NULL if isinstance(node, exp.Null) else _kind(node, value)
    return None if kind is None else SparkLiteral(kind, value)


def _kind(node: exp.Expression, value: Any) -> LiteralKind | None:
    match node:
        case exp.Boolean():
            return LiteralKind.BOOLEAN
        case exp.HexString():
            return LiteralKind.BINARY
        case exp.RawString() | exp.Concat():
            return LiteralKind.STRING
        case exp.Literal() if node.is_string:
            return LiteralKind.STRING
        case exp.Literal() if isinstance(value, float):
            # Spark refuses a double that is too large for one.
            return LiteralKind.DOUBLE if math.isfinite(value) else None
        case exp.Literal():
            return _numeric(
                LiteralKind.INTEGER if isinstance(value, int) else LiteralKind.DECIMAL, value
            )
        case exp.Cast() if isinstance(without_parentheses(node.this), exp.Literal):
            return _cast_kind(without_parentheses(node.this), node.to, value)
        case _:
            return None


def _numeric(kind: LiteralKind, value: int | Decimal) -> LiteralKind | None:
    whole, scale = _digits(value)
    return kind if whole + scale <= _MOST_DIGITS else None


def _cast_kind(inner: exp.Expression, to: exp.DataType, value: Any) -> LiteralKind | None:
    name = to.this.name if isinstance(to.this, exp.DataType.Type) else str(to.this)
    text = str(inner.this)
    if name in _WHOLE_TYPES:
        return None if inner.is_string else LiteralKind.INTEGER
    if name == "DOUBLE" and _DOUBLE_TEXT.fullmatch(text):
        return LiteralKind.DOUBLE
    if name == "FLOAT" and not inner.is_string:
        return LiteralKind.FLOAT
    if name == "DECIMAL" and _NUMBER_TEXT.fullmatch(text):
        return _numeric(LiteralKind.DECIMAL, value)
    if name == "DATE" and inner.is_string and _DATE_TEXT.fullmatch(text):
        return LiteralKind.DATE
    if name in _TIMESTAMPS and inner.is_string and _ZONED_TEXT.fullmatch(text):
        kind = _TIMESTAMPS[name]
        return None if kind is LiteralKind.TIMESTAMP_NTZ and _has_offset(value) else kind
    return None


def _digits(value: int | Decimal) -> tuple[int, int]:
    """Digits before and after the point of Spark's decimal type of a number."""
    _, digits, exponent = Decimal(value).as_tuple()
    assert isinstance(exponent, int)
    return max(len(digits) + exponent, 0), max(-exponent, 0)


def reads_alike(
    column_type: IcebergType,
    literals: Sequence[SparkLiteral],
    *,
    listed: bool,
    time_zone: str | tzinfo,
) -> bool:
    """Return whether Spark compares a column with these literals as a bound predicate does."""
    given = [each for each in literals if each.kind is not LiteralKind.NULL]
    kinds = {each.kind for each in given}
    values = [each.value for each in given]
    if not given:
        return True
    form = form_of(column_type)
    match form.meaning:
        case "boolean":
            return kinds == {LiteralKind.BOOLEAN}
        case "integer":
            return _whole_numbers(kinds, values)
        case "floating" if form.carrier == "float":
            whole = [value for value in values if isinstance(value, int)]
            few = len(kinds - {LiteralKind.INTEGER}) <= 1
            return few and _are_floating(kinds) and _are_within(whole, _EXACT_IN_FLOAT)
        case "floating":
            return _are_floating(kinds)
        case "string":
            return kinds == {LiteralKind.STRING}
        case "uuid":
            return kinds == {LiteralKind.STRING} and all(map(_UUID_TEXT.fullmatch, values))
        case "binary" | "fixed":
            return kinds == {LiteralKind.BINARY}
        case "date":
            return _wall_clocks(kinds, values, _DATE_TEXT, time_zone)
        case "timestamp" if form.in_spark and form.zoned:
            return _instants(kinds, values, None if listed else _ZONED_TEXT, time_zone)
        case "timestamp" if form.in_spark:
            return _wall_clocks(kinds, values, None if listed else _MOMENT_TEXT, time_zone)
    match column_type:
        case DecimalType(precision=precision, scale=scale):
            if kinds == {LiteralKind.DOUBLE}:
                return precision <= _DOUBLE_DIGITS
            fits = _fit_one_decimal([(precision - scale, scale), *map(_digits_of, values)])
            return kinds <= {LiteralKind.INTEGER, LiteralKind.DECIMAL} and fits
        case _:
            return False


def _whole_numbers(kinds: set[LiteralKind], values: Sequence[Any]) -> bool:
    if kinds == {LiteralKind.STRING}:
        return all(map(_WHOLE_TEXT.fullmatch, values))
    if kinds <= {LiteralKind.INTEGER, LiteralKind.DECIMAL}:
        # Spark makes a comparison with a number past every bigint TRUE, also where it is NULL.
        has_room = all(-_LONG_LIMIT <= value < _LONG_LIMIT for value in values)
        return has_room and _fit_one_decimal([(_LONG_DIGITS, 0), *map(_digits_of, values)])
    # A bigint is compared with a double as a double.
    return kinds <= {LiteralKind.INTEGER, LiteralKind.DOUBLE} and _are_within(
        values, _EXACT_IN_DOUBLE
    )


def _are_floating(kinds: set[LiteralKind]) -> bool:
    return kinds <= {
        LiteralKind.INTEGER,
        LiteralKind.DECIMAL,
        LiteralKind.DOUBLE,
        LiteralKind.FLOAT,
    }


def _are_within(values: Sequence[int | float], limit: int) -> bool:
    return all(abs(value) < limit or not math.isfinite(value) for value in values)


def _digits_of(value: Any) -> tuple[int, int]:
    return _digits(value) if isinstance(value, int | Decimal) else (_MOST_DIGITS, _MOST_DIGITS)


def _fit_one_decimal(digits: Sequence[tuple[int, int]]) -> bool:
    return max(whole for whole, _ in digits) + max(scale for _, scale in digits) <= _MOST_DIGITS


def _wall_clocks(
    kinds: set[LiteralKind],
    values: Sequence[Any],
    text: re.Pattern[str] | None,
    zone: str | tzinfo,
) -> bool:
    """`text`: what strings must be to be read alike; None where none are."""
    if kinds == {LiteralKind.STRING}:
        return text is not None and all(map(text.fullmatch, values))
    if kinds == {LiteralKind.TIMESTAMP}:
        # Spark compares instants: the column's times are taken for times of the session's zone.
        return all(_is_steady(value, zone) for value in values)
    return kinds in ({LiteralKind.DATE}, {LiteralKind.TIMESTAMP_NTZ})


def _instants(
    kinds: set[LiteralKind],
    values: Sequence[Any],
    text: re.Pattern[str] | None,
    zone: str | tzinfo,
) -> bool:
    """`text`: as of `_wall_clocks`."""
    if kinds == {LiteralKind.STRING}:
        is_alike = text is not None and all(map(text.fullmatch, values))
    else:
        is_alike = kinds in (
            {LiteralKind.DATE},
            {LiteralKind.TIMESTAMP},
            {LiteralKind.TIMESTAMP_NTZ},
        )
    return is_alike and all(_is_sure(value, zone) for value in values)


def _has_offset(value: Any) -> bool:
    if isinstance(value, str):
        return _MOMENT_TEXT.fullmatch(value) is None
    return isinstance(value, datetime) and value.tzinfo is not None


def _wall_time(value: Any) -> datetime | None:
    """The time that is written; None where Python has no such."""
    if isinstance(value, TypedText):
        value = value.text
    if isinstance(value, str):
        try:
            return datetime.fromisoformat(value).replace(tzinfo=None)
        except ValueError:
            return None
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    assert isinstance(value, date)
    return datetime(value.year, value.month, value.day)


def _is_sure(value: Any, time_zone: str | tzinfo) -> bool:
    """Whether Java and Python place a time of the zone on the same instant."""
    if _has_offset(value):
        return True
    wall = _wall_time(value)
    return wall is not None and (wall.year >= _FIRST_SURE_YEAR or _is_fixed(time_zone))


def _is_steady(value: Any, time_zone: str | tzinfo) -> bool:
    """Whether the zone's clocks are not changed anywhere near a time."""
    if _has_offset(value):
        return False
    if _is_fixed(time_zone):
        return True
    wall = _wall_time(value)
    if wall is None or wall.year < _FIRST_SURE_YEAR:
        return False
    zone = zone_of(time_zone)
    seconds = int((wall - _EPOCH).total_seconds())
    hours = range(-_WIDEST_CHANGE_HOURS, _WIDEST_CHANGE_HOURS + 1)
    return len({offset_at(zone, seconds + hour * _HOUR) for hour in hours}) == 1


def _is_fixed(time_zone: str | tzinfo) -> bool:
    # A region has a key; an offset has none.
    return getattr(zone_of(time_zone), "key", None) is None
