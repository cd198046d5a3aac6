"""Incremental reads and changelogs as methods of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypedDict, Unpack

from pyspark.sql import Column, DataFrame

from frazil.errors import ValidationError
from frazil.format.arguments import SnapshotId, optional_snapshot_id_of, snapshot_id_of
from frazil.format.metadata import TableMetadata
from frazil.later import later
from frazil.table.handle import TableHandle
from frazil.table.time_travel import Moment

if TYPE_CHECKING:
    from frazil.format.predicates.expressions import Expression
    from frazil.format.predicates.sql.quoting import quote_name_always
    from frazil.planning.changes_range import SnapshotRange, snapshot_range
    from frazil.spark.changes.changelog import Changelog
    from frazil.spark.changes.incremental import IncrementalScan
    from frazil.spark.changes.view import changelog_arguments
    from frazil.spark.port import SparkHandlePort
else:
    quote_name_always = later("frazil.format.predicates.sql.quoting", "quote_name_always")
    snapshot_range = later("frazil.planning.changes_range", "snapshot_range")
    Changelog = later("frazil.spark.changes.changelog", "Changelog")
    IncrementalScan = later("frazil.spark.changes.incremental", "IncrementalScan")
    changelog_arguments = later("frazil.spark.changes.view", "changelog_arguments")


SnapshotOrRef: TypeAlias = "SnapshotId | str"
"""A snapshot by its id, as a number or its digits, or by the name of a branch or tag."""


class RangeKwargs(TypedDict, total=False):
    """Keywords of a range of snapshots.

    Attributes:
        from_snapshot_id: start after this one; it may be expired if what follows is kept.
        to_snapshot_id: end with this one.
        from_timestamp, to_timestamp: the same by times.
    """

    from_snapshot_id: SnapshotId | None
    to_snapshot_id: SnapshotId | None
    from_timestamp: Moment | None
    to_timestamp: Moment | None


class TableChanges(TableHandle):
    """What happened to a table between two of its snapshots.

    Every method takes the snapshot to start after and the one to end with, by id, tag, branch or
    time: the
    start itself is left out, the end is in. Without a start it is the table's first snapshot that
    is read first, without an end the current one is the last. A start by time leaves out every
    snapshot of that time or before, an end by time takes every one of that time or before; times
    are milliseconds since the epoch, ISO text (in the session's zone unless it names one), a
    datetime (local time unless it has a zone) or a date.
    """

    port: SparkHandlePort

    def incremental(
        self,
        start: SnapshotOrRef | None = None,
        end: SnapshotOrRef | None = None,
        /,
        *,
        where: str | Column | Expression | None = None,
        columns: str | Sequence[str] | None = None,
        limit: int | None = None,
        **between: Unpack[RangeKwargs],
    ) -> IncrementalScan:
        """Return the rows that `append` snapshots added, and skip all other snapshots.

        Args:
            start: start after this snapshot: its id, or a tag or branch by name.
            end: end with this one.
            where: which rows: any condition of Spark as SQL text or as a `Column`, sub-queries too,
                or an expression; what it says of single columns prunes partitions and files.
            columns: which columns in which order.
            limit: at most this many rows, any of them.
            between: the snapshots in other ways, see `RangeKwargs`.

        Raises:
            NoSuchSnapshotError, NoSuchRefError: a snapshot is unknown or has expired.
            ValidationError: the start is not an ancestor of the end.
            PredicateError: the condition does not fit the schema, or is refused by Spark.

        Examples:
            >>> trips.create_tag("before")
            >>> trips.append(df)
            >>> trips.incremental("before").to_df()
        """
        found, snapshot_id, ref = self._range(start, end, **between)
        return IncrementalScan(
            self.port.spark,
            self.metadata,
            self.io,
            snapshots=found,
            where=where,
            columns=columns,
            snapshot_id=snapshot_id,
            ref=ref,
            limit=limit,
            name=self.name,
        )

    def changes(
        self,
        start: SnapshotOrRef | None = None,
        end: SnapshotOrRef | None = None,
        /,
        *,
        where: str | Column | Expression | None = None,
        identifier_columns: str | Sequence[str] | None = None,
        **between: Unpack[RangeKwargs],
    ) -> DataFrame:
        """Every row that a snapshot inserted or deleted, whatever kind of commit did it.

        The table's columns, read with the schema of the end, and ``_change_type`` (INSERT, DELETE,
        UPDATE_BEFORE, UPDATE_AFTER), ``_change_ordinal`` (the snapshot's place in the range, from
        0) and ``_commit_snapshot_id``. Rows that a snapshot only copied to another file are not in
        it; snapshots that only rewrite files (`replace`) have none.

        Args:
            start: start after this snapshot: its id, or a tag or branch by name.
            end: end with this one.
            where: which rows, before and after a change alike: a condition as of `incremental`,
                that is not random.
            identifier_columns: the key by which a delete and an insert of one snapshot are one
                update; updates stay a delete and an insert unless given. Running the DataFrame
                fails where a snapshot that does both has two rows of one key on a side.
            between: the snapshots in other ways, see `RangeKwargs`.

        Raises:
            NoSuchSnapshotError, NoSuchRefError: a snapshot is unknown or has expired.
            ValidationError: the start is not an ancestor of the end, or a column is not there.
            PredicateError: the condition does not fit the schema, or is refused by Spark.
            UnsupportedError: a delete or a file that cannot be applied or read rightly.

        Examples:
            >>> trips.create_tag("start")
            >>> trips.delete("id < 10")
            >>> trips.changes("start", where="city = 'Oslo'")
        """
        found = self._range(start, end, **between)
        changelog = self._changelog(*found, where)
        if identifier_columns is None:
            return changelog.changes()
        return changelog.changes_with_updates(identifier_columns)

    def net_changes(
        self,
        start: SnapshotOrRef | None = None,
        end: SnapshotOrRef | None = None,
        /,
        *,
        where: str | Column | Expression | None = None,
        **between: Unpack[RangeKwargs],
    ) -> DataFrame:
        """Return the inserts and deletes that lead from the start to the end by the shortest way.

        A row that was inserted and deleted again within the range is not in it. The columns are
        those of `changes`; the snapshot told is the one that made the lasting change.

        Raises:
            NoSuchSnapshotError, NoSuchRefError, ValidationError, PredicateError,
                UnsupportedError: as `changes`.
        """
        found = self._range(start, end, **between)
        return self._changelog(*found, where).net_changes()

    def create_changelog_view(
        self,
        changelog_view: str | None = None,
        *,
        options: Mapping[str, str] | None = None,
        compute_updates: bool | None = None,
        identifier_columns: str | Sequence[str] | None = None,
        net_changes: bool = False,
    ) -> str:
        """Make a temporary view of the session of what `changes` or `net_changes` tells.

        The view shows the snapshots that this handle knows; it is made anew, not brought up to
        date.

        Args:
            changelog_view: the view's name, in SQL; the table's name and ``_changes`` unless given.
            options: ``start-snapshot-id`` and ``start-timestamp`` (left out themselves),
                ``end-snapshot-id`` and ``end-timestamp``; times in milliseconds since the epoch.
            compute_updates: tell a delete and an insert of one key as an update; on where
                `identifier_columns` are given.
            identifier_columns: the key; the table's identifier fields unless given.
            net_changes: only what is left after all snapshots.

        Returns:
            the view's name, in SQL.

        Raises:
            ConfigurationError: an option is unknown or malformed.
            ValidationError: there is no key for updates, or net changes are to have updates.
            NoSuchSnapshotError: a snapshot is unknown or has expired.

        Examples:
            >>> view = trips.create_changelog_view(net_changes=True)
            >>> spark.table(view).where("_change_type = 'DELETE'").count()
        """
        arguments = changelog_arguments(
            self.metadata.schema,
            options,
            compute_updates=compute_updates,
            identifier_columns=identifier_columns,
            net_changes=net_changes,
        )
        changes = self.net_changes(**arguments) if net_changes else self.changes(**arguments)
        view = (
            quote_name_always([f"{self.identifier[-1]}_changes"])
            if changelog_view is None
            else changelog_view
        )
        changes.createOrReplaceTempView(view)
        return view

    def _range(
        self,
        first: SnapshotOrRef | None,
        last: SnapshotOrRef | None,
        *,
        from_snapshot_id: SnapshotId | None = None,
        to_snapshot_id: SnapshotId | None = None,
        from_timestamp: Moment | None = None,
        to_timestamp: Moment | None = None,
    ) -> tuple[SnapshotRange, int | None, str | None]:
        """The range, and its end as it was asked for: rows are read with the schema of then.

        Returns:
            The range; the snapshot at its end, also where a time was given; a branch or tag.
        """
        metadata = self.metadata
        start_ms, end_ms = (
            None if moment is None else self.port.timestamp_ms(moment)
            for moment in (from_timestamp, to_timestamp)
        )
        end_id, ref = _snapshot_and_ref(metadata, "to_snapshot_id", last, to_snapshot_id)
        start_id, _ = _snapshot_and_ref(metadata, "from_snapshot_id", first, from_snapshot_id)
        found = snapshot_range(
            metadata,
            from_snapshot_id=start_id,
            to_snapshot_id=end_id,
            from_timestamp_ms=start_ms,
            to_timestamp_ms=end_ms,
        )
        is_open = ref is not None or (end_id is None and end_ms is None)
        return found, None if is_open or found.end is None else found.end.snapshot_id, ref

    def _changelog(
        self,
        found: SnapshotRange,
        snapshot_id: int | None,
        ref: str | None,
        where: str | Column | Expression | None,
    ) -> Changelog:
        metadata = self.metadata
        if ref is not None and not metadata.ref(ref).is_branch:
            snapshot_id = metadata.ref(ref).snapshot_id
        end = None if snapshot_id is None else metadata.snapshot_by_id(snapshot_id)
        schema = metadata.schema_of(end)
        return Changelog(self.port.spark, metadata, self.io, found, schema, where)


def _snapshot_and_ref(
    metadata: TableMetadata,
    argument: str,
    given: SnapshotOrRef | None,
    snapshot_id: SnapshotId | None,
) -> tuple[int | None, str | None]:
    """One side of a range: the snapshot's id, and the branch or tag if it was given as one.

    Digits that are the id of a kept snapshot are that, whatever a tag is called.

    Args:
        argument: the keyword for its id.
        given: what came without a keyword.
        snapshot_id: what came with it.
    """
    if given is None:
        return optional_snapshot_id_of(snapshot_id, argument), None
    if snapshot_id is not None:
        raise ValidationError(f"give {given!r} or {argument}={snapshot_id!r}, not both")
    text = given.strip() if isinstance(given, str) else ""
    is_id = (text.isascii() and text.isdigit()) and (
        int(text) in metadata.snapshots_by_id or given not in metadata.refs
    )
    if isinstance(given, str) and not is_id:
        return metadata.ref(given).snapshot_id, given
    return snapshot_id_of(given, argument), None
