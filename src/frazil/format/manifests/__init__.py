"""Manifest entries and manifest lists, and what they inherit (rules 101-127, 132-141, 161-170)."""

from __future__ import annotations

from frazil.format.manifests.model import (
    UNASSIGNED_SEQUENCE_NUMBER,
    Content,
    DataFile,
    EntryStatus,
    FieldSummary,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
    assign_first_row_ids,
    assign_sequence_numbers,
    entry_schema,
    manifest_list_schema,
)

__all__ = [
    "UNASSIGNED_SEQUENCE_NUMBER",
    "Content",
    "DataFile",
    "EntryStatus",
    "FieldSummary",
    "FileFormat",
    "ManifestContent",
    "ManifestEntry",
    "ManifestFile",
    "assign_first_row_ids",
    "assign_sequence_numbers",
    "entry_schema",
    "manifest_list_schema",
]
