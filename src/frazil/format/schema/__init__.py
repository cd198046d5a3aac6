"""Schemas: columns with an id, identifier fields, lookups by name and id (SPEC 2.B, 2.C, 2.F)."""

from __future__ import annotations

from frazil.format.schema.schema import (
    Schema,
)

__all__ = [
    "Schema",
]
