"""Table metadata: the value, its JSON, and how it begins (SPEC 2.S)."""

from __future__ import annotations

from frazil.format.metadata_json import (
    metadata_from_json,
    metadata_to_bytes,
    metadata_to_gzip_bytes,
    metadata_to_json,
    parse_metadata,
)
from frazil.format.new_table import (
    creation_updates,
    new_table_metadata,
    replaced_table_metadata,
    replacement_updates,
)
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
    "creation_updates",
    "metadata_from_json",
    "metadata_to_bytes",
    "metadata_to_gzip_bytes",
    "metadata_to_json",
    "new_table_metadata",
    "parse_metadata",
    "replaced_table_metadata",
    "replacement_updates",
]
