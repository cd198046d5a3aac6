"""Types as Hive writes them: what is nested, and decimals, around names of one's own."""

from __future__ import annotations

from collections.abc import Callable

from frazil.format.types import DecimalType, IcebergType, ListType, MapType, StructType


def type_text(value_type: IcebergType, name_of: Callable[[IcebergType], str]) -> str:
    """Return the text of a type, whose other primitive types `name_of` names.

    >>> type_text(ListType(1, DecimalType(9, 2)), str)
    'array<decimal(9,2)>'
    """
    match value_type:
        case DecimalType():
            return f"decimal({value_type.precision},{value_type.scale})"
        case StructType():
            inner = (
                f"{each.name}:{type_text(each.field_type, name_of)}" for each in value_type.fields
            )
            return f"struct<{','.join(inner)}>"
        case ListType():
            return f"array<{type_text(value_type.element_type, name_of)}>"
        case MapType():
            key = type_text(value_type.key_type, name_of)
            return f"map<{key},{type_text(value_type.value_type, name_of)}>"
    return name_of(value_type)
