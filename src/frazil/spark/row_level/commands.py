"""The commands that change a table's rows, as methods of a table and of a transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from pyspark.sql import Column, SparkSession

from frazil.later import later
from frazil.spark.row_level.values.names import SOURCE, TARGET
from frazil.table.operations import TableOperations

if TYPE_CHECKING:
    from frazil.format.predicates.expressions import Expression
    from frazil.spark.port import SparkPort
    from frazil.spark.row_level.delete import Delete
    from frazil.spark.row_level.figures import ChangeResult
    from frazil.spark.row_level.merging.builder import MergeBuilder
    from frazil.spark.row_level.merging.merge import Merge
    from frazil.spark.row_level.merging.upsert import NullKeys, Upsert
    from frazil.spark.row_level.options import (
        CommitKwargs,
        CommitOptions,
        OverwriteKwargs,
        WriteKwargs,
        write_options,
    )
    from frazil.spark.row_level.update import Update
    from frazil.spark.row_level.writes import Append, Overwrite, OverwritePartitions, Rows
else:
    Delete = later("frazil.spark.row_level.delete", "Delete")
    MergeBuilder = later("frazil.spark.row_level.merging.builder", "MergeBuilder")
    Merge = later("frazil.spark.row_level.merging.merge", "Merge")
    Upsert = later("frazil.spark.row_level.merging.upsert", "Upsert")
    CommitOptions, write_options = later(
        "frazil.spark.row_level.options", "CommitOptions", "write_options"
    )
    Update = later("frazil.spark.row_level.update", "Update")
    Append, Overwrite, OverwritePartitions = later(
        "frazil.spark.row_level.writes", "Append", "Overwrite", "OverwritePartitions"
    )


class RowCommands(TableOperations):
    """Commands that change rows.

    Columns match by name. Options are the Java runtime's write options, as
    ``options={"distribution-mode": "none"}``. How single rows are changed is the table's to say:
    ``write.delete.mode``, ``write.update.mode`` and ``write.merge.mode`` are ``copy-on-write``
    (files with changed rows are written anew) or ``merge-on-read`` (deleted rows are marked in
    delete files, in version 3 in deletion vectors).
    """

    port: SparkPort

    @property
    def spark(self) -> SparkSession:
        """The session that moves the data."""
        return self.port.spark

    def append(self, df: Rows, **write: Unpack[WriteKwargs]) -> ChangeResult:
        """Add a DataFrame's rows in one commit.

        Args:
            df: the rows: a DataFrame of Spark, pandas or Polars, a PyArrow table, or a table or
                scan of Frazil; columns are matched by name, optional ones may be missing.
            write: see `WriteKwargs`.

        Returns:
            What was added.

        Raises:
            SchemaMismatchError: the rows do not fit; nothing was written.
            NoSuchRefError: there is no such branch.
            CommitFailedError: other writers kept being first; the files were removed.
            CommitStateUnknownError: the outcome is unknown; nothing was removed.

        Examples:
            >>> trips.append(df)
            >>> trips.append(trips.scan("id < 10"), snapshot_properties={"job": "nightly"})
        """
        return Append(rows=df, options=write_options(**write)).run(self.port)

    def overwrite(
        self,
        df: Rows,
        *,
        where: str | Column | Expression | None = None,
        **write: Unpack[OverwriteKwargs],
    ) -> ChangeResult:
        """Replace the rows that match a condition, or all rows, by a DataFrame's, in one commit.

        Files whose rows all match are dropped by metadata; a file of which only some match is
        rewritten without those. Rows that others change meanwhile in a rewritten file are a
        ConflictError, never lost.

        Args:
            df: the new rows; they need not match the predicate.
            where: which rows go: any condition of Spark as SQL text or as a `Column`, sub-queries
                too, or an expression; all unless given. A condition with a sub-query or the time of
                day is evaluated once, and a random one is refused.
            write: see `OverwriteKwargs`.

        Returns:
            What came and went.

        Raises:
            ConflictError: a concurrent commit contradicts it; nothing was changed.
            PredicateError: the condition does not fit the schema, or is refused by Spark.
            SchemaMismatchError: the rows do not fit; nothing was written.

        Examples:
            >>> trips.overwrite(df.where("city = 'Oslo'"), where="city = 'Oslo'")
        """
        return Overwrite(rows=df, where=where, options=CommitOptions(**write)).run(self.port)

    def overwrite_partitions(self, df: Rows, **write: Unpack[OverwriteKwargs]) -> ChangeResult:
        """Replace exactly the partitions that the DataFrame has rows for (dynamic overwrite).

        An unpartitioned table is replaced whole. Without rows nothing is replaced. A partition is
        one of the current spec: files that an earlier spec wrote stay, as in the Java runtime, and
        their rows beside the new ones. Rewrite them first, with ``compact(rewrite_all=True)``, or
        overwrite by a condition.

        Args:
            df: the new rows.
            write: see `OverwriteKwargs`.

        Returns:
            What came and went.

        Raises:
            ConflictError: with `isolation`, a concurrent commit touched these partitions.
            SchemaMismatchError: the rows do not fit; nothing was written.

        Examples:
            >>> trips.overwrite_partitions(df.where("id < 10"))
        """
        return OverwritePartitions(rows=df, options=CommitOptions(**write)).run(self.port)

    def delete(
        self, where: str | Column | Expression, **commit: Unpack[CommitKwargs]
    ) -> ChangeResult:
        """Delete the rows for which a condition is true, in one commit.

        Files of which every row matches go by metadata alone. Rows for which the condition is NULL
        stay.

            table.delete("ts < '2023-01-01' or city is null")

        Args:
            where: any condition on a row that Spark can evaluate, sub-queries too, as SQL text, a
                Column or an expression; ``"true"`` deletes every row.
            commit: see `CommitKwargs`.

        Returns:
            The figures of the command.

        Raises:
            PredicateError: the condition cannot be used.
            ConflictError: a concurrent commit contradicts it; nothing was changed.
        """
        return Delete(where=where, options=CommitOptions(**commit)).run(self.port)

    def update(
        self,
        set: Mapping[str, Any],
        where: str | Column | Expression | None = None,
        **commit: Unpack[CommitKwargs],
    ) -> ChangeResult:
        """Change the rows for which a condition is true, in one commit.

            table.update(set={"fare": "fare * 1.1", "s.note": "lower(s.note)"}, where="id = 7")

        Args:
            set: the new values by column, or by field of a struct as ``"s.x"``: SQL text over the
                row as it was, a Column, or a Python value that is no text.
            where: which rows, as of `delete`; all of them unless given.
            commit: see `CommitKwargs`.

        Returns:
            The figures of the command.

        Raises:
            PredicateError: the condition cannot be used.
            ValidationError: a value cannot be computed, or names no column of the table.
            SchemaMismatchError: a value's type does not fit its column.
            ConflictError: a concurrent commit contradicts it; nothing was changed.
        """
        return Update(assignments=set, where=where, options=CommitOptions(**commit)).run(self.port)

    def merge(
        self,
        source: Rows,
        on: str | Column | Sequence[str],
        *,
        target_alias: str = TARGET,
        source_alias: str = SOURCE,
        **commit: Unpack[CommitKwargs],
    ) -> MergeBuilder:
        """Begin a merge of a source's rows into the table; its clauses and `execute` follow.

            trips.merge(corrections, on="target.id = source.id").when_matched_update_all().execute()

        The source is evaluated once, also where it is random or reads the table itself.

        Args:
            source: the rows, as of `append`.
            on: when a row of the source matches a row of the table: SQL text, a Column, or the
                names of columns that are equal. Of columns by names the source's values are
                compared as the table would store them, as a timestamp as the date of a column of
                dates; NULL equals nothing. Conditions and values have them as given.
            target_alias, source_alias: what the table and the source are called in `on`, in
                conditions and in values.
            commit: see `CommitKwargs`.

        Returns:
            What the clauses are added to.
        """
        merge = Merge(
            source=source,
            on=on,
            target_alias=target_alias,
            source_alias=source_alias,
            options=CommitOptions(**commit),
        )
        return MergeBuilder(self.port, merge)

    def upsert(
        self,
        df: Rows,
        keys: str | Sequence[str] | None = None,
        *,
        null_keys: NullKeys = "distinct",
        **commit: Unpack[CommitKwargs],
    ) -> ChangeResult:
        """Replace the rows of the same keys by a DataFrame's, and add those that are new.

        Args:
            df: the rows, as of `append`; no two have the same keys.
            keys: the columns that tell rows apart; the schema's identifier fields unless given.
                They are compared as the table stores them.
            null_keys: ``distinct``: a row with NULL in a key is another one than all others, and is
                added each time. ``equal``: NULL equals NULL, as it does for `apply_changes`.
            commit: see `CommitKwargs`.

        Raises:
            ValidationError: there are no keys, or two rows have the same; nothing was changed.
            SchemaMismatchError: a column cannot hold a value; nothing was changed.
        """
        options = CommitOptions(**commit)
        return Upsert(rows=df, keys=keys, null_keys=null_keys, options=options).run(self.port)
