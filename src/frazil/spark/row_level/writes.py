"""Commands that write a DataFrame's rows: append, overwrite by condition, overwrite partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import Column

from frazil.format.arguments import optional_snapshot_id_of
from frazil.format.manifests import DataFile
from frazil.format.predicates.expressions import Expression
from frazil.format.snapshots import Snapshot
from frazil.spark.port import SparkPort
from frazil.spark.row_level.figures import ChangeResult
from frazil.spark.row_level.options import CommitOptions
from frazil.spark.row_level.overwrite_plan import OverwritePlan
from frazil.spark.row_level.start import Start, owning
from frazil.spark.write.row_count import ExpectedRows, rows_of_last_writes
from frazil.spark.write.rows import known_row_count, rows_of
from frazil.table.conflicts.validation import Validation
from frazil.table.file_changes import FileChanges
from frazil.table.snapshots.overwrite import ReplacePartitions
from frazil.table.snapshots.producer import snapshot_options

Rows = Any
"""Rows to write: a DataFrame of Spark, pandas or Polars, of PyArrow, or a table or scan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Append:
    """Add rows in one commit.

    Attributes:
        rows: what is added.
        options: where the snapshot goes, and how files are written.
    """

    rows: Rows
    options: CommitOptions = field(default_factory=CommitOptions)

    def run(self, port: SparkPort) -> ChangeResult:
        """Run it; see `Table.append`."""
        start = _Write.of(port, self.options)
        rows = rows_of(port.spark, self.rows)
        files = start.write_files(rows, expected=start.expected(self.rows))
        FileChanges(port).append(files, **owning(start.settings, files))
        return start.result("append", "append", files)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overwrite:
    """Put rows in place of those that match a condition, in one commit.

    Attributes:
        rows: the new rows.
        where: which rows go; all unless given.
        options: where the snapshot goes, what of others' commits conflicts, and how files are
            written.
    """

    rows: Rows
    where: str | Column | Expression | None = None
    options: CommitOptions = field(default_factory=CommitOptions)

    def run(self, port: SparkPort) -> ChangeResult:
        """Run it; see `Table.overwrite`."""
        start = _Write.of(port, self.options)
        validation = start.validation()
        plan = OverwritePlan.of(start, self.where)
        rows, schema = plan.rows(rows_of(port.spark, self.rows))
        files = start.write_files(rows, schema=schema)
        FileChanges(port).overwrite(
            files,
            removed=plan.removed,
            where=plan.where,
            validation=plan.narrowed(validation, self.options.isolation),
            case_sensitive=start.case_sensitive,
            **owning(start.settings, files),
        )
        return plan.result(start.result("overwrite", "metadata", files))


@dataclass(frozen=True, slots=True, kw_only=True)
class OverwritePartitions:
    """Put rows in place of the partitions that they belong to, in one commit.

    Attributes:
        rows: the new rows.
        options: as of `Overwrite`.
    """

    rows: Rows
    options: CommitOptions = field(default_factory=CommitOptions)

    def run(self, port: SparkPort) -> ChangeResult:
        """Run it; see `Table.overwrite_partitions`."""
        start = _Write.of(port, self.options)
        validation = start.validation()
        rows = rows_of(port.spark, self.rows)
        files = start.write_files(rows, expected=start.expected(self.rows))
        if not files:
            return start.result("overwrite", "metadata", files)
        operation = ReplacePartitions(
            port.io,
            files,
            validation=validation if self.options.isolation is not None else None,
            options=snapshot_options(**owning(start.settings, files)),
        )
        port.run(operation)
        summary = _summary(port.metadata.snapshots_by_id.get(operation.snapshot_id))
        had_deletes = _count(_summary(start.head).get("total-delete-files")) > 0
        return replace(
            start.result("overwrite", "metadata", files),
            # What the metadata counts may have been deleted before.
            rows_deleted=None if had_deletes else _count(summary.get("deleted-records")),
            files_removed=_count(summary.get("deleted-data-files")),
        )


class _Write(Start):
    """What a write starts from."""

    __slots__ = ()

    def validation(self) -> Validation:
        """Return from where on others' commits are checked.

        With an isolation level that is what the user has read through the handle; without one
        only what this call reads itself must not change.
        """
        given, isolation = self.options.validate_from_snapshot_id, self.options.isolation
        start = optional_snapshot_id_of(given, "validate_from_snapshot_id")
        if start is None and isolation is not None:
            begins = self.destination.makes_branch
            start = self.port.read_point(None if begins else self.destination.branch)
        elif start is None:
            start = self.snapshot_id
        return Validation(start, isolation or "snapshot", check_deletes=isolation is not None)

    def expected(self, rows: Rows) -> ExpectedRows | None:
        """How much is written: as many rows as are known, else as many as usually."""
        usual, known = rows_of_last_writes(self.base, self.head), known_row_count(rows)
        if known is None:
            return usual
        if usual is None:
            return ExpectedRows(rows=known)
        return replace(usual, rows=known, is_usual=False)

    def result(self, command: str, mode: str, files: Sequence[DataFile]) -> ChangeResult:
        """Return what a command did that added files."""
        return ChangeResult(
            command=command,
            mode=mode,
            snapshot_id=self.snapshot_id,
            rows_inserted=sum(file.record_count for file in files),
            files_added=len(files),
        )


def _summary(snapshot: Snapshot | None) -> Mapping[str, str]:
    return {} if snapshot is None else snapshot.summary or {}


def _count(text: str | None) -> int:
    return int(text) if text is not None and text.isdigit() else 0
