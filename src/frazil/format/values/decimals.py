"""Exact decimals: the one place where ``Decimal`` is calculated with.

Python's operators on ``Decimal``, unary minus among them, round to the 28 digits of the thread's
context, and Iceberg's decimals have up to 38. Nothing here looks at that context: what cannot be
exact raises. Constructors, comparisons and ``int()`` are exact in Python and are used as they are.
"""

from __future__ import annotations

from decimal import (
    ROUND_DOWN,
    ROUND_FLOOR,
    ROUND_HALF_UP,
    Context,
    Decimal,
    DivisionByZero,
    Inexact,
    InvalidOperation,
    Overflow,
)
from typing import Final

MOST_PLACES: Final = 5_000
"""Digits after the point that a number may have."""

_DIGITS: Final = 2 * MOST_PLACES
_FAULTS: Final = [InvalidOperation, DivisionByZero, Overflow]
_EXACT: Final = Context(prec=_DIGITS, traps=[*_FAULTS, Inexact])
_ROUNDED: Final = Context(prec=_DIGITS, traps=_FAULTS)


def decimal_from_text(text: str) -> Decimal:
    """The number of a text, all its digits; ``decimal.InvalidOperation`` where it is not one."""
    return Decimal(text.strip(), _EXACT)


def negate(value: Decimal) -> Decimal:
    """The number with the other sign, all its digits."""
    return value.copy_negate() if value else value


def with_positive_zero(value: Decimal) -> Decimal:
    """The number itself; zero without a sign."""
    return value if value else value.copy_abs()


def unit_of(scale: int) -> Decimal:
    """The distance of two neighbours among the decimals of a scale: 0.01 of 2."""
    return Decimal((0, (1,), -scale))


def add(left: Decimal, right: Decimal) -> Decimal:
    """The exact sum."""
    return _EXACT.add(left, right)


def subtract(left: Decimal, right: Decimal) -> Decimal:
    """The exact difference."""
    return _EXACT.subtract(left, right)


def at_scale(value: Decimal, scale: int) -> Decimal:
    """The same number with `scale` digits after the point."""
    try:
        return _EXACT.quantize(value, unit_of(scale))
    except (Inexact, InvalidOperation) as error:
        raise ValueError(f"it would lose digits after {scale} places") from error


def floor_at_scale(value: Decimal, scale: int) -> Decimal:
    """The greatest number of a scale that is not above the value."""
    return value.quantize(unit_of(scale), rounding=ROUND_FLOOR, context=_ROUNDED)


def rounded_to_scale(value: Decimal, scale: int) -> Decimal:
    """The nearest number of a scale, halves away from zero, as Spark rounds in casts."""
    return value.quantize(unit_of(scale), rounding=ROUND_HALF_UP, context=_ROUNDED)


def floor_of(value: Decimal) -> int:
    """The greatest whole number that is not above the value."""
    return int(value.to_integral_value(rounding=ROUND_FLOOR, context=_ROUNDED))


def whole_part_of(value: Decimal) -> int:
    """The number without its fraction."""
    return int(value.to_integral_value(rounding=ROUND_DOWN, context=_ROUNDED))


def unscaled_value(value: Decimal) -> int:
    """The decimal without its point: 14.20 is 1420."""
    sign, digits, _ = value.as_tuple()
    number = int("".join(map(str, digits)) or "0")
    return -number if sign else number


def unscaled_at_scale(value: Decimal, scale: int) -> int:
    """The number in units of a scale: 14.2 is 1420 of 2; ValueError where it is not whole."""
    return unscaled_value(at_scale(value, scale))


def decimal_from_unscaled(unscaled: int, scale: int) -> Decimal:
    """The inverse of `unscaled_value`."""
    return _EXACT.scaleb(Decimal(unscaled), -scale)


def largest_of(precision: int, scale: int) -> Decimal:
    """The largest decimal of `precision` digits, of which ``scale`` stand after the point."""
    return decimal_from_unscaled(10**precision - 1, scale)


def digits_of(value: Decimal) -> int:
    """How many digits the number is written with, those after the point among them."""
    return len(value.as_tuple().digits)


def decimal_as_text(value: Decimal) -> str:
    """All digits without an exponent."""
    return f"{value:f}"
