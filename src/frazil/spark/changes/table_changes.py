"""Incremental reads and changelogs as methods of a table."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from frazil.format.arguments import SnapshotId, optional_snapshot_id_of
from frazil.format.predicates.expressions import Expression
from frazil.format.schema import Schema
from frazil.planning.changes_range import SnapshotRange, snapshot_range
from frazil.spark.changes.changelog import Changelog
from frazil.spark.changes.incremental import IncrementalScan
from frazil.table.handle import TableHandle
from frazil.table.time_travel import Moment


class TableChanges(TableHandle):
    """What happened to a table between two of its snapshots.

    Every method takes the snapshot to start after and the one to end with, by id or by time: the
    start itself is left out, the end is in. Without a start it is the table's first snapshot that
    is read first, without an end the current one is the last. A start by time leaves out every
    snapshot of that time or before, an end by time takes every one of that time or before; times
    are milliseconds since the epoch, ISO text (in the session's zone unless it names one), a
    datetime (local time unless it has a zone) or a date.
    """

    @property
    @abstractmethod
    def spark(self) -> SparkSession:
        """The session that reads."""

    def incremental(
        self,
        from_snapshot_id: SnapshotId | None = None,
        to_snapshot_id: SnapshotId | None = None,
        *,
        from_timestamp: Moment | None = None,
        to_timestamp: Moment | None = None,
        where: str | Expression | None = None,
        columns: str | Sequence[str] | None = None,
    ) -> IncrementalScan:
        """The rows that `append` snapshots added; overwrites, deletes and rewrites are skipped.

        Args:
            from_snapshot_id: start after this snapshot; it may be expired if what follows is kept.
            to_snapshot_id: end with this snapshot.
            where: which rows, as SQL text or an expression; also prunes partitions and files.
            columns: which columns in which order.

        Raises:
            NoSuchSnapshotError: a snapshot is unknown or has expired.
            ValidationError: the start is not an ancestor of the end.
            PredicateError: the predicate does not fit the schema.
        """
        found, end_id = self._range(from_snapshot_id, to_snapshot_id, from_timestamp, to_timestamp)
        return IncrementalScan(
            self.spark,
            self.metadata,
            self.io,
            snapshots=found,
            where=where,
            columns=columns,
            snapshot_id=end_id,
            name=self.name,
        )

    def changes(
        self,
        from_snapshot_id: SnapshotId | None = None,
        to_snapshot_id: SnapshotId | None = None,
        *,
        from_timestamp: Moment | None = None,
        to_timestamp: Moment | None = None,
        where: str | Expression | None = None,
        identifier_columns: str | Sequence[str] | None = None,
    ) -> DataFrame:
        """Every row that a snapshot inserted or deleted, whatever kind of commit did it.

        The table's columns, read with the schema of the end, and ``_change_type`` (INSERT, DELETE,
        UPDATE_BEFORE, UPDATE_AFTER), ``_change_ordinal`` (the snapshot's place in the range, from
        0) and ``_commit_snapshot_id``. Rows that a snapshot only copied to another file are not in
        it; snapshots that only rewrite files (`replace`) have none.

        Args:
            from_snapshot_id: start after this snapshot.
            to_snapshot_id: end with this snapshot.
            where: which rows, before and after a change alike; also prunes partitions and files.
            identifier_columns: the key by which a delete and an insert of one snapshot are one
                update; updates stay a delete and an insert unless given. Running the DataFrame
                fails where a snapshot that does both has two rows of one key on a side.

        Raises:
            NoSuchSnapshotError: a snapshot is unknown or has expired.
            ValidationError: the start is not an ancestor of the end, or a column is not there.
            PredicateError: the predicate does not fit the schema.
            UnsupportedError: a delete or a file that cannot be applied or read rightly.
        """
        found = self._range(from_snapshot_id, to_snapshot_id, from_timestamp, to_timestamp)
        changelog = self._changelog(*found, where)
        if identifier_columns is None:
            return changelog.changes()
        return changelog.changes_with_updates(identifier_columns)

    def net_changes(
        self,
        from_snapshot_id: SnapshotId | None = None,
        to_snapshot_id: SnapshotId | None = None,
        *,
        from_timestamp: Moment | None = None,
        to_timestamp: Moment | None = None,
        where: str | Expression | None = None,
    ) -> DataFrame:
        """The inserts and deletes that lead from the start to the end by the shortest way.

        A row that was inserted and deleted again within the range is not in it. The columns are
        those of `changes`; the snapshot told is the one that made the lasting change.

        Raises:
            NoSuchSnapshotError, ValidationError, PredicateError, UnsupportedError: as
                `changes`.
        """
        found = self._range(from_snapshot_id, to_snapshot_id, from_timestamp, to_timestamp)
        return self._changelog(*found, where).net_changes()

    def _range(
        self,
        from_snapshot_id: SnapshotId | None,
        to_snapshot_id: SnapshotId | None,
        from_timestamp: Moment | None,
        to_timestamp: Moment | None,
    ) -> tuple[SnapshotRange, int | None]:
        """The range, and the id of its end where the end was asked for."""
        start, end = (
            None if moment is None else self._timestamp_ms(moment)
            for moment in (from_timestamp, to_timestamp)
        )
        found = snapshot_range(
            self.metadata,
            from_snapshot_id=optional_snapshot_id_of(from_snapshot_id, "from_snapshot_id"),
            to_snapshot_id=optional_snapshot_id_of(to_snapshot_id, "to_snapshot_id"),
            from_timestamp_ms=start,
            to_timestamp_ms=end,
        )
        asked = to_snapshot_id is not None or to_timestamp is not None
        return found, found.end.snapshot_id if asked and found.end is not None else None

    def _changelog(
        self, found: SnapshotRange, end_id: int | None, where: str | Expression | None
    ) -> Changelog:
        return Changelog(self.spark, self.metadata, self.io, found, self._schema_at(end_id), where)

    def _schema_at(self, snapshot_id: int | None) -> Schema:
        if snapshot_id is None:
            return self.metadata.schema
        schema_id = self.metadata.snapshot_by_id(snapshot_id).schema_id
        if schema_id is None:
            return self.metadata.schema
        return self.metadata.schemas_by_id.get(schema_id, self.metadata.schema)
