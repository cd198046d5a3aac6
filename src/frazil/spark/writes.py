"""Writes: what a DataFrame does to a table, on a handle or within a transaction."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager

from pyspark.sql import DataFrame, SparkSession

from frazil.format.manifests import DataFile
from frazil.format.predicates.expressions import Expression
from frazil.format.schema import Schema
from frazil.spark.copy_on_write import Overwriting
from frazil.spark.session import is_case_sensitive
from frazil.spark.write.files import WriteProgress, write_data_files
from frazil.spark.write_audit_publish import Destination, destination
from frazil.table.operations import TableOperations
from frazil.table.validation import Isolation, Validation

OnProgress = Callable[[WriteProgress], None]


class Writes(TableOperations):
    """Appends and overwrites by DataFrame.

    Columns match by name. Options are the Java runtime's write options, as
    ``options={"distribution-mode": "none"}``.
    """

    @property
    @abstractmethod
    def spark(self) -> SparkSession:
        """The session that moves the data."""

    @abstractmethod
    def _committing(self, files: Sequence[DataFile]) -> AbstractContextManager[None]:
        """The block that makes written files part of the table, and removes them if it fails."""

    def append(
        self,
        df: DataFrame,
        *,
        branch: str | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
        on_progress: OnProgress | None = None,
    ) -> None:
        """Add a DataFrame's rows in one commit.

        Args:
            df: the rows; columns are matched by name, optional ones may be missing.
            branch: the branch to write to; `main` unless given.
            snapshot_properties: entries for the snapshot's summary.
            options: write options by the Java runtime's names.
            on_progress: called as files are written.

        Raises:
            SchemaMismatchError: the rows do not fit; nothing was written.
            NoSuchRefError: there is no such branch.
            CommitFailedException: other writers kept being first; the files were removed.
            CommitStateUnknownException: the outcome is unknown; nothing was removed.
        """
        self._prepare()
        target = destination(self.spark, self.metadata, branch)
        target.head(self.metadata)
        files = self._write(df, options, on_progress)
        with self._committing(files):
            self._make_branch(target)
            self.commit_append(
                files,
                branch=target.branch,
                snapshot_properties=snapshot_properties,
                wap_id=target.wap_id,
            )

    def overwrite(
        self,
        df: DataFrame,
        *,
        where: str | Expression | None = None,
        isolation: Isolation | None = None,
        validate_from_snapshot_id: int | None = None,
        branch: str | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
        on_progress: OnProgress | None = None,
    ) -> None:
        """Replace the rows that match a predicate, or all rows, by a DataFrame's, in one commit.

        Files whose rows all match are dropped by metadata; a file of which only some match is
        rewritten without those. Rows that others change meanwhile in a rewritten file are a
        ConflictError, never lost.

        Args:
            df: the new rows; they need not match the predicate.
            where: which rows go; all unless given.
            isolation: ``serializable`` also refuses rows that others added meanwhile and that
                match, ``snapshot`` only what they deleted; unless given, matching rows that
                others added are replaced too.
            validate_from_snapshot_id: look for such changes from here on; what this call reads
                unless given.

        Raises:
            ConflictError: a concurrent commit contradicts it; nothing was changed.
            PredicateError: the predicate does not fit the schema.
            SchemaMismatchError: the rows do not fit; nothing was written.
        """
        self._prepare()
        target = destination(self.spark, self.metadata, branch)
        overwriting = Overwriting.planned(
            self.spark,
            self.metadata,
            self.io,
            where=where,
            head=target.head(self.metadata),
            case_sensitive=is_case_sensitive(self.spark),
        )
        rows, schema = overwriting.rows(df)
        files = self._write(rows, options, on_progress, schema=schema)
        with self._committing(files):
            self._make_branch(target)
            self.commit_overwrite(
                files,
                removed_paths=overwriting.rewritten_paths,
                where=overwriting.where,
                validation=overwriting.validation(isolation, validate_from_snapshot_id),
                case_sensitive=overwriting.case_sensitive,
                branch=target.branch,
                snapshot_properties=snapshot_properties,
                wap_id=target.wap_id,
            )

    def overwrite_partitions(
        self,
        df: DataFrame,
        *,
        isolation: Isolation | None = None,
        validate_from_snapshot_id: int | None = None,
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
        """
        self._prepare()
        target = destination(self.spark, self.metadata, branch)
        head = target.head(self.metadata)
        files = self._write(df, options, on_progress)
        if not files:
            return
        validation = None
        if isolation is not None:
            read = head.snapshot_id if head is not None else None
            start = validate_from_snapshot_id if validate_from_snapshot_id is not None else read
            validation = Validation(start, isolation)
        with self._committing(files):
            self._make_branch(target)
            self.commit_replace_partitions(
                files,
                validation=validation,
                branch=target.branch,
                snapshot_properties=snapshot_properties,
                wap_id=target.wap_id,
            )

    # -- parts -----------------------------------------------------------------------------------

    def _write(
        self,
        df: DataFrame,
        options: Mapping[str, str] | None,
        on_progress: OnProgress | None,
        *,
        schema: Schema | None = None,
    ) -> list[DataFile]:
        return write_data_files(
            self.spark,
            df,
            metadata=self.metadata,
            io=self.io,
            options=options,
            schema=schema,
            on_progress=on_progress,
        )

    def _make_branch(self, target: Destination) -> None:
        if target.makes_branch and target.branch is not None:
            self.create_branch(target.branch)
