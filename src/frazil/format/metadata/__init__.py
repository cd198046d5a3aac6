"""Table metadata: the value, its JSON, and how it begins (rules 191-202)."""

from __future__ import annotations

from frazil.format.metadata.json_form import (
    metadata_from_json,
    metadata_to_bytes,
    metadata_to_gzip_bytes,
    metadata_to_json,
    parse_metadata,
    unpacked_metadata,
)
from frazil.format.metadata.table_metadata import (
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
    "metadata_from_json",
    "metadata_to_bytes",
    "metadata_to_gzip_bytes",
    "metadata_to_json",
    "parse_metadata",
    "unpacked_metadata",
]
