"""Manifest entries and manifest lists, and what they inherit (SPEC 2.J, 2.L, 2.M, 2.P)."""

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
    inherit,
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
    "inherit",
    "manifest_list_schema",
]
