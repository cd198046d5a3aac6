"""The summary of a snapshot that adds and removes files (rule 303)."""

from __future__ import annotations

from collections.abc import Iterable

from frazil.format.manifests import DataFile
from frazil.format.metadata import TableMetadata
from frazil.format.properties.table import SUMMARY_PARTITION_LIMIT
from frazil.format.snapshots import Snapshot, SummaryBuilder


def summarize(
    operation: str,
    *,
    metadata: TableMetadata,
    parent: Snapshot | None,
    added: Iterable[DataFile],
    removed: Iterable[DataFile],
) -> dict[str, str]:
    """The operation, what was added and removed, and totals that go on from the parent's."""
    builder = SummaryBuilder(
        specs=metadata.specs_by_id,
        schema=metadata.schema,
        partition_limit=SUMMARY_PARTITION_LIMIT.of(metadata.properties),
    )
    for file in added:
        builder.add_file(file)
    for file in removed:
        builder.remove_file(file)
    return builder.build(operation, previous=parent)
