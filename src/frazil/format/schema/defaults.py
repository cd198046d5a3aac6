"""The values of fields that are not there (SPEC rules 30-41)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from frazil.errors import ValidationError
from frazil.format.types import NestedField, StructType


def initial_value(field: NestedField) -> Any:
    """The internal value of a field in rows that were written before it was added (rules 30, 33).

    A struct's empty default becomes the tuple of its fields' own initial values (rules 39, 40).
    """
    if field.initial_default is not None and isinstance(field.field_type, StructType):
        return tuple(initial_value(nested) for nested in field.field_type.fields)
    return field.initial_default


def write_value(field: NestedField) -> Any:
    """The internal value that a writer stores where none is supplied (rules 31, 33, 40)."""
    if field.write_default is None:
        if field.required:
            raise ValidationError(
                f"the column {field.name!r} is required, has no write default, and no value was "
                "supplied"
            )
        return None
    if isinstance(field.field_type, StructType):
        return tuple(write_value(nested) for nested in field.field_type.fields)
    return field.write_default


def check_new_defaults(fields: Iterable[NestedField]) -> None:
    """Check that the defaults of new fields can be written to table metadata.

    JSON has no number for NaN and the infinities. The Java runtime writes them as text, which it
    then refuses to read, and the table with it.
    """
    for field in fields:
        for value in (field.initial_default, field.write_default):
            check_default_value(field.name, value)


def check_default_value(name: str, value: Any) -> None:
    """Check one default; see `check_new_defaults`."""
    if not _is_finite(value):
        raise ValidationError(
            f"{value!r} cannot be the default of column {name!r}: table metadata can hold no NaN "
            "and no infinity as a default; add the column without one"
        )


def _is_finite(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_finite, value))
    return not isinstance(value, float) or math.isfinite(value)
