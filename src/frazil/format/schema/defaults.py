"""Checks of the values of fields that are not there (SPEC rules 30-41)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from frazil.errors import ValidationError
from frazil.format.types import NestedField


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
