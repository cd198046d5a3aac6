"""The types of the table format that stored columns are of, as their footers tell."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from frazil.format import types as I
from frazil.format.types.forms import WITHOUT_PARAMETERS
from frazil.spark.files.layout.footers import INT96, OF_UNSIGNED_LONGS

FIXED: Final = re.compile(r"fixed_size_binary\[(\d+)\]")
MOMENT: Final = re.compile(r"timestamp\[(\w+)(?:, tz=.*)?\]")

_DICTIONARY: Final = re.compile(r"dictionary<values=(.*), indices=.*>")
_DECIMAL: Final = re.compile(r"decimal\d*\((\d+), (\d+)\)")
_UNCLEAR: Final = re.compile(rf"{FIXED.pattern}|{MOMENT.pattern}|{INT96}")
_PLAIN: Final[Mapping[str, I.IcebergType]] = {
    name: form.kind()
    for is_own in (False, True)
    for form in reversed(WITHOUT_PARAMETERS)
    for name in ((form.arrow,) if is_own else form.readable)
    if name and not _UNCLEAR.fullmatch(name)
} | {"uint64": I.DecimalType(*OF_UNSIGNED_LONGS)}


def plain_kind(kind: str) -> str:
    """The kind of a column's values where they are kept in a dictionary, else the kind itself."""
    inner = _DICTIONARY.fullmatch(kind)
    return inner[1] if inner else kind


def number_or_text(kind: str) -> I.IcebergType | None:
    """The type of a stored column that is written in one way; None of timestamps and fixed bytes.

    Args:
        kind: as `FooterColumn` has it.
    """
    decimal = _DECIMAL.fullmatch(kind)
    if decimal is not None:
        return I.DecimalType(int(decimal[1]), int(decimal[2]))
    return _PLAIN.get(kind)


def stored_type(kind: str) -> I.IcebergType | None:
    """The type that a stored column of one value was written as by a table; None where unclear."""
    kind = plain_kind(kind)
    fixed, moment = FIXED.fullmatch(kind), MOMENT.fullmatch(kind)
    if fixed is not None:
        return I.FixedType(int(fixed[1]))
    if kind == INT96:
        return I.TimestamptzType()
    if moment is not None:
        has_zone = "tz=" in kind
        if moment[1] == "ns":
            return I.TimestamptzNanoType() if has_zone else I.TimestampNanoType()
        return I.TimestamptzType() if has_zone else I.TimestampType()
    return number_or_text(kind)
