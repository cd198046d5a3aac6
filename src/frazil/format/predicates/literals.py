"""Where a literal lies among the values that a column can hold.

A literal need not be a value of the column: 3.5 and 3e9 lie between and above those of an ``int``.
The comparison is still exact, so a literal becomes a *place*: on a value, in the gap above one,
past either end, or NaN. Binding then compares with column values only.
"""

from __future__ import annotations

import math
import re
import sys
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo
from decimal import Decimal, InvalidOperation
from enum import Enum
from typing import Any
from uuid import UUID

from frazil.errors import PredicateError
from frazil.format.predicates.sql.quoting import TypedText
from frazil.format.types import DecimalType, IcebergType
from frazil.format.types.forms import form_of
from frazil.format.values.civil import (
    NANOS_PER_DAY,
    NANOS_PER_MICRO,
    NANOS_PER_SECOND,
    parse_date,
    parse_time,
    parse_timestamp,
)
from frazil.format.values.decimals import (
    MOST_PLACES,
    decimal_from_text,
    floor_at_scale,
    floor_of,
    largest_of,
    negate,
    with_positive_zero,
)
from frazil.format.values.zones import PROCESS_ZONE, offset_at, zone_of

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_FLOAT_WORDS = {
    "nan": math.nan,
    "inf": math.inf,
    "+inf": math.inf,
    "infinity": math.inf,
    "+infinity": math.inf,
    "-inf": -math.inf,
    "-infinity": -math.inf,
}
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()


class Outside(Enum):
    """Places that are on no value and above no value, or above all."""

    BELOW = "below every value"
    ABOVE = "above every value"
    NAN = "not a number"


@dataclass(frozen=True, slots=True)
class Inside:
    """A place among the values: on ``value``, or in the gap right above it."""

    value: Any
    exact: bool


Place = Inside | Outside


class _Mismatch(Exception):
    """A literal of a kind that the column's type does not take; the text says what it takes."""


def place_literal(
    column_type: IcebergType, literal: Any, *, column: str, time_zone: str | tzinfo
) -> Place:
    """Find the place of a literal.

    `time_zone` is that of text and dates that are compared with a moment; a datetime without a zone
    is local time of the process, as in Python and PySpark.
    """
    try:
        return _place(column_type, literal, time_zone)
    except _Mismatch as mismatch:
        why = str(mismatch)
    except (ValueError, OverflowError, InvalidOperation) as error:
        why = str(error) or "it is not a value of that type"
    raise PredicateError(
        f"column {column!r} of type {column_type} cannot be compared with "
        f"{_shown_literal(literal)}: {why}"
    )


def _shown_literal(literal: Any) -> str:
    text = repr(literal)
    return f"{text if len(text) <= 80 else text[:77] + '...'} of type {type(literal).__name__}"


def _place(column_type: IcebergType, literal: Any, time_zone: str | tzinfo) -> Place:
    if isinstance(column_type, DecimalType):
        return _decimal(column_type, _number(literal))
    form = form_of(column_type)
    match form.meaning:
        case "boolean":
            return Inside(_boolean(literal), exact=True)
        case "integer":
            return _whole_number(form.bits, _number(literal))
        case "floating":
            return _floating_place(_number(literal))
        case "string":
            return Inside(_of_kind(literal, str, "a string"), exact=True)
        case "uuid":
            return Inside(_uuid(literal), exact=True)
        case "fixed" | "binary":
            return Inside(_of_kind(literal, bytes, "bytes, in SQL X'00FF'"), exact=True)
        case "date":
            return _date(literal)
        case "time":
            return _floor_place(_time_nanos(literal), form.unit, form.bits)
        case "timestamp":
            nanos = _utc_nanos(literal, time_zone) if form.zoned else _local_nanos(literal)
            return _floor_place(nanos, form.unit, form.bits)
        case _:
            raise _Mismatch("such a column can only be tested with IS NULL and IS NOT NULL")


def _of_kind(literal: Any, kind: type, expected: str) -> Any:
    if isinstance(literal, kind):
        return literal
    raise _Mismatch(f"the literal must be {expected}")


def _boolean(literal: Any) -> bool:
    if isinstance(literal, bool):
        return literal
    if isinstance(literal, str) and literal.strip().lower() in ("true", "false"):
        return literal.strip().lower() == "true"
    raise _Mismatch("the literal must be true or false")


def _number(literal: Any) -> int | float | Decimal:
    if isinstance(literal, int | float | Decimal) and not isinstance(literal, bool):
        return literal
    if isinstance(literal, str):
        text = literal.strip()
        if _NUMBER.fullmatch(text):
            return decimal_from_text(text)
        if text.lower() in _FLOAT_WORDS:
            return _FLOAT_WORDS[text.lower()]
    raise _Mismatch("the literal must be a number")


def _outside_place(value: float | Decimal) -> Outside:
    # NaN is above every number in Spark's order, and equal to none but itself.
    return Outside.ABOVE if value != value or value > 0 else Outside.BELOW


def _whole_number(bits: int, number: int | float | Decimal) -> Place:
    if not isinstance(number, int):
        exact_number = number if isinstance(number, Decimal) else Decimal(number)
        if not exact_number.is_finite():
            return _outside_place(number)
        if exact_number.adjusted() > 40:
            return _outside_place(exact_number)
        floor = floor_of(exact_number)
        return _in_bits(floor, bits, exact=floor == exact_number)
    return _in_bits(number, bits, exact=True)


def _in_bits(value: int, bits: int, *, exact: bool) -> Place:
    limit = 1 << (bits - 1)
    if value < -limit:
        return Outside.BELOW
    if value >= limit or (value == limit - 1 and not exact):
        return Outside.ABOVE
    return Inside(value, exact)


def _floating_place(number: int | float | Decimal) -> Place:
    if isinstance(number, Decimal) and not number.is_finite():
        number = float(number)
    try:
        value = float(number)
    except OverflowError:
        value = math.inf if number > 0 else -math.inf
    if math.isnan(value):
        return Outside.NAN
    if math.isinf(value) and not isinstance(number, float):
        # A finite number past the largest double lies between it and infinity.
        return Inside(sys.float_info.max if value > 0 else -math.inf, exact=False)
    return Inside(value, exact=True)


def _decimal(column_type: DecimalType, number: int | float | Decimal) -> Place:
    # The shortest text of a float is the decimal that its writer meant, and Spark's comparison.
    exact_number = Decimal(repr(number)) if isinstance(number, float) else Decimal(number)
    if not exact_number.is_finite() or exact_number.adjusted() > 40:
        return _outside_place(exact_number)
    if exact_number and exact_number.as_tuple().exponent < -MOST_PLACES:  # type: ignore[operator]
        raise _Mismatch(f"it has more than {MOST_PLACES} digits after the point")
    floor = floor_at_scale(exact_number, column_type.scale)
    largest = largest_of(column_type.precision, column_type.scale)
    if floor < negate(largest):
        return Outside.BELOW
    exact = bool(floor == exact_number)
    if floor > largest or (floor == largest and not exact):
        return Outside.ABOVE
    return Inside(with_positive_zero(floor), exact)


def _uuid(literal: Any) -> UUID:
    if isinstance(literal, UUID):
        return literal
    if isinstance(literal, str):
        return UUID(literal.strip())
    if isinstance(literal, bytes) and len(literal) == 16:
        return UUID(bytes=literal)
    raise _Mismatch("the literal must be a UUID, its text or its 16 bytes")


def _floor_place(nanos: int, unit: int, bits: int) -> Place:
    value, rest = divmod(nanos, unit)
    return _in_bits(value, bits, exact=rest == 0)


def _date(literal: Any) -> Place:
    if isinstance(literal, TypedText) and literal.kind == "DATE":
        return _in_bits(parse_date(literal.text), 32, exact=True)
    if isinstance(literal, date) and not isinstance(literal, datetime):
        return Inside(literal.toordinal() - _EPOCH_ORDINAL, exact=True)
    nanos = _local_nanos(literal)
    if isinstance(literal, str) and nanos % NANOS_PER_DAY:
        raise _Mismatch(
            "the string has a time of day; write DATE '...' for a day or TIMESTAMP_NTZ '...' for "
            "an instant"
        )
    return _floor_place(nanos, NANOS_PER_DAY, 32)


def _time_nanos(literal: Any) -> int:
    if isinstance(literal, time):
        if literal.tzinfo is not None:
            raise _Mismatch("a time of day has no zone")
        return parse_time(literal.isoformat())
    if isinstance(literal, str):
        return parse_time(literal)
    if isinstance(literal, TypedText) and literal.kind == "TIME":
        return parse_time(literal.text)
    raise _Mismatch("the literal must be a time or text like '22:31:08.123456'")


def _wall_clock(literal: Any) -> tuple[int, int | None]:
    """Nanoseconds of the written wall clock, and the offset in nanoseconds where one is written."""
    if isinstance(literal, datetime):
        offset = literal.utcoffset()
        wall = literal.replace(tzinfo=None) - datetime(1970, 1, 1)
        # A pandas Timestamp is a datetime with three more digits.
        nanos = _nanos(wall) + getattr(literal, "nanosecond", 0)
        return nanos, None if offset is None else _nanos(offset)
    if isinstance(literal, date):
        return (literal.toordinal() - _EPOCH_ORDINAL) * NANOS_PER_DAY, None
    if isinstance(literal, TypedText) and literal.kind == "DATE":
        return parse_date(literal.text) * NANOS_PER_DAY, None
    if isinstance(literal, TypedText) and literal.kind != "TIME":
        literal = literal.text
    if isinstance(literal, str):
        nanos, seconds = parse_timestamp(literal)
        return nanos, None if seconds is None else seconds * NANOS_PER_SECOND
    raise _Mismatch("the literal must be a datetime, a date or text like '2024-01-31 22:31:08'")


def _nanos(delta: timedelta) -> int:
    return (delta // timedelta(microseconds=1)) * NANOS_PER_MICRO


def _local_nanos(literal: Any) -> int:
    nanos, offset = _wall_clock(literal)
    if offset is not None:
        raise _Mismatch("the column has no time zone and the literal has one; leave it out")
    return nanos


def _utc_nanos(literal: Any, time_zone: str | tzinfo) -> int:
    nanos, offset = _wall_clock(literal)
    if offset is None:
        zone = PROCESS_ZONE if isinstance(literal, datetime) else zone_of(time_zone)
        fold = getattr(literal, "fold", 0)
        offset = offset_at(zone, nanos // NANOS_PER_SECOND, fold=fold) * NANOS_PER_SECOND
    return nanos - offset
