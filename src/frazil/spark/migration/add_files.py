"""Data files that are already there become part of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from frazil.format.html_text import ShownInNotebooks
from frazil.format.snapshots.summaries import CHANGED_PARTITION_COUNT
from frazil.spark.migration.importing import Importer
from frazil.spark.migration.sources import source_of
from frazil.spark.port import SparkHandlePort
from frazil.spark.write.write_audit_publish import destination
from frazil.table.snapshots.add_files import AddFiles
from frazil.table.snapshots.producer import snapshot_options
from frazil.table.updates.name_mapping import learn_names


@dataclass(frozen=True, slots=True)
class AddFilesResult(ShownInNotebooks):
    """What was added.

    Attributes:
        added_files_count: data files.
        changed_partition_count: partitions that they are of; 1 for an unpartitioned table.
    """

    added_files_count: int = 0
    changed_partition_count: int = 0

    def __repr__(self) -> str:
        return "\n".join(
            [
                "Addition of files",
                f"  added_files_count        {self.added_files_count:,}",
                f"  changed_partition_count  {self.changed_partition_count:,}",
            ]
        )


def add_files(
    table: SparkHandlePort,
    source: str,
    *,
    file_format: str | None = None,
    partition_filter: Mapping[str, Any] | None = None,
    check_duplicate_files: bool = True,
    parallelism: int | None = None,
    branch: str | None = None,
    snapshot_properties: Mapping[str, str] | None = None,
) -> AddFilesResult:
    """Add a source's files in one commit, with the name mapping that they need.

    See `TableMaintenance.add_files`.
    """
    with table.together() as together:
        base = together.newest()
        target = destination(table.spark, base, branch)
        together.head(target, base)
        settings = together.settings(base, target, snapshot_properties)
        importer = Importer(table.spark, table.io, base, table.name, parallelism)
        found = source_of(table.spark, table.io, source, file_format)
        if not len(found.files):
            return AddFilesResult()
        imported = importer.files_of(found, partition_filter)
        together.run(learn_names(base, imported.names))
        operation = AddFiles(
            table.io,
            imported.entries,
            snapshot_options(**settings),
            check_duplicates=check_duplicate_files,
        )
        together.run(operation)
        summary = together.metadata.snapshot_by_id(operation.snapshot_id).summary or {}
    return AddFilesResult(len(imported.entries), int(summary.get(CHANGED_PARTITION_COUNT, 0)))
