"""Type promotion: which types a column may be changed to, and what becomes of its values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from frazil.format.partitions.transforms import (
    DayTransform,
    MonthTransform,
    Transform,
    VoidTransform,
    YearTransform,
)
from frazil.format.types import (
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    TimestampNanoType,
    TimestampType,
    UnknownType,
)
from frazil.format.types.forms import form_of

PROMOTIONS = (
    "int to long, float to double, decimal to one of more digits and the same scale; from format "
    "version 3 also date to timestamp or timestamp_ns and unknown to any type"
)
_DATE_TRANSFORMS = (YearTransform, MonthTransform, DayTransform, VoidTransform)


def can_promote(source: IcebergType, target: IcebergType, format_version: int) -> bool:
    """True where a column of one type may become a column of another (rules 44, 45)."""
    match source, target:
        case (IntegerType(), LongType()) | (FloatType(), DoubleType()):
            return True
        case DecimalType(precision, scale), DecimalType(wider, same):
            return scale == same and wider > precision
        case (DateType(), TimestampType() | TimestampNanoType()) | (UnknownType(), _):
            return format_version >= 3 and source != target
        case _:
            return False


def widest(types: Iterable[IcebergType]) -> IcebergType | None:
    """Return the one of some types that the others may become; None where there is none.

    Promotions that need a format version are left out.
    """
    found: IcebergType | None = None
    for each in types:
        if found is None or can_promote(found, each, 1):
            found = each
        elif each != found and not can_promote(each, found, 1):
            return None
    return found


def keeps_partition_values(source: IcebergType, target: IcebergType, transform: Transform) -> bool:
    """True where a transform gives the same values after a promotion (rule 47)."""
    if isinstance(source, DateType):
        # Identity and bucket see other numbers; an unknown transform may as well.
        return isinstance(transform, _DATE_TRANSFORMS)
    if isinstance(source, UnknownType):
        return transform.can_transform(target)
    return True


def promote_value(source: IcebergType, target: IcebergType, value: Any) -> Any:
    """The internal value, such as a default, in the promoted type."""
    if value is not None and isinstance(source, DateType) and not isinstance(target, DateType):
        return value * form_of(target).units_per_day
    return value
