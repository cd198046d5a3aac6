"""Data files that are already there become part of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from frazil.format.html_text import ShownInNotebooks
from frazil.format.snapshots.summaries import CHANGED_PARTITION_COUNT
from frazil.spark.migration.importing import Importer
from frazil.spark.migration.sources import source_of
from frazil.spark.port import SparkHandlePort
from frazil.spark.row_level.options import CommitOptions
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportFiles:
    """Make files of a folder or of a Spark table files of a table, as they are.

    Attributes:
        source: a name in Spark's session catalog, or a path.
        file_format: of the files below a path.
        partition_filter: only partitions with these values by column; None is NULL.
        check_duplicate_files: refuse files that the table has.
        parallelism: how many footers a process reads beside each other.
        options: where the snapshot goes, and what its summary says.
    """

    source: str
    file_format: str | None = None
    partition_filter: Mapping[str, Any] | None = None
    check_duplicate_files: bool = True
    parallelism: int | None = None
    options: CommitOptions = field(default_factory=CommitOptions)

    def run(self, port: SparkHandlePort) -> AddFilesResult:
        """Run it, with the name mapping that the files need; see `TableMaintenance.add_files`."""
        with port.in_one_commit() as together:
            base = together.newest()
            target = destination(port.spark, base, self.options.branch)
            together.head(target, base)
            settings = together.settings(base, target, self.options.snapshot_properties)
            importer = Importer(port.spark, port.io, base, port.name, self.parallelism)
            found = source_of(port.spark, port.io, self.source, self.file_format)
            if not len(found.files):
                return AddFilesResult()
            entries, names = importer.files_of(found, self.partition_filter)
            together.run(learn_names(base, names))
            operation = AddFiles(
                port.io,
                entries,
                snapshot_options(**settings),
                check_duplicates=self.check_duplicate_files,
            )
            together.run(operation)
            summary = together.metadata.snapshot_by_id(operation.snapshot_id).summary or {}
        return AddFilesResult(len(entries), int(summary.get(CHANGED_PARTITION_COUNT, 0)))
