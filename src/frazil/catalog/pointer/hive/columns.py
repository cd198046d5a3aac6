"""Columns as Hive knows them."""

from __future__ import annotations

from typing import Final

from frazil.format.schema import Schema
from frazil.format.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
    VariantType,
)

_ZONED = (TimestamptzType, TimestamptzNanoType)
_NAMES: Final[dict[type[IcebergType], str]] = {
    BooleanType: "boolean",
    IntegerType: "int",
    LongType: "bigint",
    FloatType: "float",
    DoubleType: "double",
    DateType: "date",
    TimeType: "string",
    StringType: "string",
    UUIDType: "string",
    TimestampType: "timestamp",
    TimestampNanoType: "timestamp",
    TimestamptzType: "timestamp with local time zone",
    TimestamptzNanoType: "timestamp with local time zone",
    FixedType: "binary",
    BinaryType: "binary",
    GeometryType: "binary",
    GeographyType: "binary",
    VariantType: "unknown",
    UnknownType: "void",
}
"""As Java's HiveSchemaUtil has them; it has none for the types of v3 but variant."""


def hive_columns(schema: Schema, *, hive2_compatible: bool) -> list[tuple[str, str, str | None]]:
    """Return name, type and comment of each column.

    `hive2_compatible` is without ``timestamp with local time zone``, which Hive 2 does not know.
    """
    return [
        (field.name, hive_type(field.field_type, hive2_compatible), field.doc)
        for field in schema.fields
    ]


def hive_type(value_type: IcebergType, hive2_compatible: bool) -> str:
    """Return the text of a type.

    >>> hive_type(ListType(1, LongType()), False)
    'array<bigint>'
    """
    match value_type:
        case DecimalType():
            return f"decimal({value_type.precision},{value_type.scale})"
        case StructType():
            inner = (
                f"{field.name}:{hive_type(field.field_type, hive2_compatible)}"
                for field in value_type.fields
            )
            return f"struct<{','.join(inner)}>"
        case ListType():
            return f"array<{hive_type(value_type.element_type, hive2_compatible)}>"
        case MapType():
            key = hive_type(value_type.key_type, hive2_compatible)
            return f"map<{key},{hive_type(value_type.value_type, hive2_compatible)}>"
    if hive2_compatible and isinstance(value_type, _ZONED):
        return "timestamp"
    return _NAMES[type(value_type)]
