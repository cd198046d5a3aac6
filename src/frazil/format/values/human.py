"""Values as text for partition paths, spelled as in Java (SPEC rules 307, 312)."""

from __future__ import annotations

import base64
import struct
from typing import Any

from frazil.format.types import IcebergType
from frazil.format.types.forms import form_of
from frazil.format.values import civil
from frazil.format.values.floats import nearest_single, word_unless_finite


def human_value(value_type: IcebergType, value: Any) -> str:
    """An internal value as text; null is ``null``, binary is base64, dates and times are ISO."""
    if value is None:
        return "null"
    form = form_of(value_type)
    match form.meaning:
        case "boolean":
            return "true" if value else "false"
        case "floating":
            return _human_float(value, single=form.carrier == "float")
        case "date":
            return human_day(value)
        case "time":
            return _human_time(value)
        case "timestamp":
            text = civil.format_timestamp(value * form.unit, 9).rstrip("0").rstrip(".")
            return text + "+00:00" if form.zoned else text
        case "fixed" | "binary" | "wkb":
            return base64.b64encode(value).decode("ascii")
    return str(value)


# Java's %04d counts the minus sign of a year as one of the four places, as Python's does.


def human_year(years: int) -> str:
    """``2024`` of years since 1970."""
    return f"{1970 + years:04d}"


def human_month(months: int) -> str:
    """``2024-01`` of months since 1970-01."""
    years, month = divmod(months, 12)
    return f"{1970 + years:04d}-{month + 1:02d}"


def human_day(days: int) -> str:
    """``2024-01-31`` of days since 1970-01-01."""
    year, month, day = civil.civil_from_days(days)
    return f"{year:04d}-{month:02d}-{day:02d}"


def human_hour(hours: int) -> str:
    """``2024-01-31-23`` of hours since 1970-01-01-00."""
    days, hour = divmod(hours, 24)
    return f"{human_day(days)}-{hour:02d}"


def _human_time(micros: int) -> str:
    # Java's LocalTime.toString: no zero seconds, and fractions in threes of digits.
    text = civil.format_time(micros * civil.NANOS_PER_MICRO, 6)
    if micros % 60_000_000 == 0:
        return text[:5]
    if micros % 1_000_000 == 0:
        return text[:8]
    return text[:12] if micros % 1_000 == 0 else text


def _human_float(value: float, *, single: bool) -> str:
    """The shortest decimal text that reads back, in Java's notation."""
    if (word := word_unless_finite(value)) is not None:
        return word
    digits, exponent = _shortest_digits(value, single=single)
    sign = "-" if struct.pack(">d", value)[0] & 0x80 else ""
    if value == 0:
        return f"{sign}0.0"
    if -3 <= exponent < 7:
        if exponent < 0:
            return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
        whole = digits[: exponent + 1].ljust(exponent + 1, "0")
        return f"{sign}{whole}.{digits[exponent + 1 :] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _shortest_digits(value: float, *, single: bool) -> tuple[str, int]:
    """The significant digits and the exponent of the first one."""
    text = repr(abs(value))
    if single:
        text = next(
            candidate
            for places in range(9)
            if nearest_single(float(candidate := f"{abs(value):.{places}e}"))
            == nearest_single(abs(value))
            or places == 8
        )
    mantissa, _, power = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    leading = len(whole + fraction) - len(digits)
    exponent = int(power or 0) + len(whole) - 1 - leading
    return digits.rstrip("0") or "0", exponent
