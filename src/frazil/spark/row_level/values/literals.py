"""Python values as columns: what a user gives in place of SQL text."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from pyspark.errors import PySparkException
from pyspark.sql import Column, Row
from pyspark.sql import functions as F
from pyspark.sql import types as S

from frazil.errors import ValidationError
from frazil.format import types as I
from frazil.format.values.decimals import decimal_as_text, digits_of

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICRO: Final = dt.timedelta(microseconds=1)
_MOST_DIGITS: Final = 38
_MOMENTS: Final = (I.TimestamptzType, I.TimestamptzNanoType)


def literal(value: object, kind: I.IcebergType | None = None) -> Column:
    """Return a Python value as a column.

    A datetime without a zone is local time for a column of moments, as PySpark has it, and else
    what clocks show; with a zone it is that moment. A time of the day is its microseconds. Text is
    text.

    Args:
        kind: of the column that it is for, where that is known.

    Raises:
        ValidationError: Spark has no such value.
    """
    match value:
        case Column():
            return value
        case bool() | None | float() | str() | bytes():
            return F.lit(value)
        case int():
            fits = -(1 << 63) <= value < 1 << 63
            return F.lit(value) if fits else _decimal(Decimal(value))
        case Decimal():
            return _decimal(value)
        case dt.datetime() if value.tzinfo is None and isinstance(kind, _MOMENTS):
            return F.lit(value)
        case dt.datetime() if value.tzinfo is None:
            return F.lit(value.isoformat(sep=" ")).cast(S.TimestampNTZType())
        case dt.datetime():
            return F.timestamp_micros(F.lit((value - _EPOCH) // _MICRO))
        case dt.time():
            moment = dt.datetime.combine(_EPOCH.date(), value.replace(tzinfo=dt.UTC))
            return F.lit((moment - _EPOCH) // _MICRO)
        case UUID():
            return F.lit(str(value))
        case Row():
            kinds = (
                {field.name: field.field_type for field in kind.fields}
                if isinstance(kind, I.StructType)
                else {}
            )
            parts = value.asDict().items()
            return F.struct(*(literal(each, kinds.get(n)).alias(n) for n, each in parts))
        case list():
            of_elements = kind.element_type if isinstance(kind, I.ListType) else None
            return F.array(*(literal(each, of_elements) for each in value))
        case Mapping():
            of_pairs = (
                (kind.key_type, kind.value_type) if isinstance(kind, I.MapType) else (None, None)
            )
            return F.create_map(
                *(
                    literal(part, of_part)
                    for pair in value.items()
                    for part, of_part in zip(pair, of_pairs, strict=True)
                )
            )
        case _:
            return _of_spark(value)


def _decimal(value: Decimal) -> Column:
    # As text, since Spark Connect gives decimals of Python too few digits.
    if not value.is_finite():
        raise ValidationError(f"{value} is no value of a decimal column")
    exponent = int(value.as_tuple().exponent)
    scale = max(-exponent, 0)
    digits = max(digits_of(value) + max(exponent, 0), scale)
    if digits > _MOST_DIGITS:
        raise ValidationError(f"{value} has more digits than Spark's decimals, {_MOST_DIGITS}")
    return F.lit(decimal_as_text(value)).cast(S.DecimalType(max(digits, 1), scale))


def _of_spark(value: Any) -> Column:
    """What else Spark takes, as numbers and arrays of NumPy."""
    try:
        return F.lit(value)
    except (PySparkException, AttributeError, TypeError, ValueError) as error:
        kind = type(value).__qualname__
        raise ValidationError(
            f"{value!r} is no value that Spark knows: it is a {kind}. Give SQL text, a Column, or "
            "a number, bool, bytes, date, datetime, time, Decimal, UUID, list, dict or Row"
        ) from error
