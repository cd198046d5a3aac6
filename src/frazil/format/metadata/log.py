"""The log of previous metadata files (rule 190)."""

from __future__ import annotations

from dataclasses import replace

from frazil.format.metadata.table_metadata import TableMetadata
from frazil.format.properties.table import PREVIOUS_VERSIONS_MAX
from frazil.format.snapshots import MetadataLogEntry


def with_previous_metadata(
    metadata: TableMetadata, location: str, *, updated_ms: int
) -> TableMetadata:
    """The metadata with the file that it replaces appended to its log.

    The oldest entries go, so that `write.metadata.previous-versions-max` (100, at least 1) remain.
    `location` is the metadata file that is current until then, `updated_ms` its `last_updated_ms`.
    """
    kept = max(1, PREVIOUS_VERSIONS_MAX.of(metadata.properties))
    log = (*metadata.metadata_log, MetadataLogEntry(updated_ms, location))
    return replace(metadata, metadata_log=log[-kept:])


def dropped_metadata_files(before: TableMetadata, after: TableMetadata) -> tuple[str, ...]:
    """The metadata files that the log of `before` tracks and that of `after` no longer does."""
    tracked = {entry.metadata_file for entry in after.metadata_log}
    return tuple(
        entry.metadata_file for entry in before.metadata_log if entry.metadata_file not in tracked
    )
