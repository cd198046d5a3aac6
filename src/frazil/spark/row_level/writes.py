"""Writes: what a DataFrame does to a table, on a handle or within a transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession

from frazil.format.arguments import SnapshotId, optional_snapshot_id_of
from frazil.format.manifests import DataFile
from frazil.format.metadata import TableMetadata
from frazil.format.predicates.expressions import Expression
from frazil.format.schema import Schema
from frazil.format.snapshots import Snapshot
from frazil.spark.port import SparkPort
from frazil.spark.row_level.kept_rows import Overwriting
from frazil.spark.write.files import WriteProgress, write_data_files
from frazil.spark.write.row_count import ExpectedRows, rows_of_last_writes
from frazil.spark.write.rows import known_row_count, rows_of
from frazil.spark.write.write_audit_publish import Destination, destination
from frazil.table.conflicts.validation import Isolation, Validation
from frazil.table.operations import TableOperations
from frazil.table.snapshots.producer import SnapshotSettings

OnProgress = Callable[[WriteProgress], None]
Rows = Any
"""Rows to write: a DataFrame of Spark, pandas or Polars, of PyArrow, or a table or scan."""


class Writes(TableOperations):
    """Appends and overwrites by DataFrame.

    Columns match by name. Options are the Java runtime's write options, as
    ``options={"distribution-mode": "none"}``.
    """

    port: SparkPort

    @property
    def spark(self) -> SparkSession:
        """The session that moves the data."""
        return self.port.spark

    def append(
        self,
        df: Rows,
        *,
        branch: str | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
        on_progress: OnProgress | None = None,
    ) -> None:
        """Add a DataFrame's rows in one commit.

        Args:
            df: the rows: a DataFrame of Spark, pandas or Polars, a PyArrow table, or a table or
                scan of Frazil; columns are matched by name, optional ones may be missing.
            branch: the branch to write to; `main` unless given.
            snapshot_properties: entries for the snapshot's summary.
            options: write options by the Java runtime's names.
            on_progress: called as files are written.

        Raises:
            SchemaMismatchError: the rows do not fit; nothing was written.
            NoSuchRefError: there is no such branch.
            CommitFailedError: other writers kept being first; the files were removed.
            CommitStateUnknownError: the outcome is unknown; nothing was removed.

        Examples:
            >>> trips.append(df)
            >>> trips.append(trips.scan("id < 10"), snapshot_properties={"job": "nightly"})
        """
        base = self.port.newest()
        target = destination(self.spark, base, branch)
        head = self.port.head(target, base)
        settings = self.port.settings(base, target, snapshot_properties)
        rows = rows_of(self.spark, df)
        expected = _expected(df, base, head)
        files = write_rows(self.port, base, rows, options, on_progress, expected=expected)
        self.files.append(files, **owning(settings, files))

    def overwrite(
        self,
        df: Rows,
        *,
        where: str | Column | Expression | None = None,
        isolation: Isolation | None = None,
        validate_from_snapshot_id: SnapshotId | None = None,
        branch: str | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
        on_progress: OnProgress | None = None,
    ) -> None:
        """Replace the rows that match a condition, or all rows, by a DataFrame's, in one commit.

        Files whose rows all match are dropped by metadata; a file of which only some match is
        rewritten without those. Rows that others change meanwhile in a rewritten file are a
        ConflictError, never lost.

        Args:
            df: the new rows; they need not match the predicate.
            where: which rows go: any condition of Spark as SQL text or as a `Column`, sub-queries
                too, or an expression; all unless given. A condition with a sub-query or the time of
                day is evaluated once, and a random one is refused.
            isolation: ``serializable`` also refuses rows that others added meanwhile and that
                match, ``snapshot`` only what they deleted; unless given, matching rows that
                others added are replaced too, or refused where only Spark can tell which match.
            validate_from_snapshot_id: look for such changes from here on. Unless given, from the
                snapshot that this handle gave out last (`to_df`, `scan`), or that it showed when
                nothing was read; what was committed through it right after does not count.

        Raises:
            ConflictError: a concurrent commit contradicts it; nothing was changed.
            PredicateError: the condition does not fit the schema, or is refused by Spark.
            SchemaMismatchError: the rows do not fit; nothing was written.

        Examples:
            >>> trips.overwrite(df.where("city = 'Oslo'"), where="city = 'Oslo'")
        """
        base = self.port.newest()
        target = destination(self.spark, base, branch)
        head = self.port.head(target, base)
        settings = self.port.settings(base, target, snapshot_properties)
        validation = self._validation(target, head, isolation, validate_from_snapshot_id)
        overwriting = Overwriting.planned(
            self.spark,
            base,
            self.io,
            where=where,
            head=head,
            case_sensitive=self.port.case_sensitive,
        )
        rows, schema = overwriting.rows(rows_of(self.spark, df))
        files = write_rows(self.port, base, rows, options, on_progress, schema=schema)
        self.files.overwrite(
            files,
            removed=overwriting.removed,
            where=overwriting.where,
            validation=overwriting.narrowed(validation, isolation),
            case_sensitive=overwriting.case_sensitive,
            **owning(settings, files),
        )

    def overwrite_partitions(
        self,
        df: Rows,
        *,
        isolation: Isolation | None = None,
        validate_from_snapshot_id: SnapshotId | None = None,
        branch: str | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
        on_progress: OnProgress | None = None,
    ) -> None:
        """Replace exactly the partitions that the DataFrame has rows for (dynamic overwrite).

        An unpartitioned table is replaced whole. Without rows nothing is replaced.

        Raises:
            ConflictError: with `isolation`, a concurrent commit touched these partitions.
            SchemaMismatchError: the rows do not fit; nothing was written.

        Examples:
            >>> trips.overwrite_partitions(df.where("id < 10"))
        """
        base = self.port.newest()
        target = destination(self.spark, base, branch)
        head = self.port.head(target, base)
        settings = self.port.settings(base, target, snapshot_properties)
        validation = self._validation(target, head, isolation, validate_from_snapshot_id)
        rows = rows_of(self.spark, df)
        expected = _expected(df, base, head)
        files = write_rows(self.port, base, rows, options, on_progress, expected=expected)
        if not files:
            return
        self.files.replace_partitions(
            files,
            validation=validation if isolation is not None else None,
            **owning(settings, files),
        )

    # -- parts -----------------------------------------------------------------------------------

    def _validation(
        self,
        target: Destination,
        head: Snapshot | None,
        isolation: Isolation | None,
        validate_from_snapshot_id: SnapshotId | None,
    ) -> Validation:
        """Return from where on others' commits are checked.

        With an isolation level that is what the user has read through the handle; without one
        only what this call reads itself must not change.
        """
        start = optional_snapshot_id_of(validate_from_snapshot_id, "validate_from_snapshot_id")
        if start is None and isolation is not None:
            start = self.port.read_point(target.branch if not target.makes_branch else None)
        elif start is None:
            start = None if head is None else head.snapshot_id
        return Validation(start, isolation or "snapshot", check_deletes=isolation is not None)


def write_rows(
    port: SparkPort,
    base: TableMetadata,
    df: DataFrame,
    options: Mapping[str, str] | None,
    on_progress: OnProgress | None,
    *,
    schema: Schema | None = None,
    expected: ExpectedRows | None = None,
) -> list[DataFile]:
    """Write rows as data files of a table, which nothing refers to yet."""
    return write_data_files(
        port.spark,
        df,
        metadata=base,
        io=port.io,
        options=options,
        schema=schema,
        expected=expected,
        on_progress=on_progress,
    )


def _expected(rows: Rows, base: TableMetadata, head: Snapshot | None) -> ExpectedRows | None:
    """How much is written: as many rows as are known, else as many as usually."""
    usual, known = rows_of_last_writes(base, head), known_row_count(rows)
    if known is None:
        return usual
    return ExpectedRows(rows=known) if usual is None else replace(usual, rows=known)


def owning(settings: SnapshotSettings, files: Sequence[DataFile]) -> SnapshotSettings:
    """Return settings of a commit with which the files go if it does not take place."""
    return {**settings, "own_files": tuple(file.file_path for file in files)}
