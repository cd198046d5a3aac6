"""Table metadata: the value, its JSON, and how it begins (SPEC 2.S)."""

from __future__ import annotations

from frazil.format.table_metadata import (
    DEFAULT_FORMAT_VERSION,
    SUPPORTED_FORMAT_VERSIONS,
    EncryptedKey,
    TableMetadata,
)

__all__ = [
    "DEFAULT_FORMAT_VERSION",
    "SUPPORTED_FORMAT_VERSIONS",
    "EncryptedKey",
    "TableMetadata",
]
