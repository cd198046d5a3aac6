"""Schemas: columns with an id, identifier fields, lookups by name and id (rules 14-42, 64-67)."""

from __future__ import annotations

from frazil.format.schema.schema import (
    Schema,
)

__all__ = [
    "Schema",
]
