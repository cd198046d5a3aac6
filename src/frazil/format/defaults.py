"""The values of fields that are not there (SPEC rules 30-41)."""

from __future__ import annotations

from typing import Any

from frazil.errors import ValidationException
from frazil.format.types import NestedField, StructType


def initial_value(field: NestedField) -> Any:
    """The internal value of a field in rows that were written before it was added (rules 30, 33).

    A struct's empty default becomes the tuple of its fields' own initial values (rules 39, 40).
    """
    if field.initial_default is not None and isinstance(field.field_type, StructType):
        return tuple(initial_value(nested) for nested in field.field_type.fields)
    return field.initial_default


def write_value(field: NestedField) -> Any:
    """The internal value that a writer stores where none is supplied (rules 31, 33, 40).

    Raises:
        ValidationException: where the field is required and has no write default (rule 32).
    """
    if field.write_default is None:
        if field.required:
            raise ValidationException(
                f"the column {field.name!r} is required, has no write default, and no value was "
                "supplied"
            )
        return None
    if isinstance(field.field_type, StructType):
        return tuple(write_value(nested) for nested in field.field_type.fields)
    return field.write_default


def check_added_field(field: NestedField) -> None:
    """A required field that is added to a schema needs both defaults, also below it (rule 36).

    Raises:
        ValidationException: naming the field and the default that is missing.
    """
    if not field.required:
        return
    if field.initial_default is None or field.write_default is None:
        missing = "an initial" if field.initial_default is None else "a write"
        raise ValidationException(
            f"the required column {field.name!r} cannot be added without {missing} default: "
            "rows that exist have no value for it"
        )
