"""Manifests and manifest lists as files (SPEC rules 101-170)."""

from __future__ import annotations

from frazil.storage.avro.columns import read_file_paths, read_manifest
from frazil.storage.avro.manifests import (
    ManifestDefinition,
    decode_manifest_lists,
    manifest_bytes,
    manifests_of,
    read_manifest_list,
    write_manifest,
    write_manifest_list,
)

__all__ = [
    "ManifestDefinition",
    "decode_manifest_lists",
    "manifest_bytes",
    "manifests_of",
    "read_file_paths",
    "read_manifest",
    "read_manifest_list",
    "write_manifest",
    "write_manifest_list",
]
