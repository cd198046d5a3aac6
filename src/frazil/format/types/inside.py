"""What is inside of a type: its fields, and the types at any depth."""

from __future__ import annotations

from frazil.format.types.model import IcebergType, ListType, MapType, NestedField, StructType


def fields_inside(kind: IcebergType) -> tuple[NestedField, ...]:
    """The fields of a struct, list or map; none of another type."""
    return kind.fields if isinstance(kind, StructType | ListType | MapType) else ()


def holds_type(kind: IcebergType, *wanted: type[IcebergType]) -> bool:
    """Whether a type, or one at any depth inside of it, is of one of the wanted classes."""
    return isinstance(kind, wanted) or any(
        holds_type(each.field_type, *wanted) for each in fields_inside(kind)
    )
