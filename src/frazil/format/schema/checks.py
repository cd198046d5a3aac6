"""What a schema must keep: identifier fields, types and defaults of a format version."""

from __future__ import annotations

from collections.abc import Iterable

from frazil.errors import ValidationError
from frazil.format.schema.index import SchemaIndex
from frazil.format.types import (
    DoubleType,
    FloatType,
    GeographyType,
    GeometryType,
    NestedField,
    PrimitiveType,
    StructType,
    TimestampNanoType,
    TimestamptzNanoType,
    UnknownType,
    VariantType,
)

HIGHEST_FIELD_ID = 2_147_483_447
"""Ids above it are reserved for metadata columns (rule 66)."""

_V3_TYPES = (
    UnknownType,
    VariantType,
    GeometryType,
    GeographyType,
    TimestampNanoType,
    TimestamptzNanoType,
)
_NULL_DEFAULT_TYPES = (UnknownType, VariantType, GeometryType, GeographyType)


def check_identifier_fields(index: SchemaIndex, field_ids: Iterable[int]) -> None:
    """Identifier fields are required primitives, not floating, in required structs (rule 65)."""
    for field_id in field_ids:
        field = index.fields.get(field_id)
        if field is None:
            raise ValidationError(f"there is no column of id {field_id} to identify rows by")
        name = ".".join(index.paths[field_id])
        if not isinstance(field.field_type, PrimitiveType):
            raise ValidationError(
                f"{name!r} cannot identify rows: {field.field_type} is not a primitive"
            )
        if field.optional:
            raise ValidationError(f"{name!r} cannot identify rows: it is optional")
        if isinstance(field.field_type, FloatType | DoubleType):
            raise ValidationError(f"{name!r} cannot identify rows: it is a floating number")
        if field_id in index.in_collections:
            raise ValidationError(f"{name!r} cannot identify rows: it is in a list or a map")
        parent = index.parents.get(field_id)
        while parent is not None:
            if index.fields[parent].optional:
                raise ValidationError(
                    f"{name!r} cannot identify rows: it is in the optional struct "
                    f"{'.'.join(index.paths[parent])!r}"
                )
            parent = index.parents.get(parent)


def check_schema(index: SchemaIndex, format_version: int) -> None:
    """Types, defaults and ids fit the format version (rules 17, 29, 36, 38, 39, 66)."""
    for field_id, field in index.fields.items():
        name = ".".join(index.paths[field_id])
        if not 0 <= field_id <= HIGHEST_FIELD_ID:
            raise ValidationError(
                f"the id {field_id} of {name!r} is out of range: 0 to {HIGHEST_FIELD_ID}"
            )
        if format_version < 3:
            _check_before_v3(field, name, format_version)
        if isinstance(field.field_type, UnknownType) and field.required:
            raise ValidationError(f"{name!r} is of type unknown and must be optional")
        _check_defaults(field, name)


def _check_before_v3(field: NestedField, name: str, format_version: int) -> None:
    if isinstance(field.field_type, _V3_TYPES):
        raise ValidationError(
            f"{name!r} is of type {field.field_type}, which needs format version 3; "
            f"the table has version {format_version}"
        )
    if field.initial_default is not None:
        raise ValidationError(
            f"{name!r} has an initial default, which needs format version 3; "
            f"the table has version {format_version}: set its property format-version to 3"
        )


def _check_defaults(field: NestedField, name: str) -> None:
    for kind, value in (("initial", field.initial_default), ("write", field.write_default)):
        if value is None:
            continue
        if isinstance(field.field_type, _NULL_DEFAULT_TYPES):
            raise ValidationError(
                f"the {kind} default of {name!r} must be null: its type is {field.field_type}"
            )
        if isinstance(field.field_type, StructType) and value != ():
            raise ValidationError(
                f"the {kind} default of the struct {name!r} must be null or empty; give its "
                "fields defaults of their own"
            )
