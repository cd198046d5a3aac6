"""Every change of a table as a method; what it is run on is the subclass's business.

`TableHandle` commits each call, `Transaction` collects them for one commit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from datetime import tzinfo
from typing import Unpack

from frazil.format.arguments import SnapshotId, optional_snapshot_id_of, snapshot_id_of
from frazil.format.manifests import DataFile
from frazil.format.metadata import TableMetadata
from frazil.format.metadata.statistics import PartitionStatisticsFile, StatisticsFile
from frazil.format.sorting import SortExpr, SortField
from frazil.format.values.zones import PROCESS_ZONE
from frazil.storage.files import FileIO
from frazil.table.commit.operation import Operation
from frazil.table.conflicts.row_filter import Predicate
from frazil.table.conflicts.validation import Validation
from frazil.table.snapshots.append import FastAppend, MergeAppend
from frazil.table.snapshots.cherry_pick import CherryPick, publication
from frazil.table.snapshots.create_branch import CreateBranch
from frazil.table.snapshots.overwrite import DeleteFiles, OverwriteFiles, ReplacePartitions
from frazil.table.snapshots.producer import BranchSettings, SnapshotSettings, snapshot_options
from frazil.table.snapshots.rewrite import RewriteFiles
from frazil.table.snapshots.row_delta import RowDelta
from frazil.table.time_travel import Moment, timestamp_ms_of
from frazil.table.updates import properties, references
from frazil.table.updates import sort_order as sort_update
from frazil.table.updates import statistics as table_statistics
from frazil.table.updates.partitioning import UpdatePartitioning
from frazil.table.updates.references import DEFAULT_RETENTION, Retention
from frazil.table.updates.schema import UpdateSchema


class TableOperations(ABC):
    """The operations of a table, by readable names.

    Methods named `commit_…` take files that are already written; engines build on them. They are
    applied at once on a handle, and with the rest of the block in a transaction. All of them take
    the keywords of `SnapshotSettings`: `branch`, `snapshot_properties` and `wap_id`.
    """

    @property
    @abstractmethod
    def metadata(self) -> TableMetadata:
        """The table's metadata."""

    @property
    @abstractmethod
    def io(self) -> FileIO:
        """The table's files."""

    @abstractmethod
    def _run(self, operation: Operation) -> None:
        """Apply an operation."""

    @abstractmethod
    def _prepare(self) -> TableMetadata:
        """Return metadata as new as a change that starts from it should see.

        An operation works on this one value: another thread may move the handle meanwhile.
        """

    @property
    def _text_zone(self) -> str | tzinfo:
        """The zone of times that are text without one: without a session that of the process."""
        return PROCESS_ZONE

    def _timestamp_ms(self, moment: Moment) -> int:
        return timestamp_ms_of(moment, self._text_zone)

    # -- schema, partitioning, order, properties ----

    def update_schema(self, *, case_sensitive: bool = True) -> UpdateSchema:
        """A builder of schema changes, for a `with` block."""
        return UpdateSchema(
            self._prepare(),
            self._run,
            case_sensitive=case_sensitive,
            text_zone=self._text_zone,
        )

    def update_partitioning(self, *, case_sensitive: bool = True) -> UpdatePartitioning:
        """A builder of changes to the partitioning, for a `with` block."""
        return UpdatePartitioning(self._prepare(), self._run, case_sensitive=case_sensitive)

    def replace_sort_order(
        self, *fields: str | SortExpr | SortField, case_sensitive: bool = True
    ) -> None:
        """Sort new files by these keys, as `"ts desc nulls last"`; by none, do not sort them."""
        self._run(sort_update.replace_sort_order(fields, case_sensitive=case_sensitive))

    def set_properties(self, changes: Mapping[str, str] | None = None, /, **named: str) -> None:
        """Set table properties; ValidationError for reserved ones."""
        self._run(properties.set_properties({**(changes or {}), **named}))

    def remove_properties(self, *names: str) -> None:
        """Remove table properties; those that are not set are passed over."""
        self._run(properties.remove_properties(names))

    def set_location(self, location: str) -> None:
        """Where new files go from now on; existing files stay."""
        self._run(properties.set_location(location))

    def upgrade(self, format_version: int | str) -> None:
        """Raise the format version; there is no way back."""
        self._run(properties.upgrade(format_version))

    # -- files ----

    def commit_append(
        self,
        files: Iterable[DataFile],
        **snapshot: Unpack[SnapshotSettings],
    ) -> None:
        """Add data files; manifests are merged when enough small ones are there (rule 210)."""
        self._run(MergeAppend(self.io, files, snapshot_options(**snapshot)))

    def commit_fast_append(
        self,
        files: Iterable[DataFile],
        **snapshot: Unpack[SnapshotSettings],
    ) -> None:
        """Add data files and leave every manifest as it is: the shortest commit (rule 210)."""
        self._run(FastAppend(self.io, files, snapshot_options(**snapshot)))

    def commit_overwrite(
        self,
        added: Iterable[DataFile] = (),
        *,
        removed: Iterable[DataFile] = (),
        removed_paths: Iterable[str] = (),
        where: Predicate | None = None,
        validation: Validation | None = None,
        case_sensitive: bool = True,
        **snapshot: Unpack[SnapshotSettings],
    ) -> None:
        """Remove files by name or by a predicate that all of their rows match, and add others.

        Raises:
            ValidationError: a file holds rows that match `where` and others.
            ConflictError: `validation` found a conflict, or a named file is gone.
        """
        self._run(
            OverwriteFiles(
                self.io,
                added=added,
                removed=removed,
                removed_paths=removed_paths,
                where=where,
                validation=validation,
                case_sensitive=case_sensitive,
                options=snapshot_options(**snapshot),
            )
        )

    def commit_replace_partitions(
        self,
        added: Iterable[DataFile],
        *,
        validation: Validation | None = None,
        **snapshot: Unpack[SnapshotSettings],
    ) -> None:
        """Dynamic overwrite: the partitions of the new files lose their old ones."""
        options = snapshot_options(**snapshot)
        self._run(ReplacePartitions(self.io, added, validation=validation, options=options))

    def commit_delete(
        self,
        *,
        where: Predicate | None = None,
        removed: Iterable[DataFile] = (),
        removed_paths: Iterable[str] = (),
        validation: Validation | None = None,
        case_sensitive: bool = True,
        **snapshot: Unpack[SnapshotSettings],
    ) -> None:
        """Remove whole files, by a predicate that all of their rows match or by name (rule 212).

        Raises:
            ValidationError: a file holds rows that match `where` and others.
            ConflictError: `validation` found a conflict, or a named file is gone.
        """
        self._run(
            DeleteFiles(
                self.io,
                where=where,
                removed=removed,
                removed_paths=removed_paths,
                validation=validation,
                case_sensitive=case_sensitive,
                options=snapshot_options(**snapshot),
            )
        )

    def commit_row_delta(
        self,
        *,
        added: Iterable[DataFile] = (),
        added_deletes: Iterable[DataFile] = (),
        removed: Iterable[DataFile] = (),
        removed_deletes: Iterable[DataFile] = (),
        referenced_data_files: Iterable[str] = (),
        changed: Iterable[DataFile] | None = None,
        validation: Validation | None = None,
        **snapshot: Unpack[SnapshotSettings],
    ) -> None:
        """Merge-on-read change: add data files and delete files, replace earlier deletes.

        `referenced_data_files` are those that position deletes of several files are about; they
        must still be there if `validation` is given. `changed` are data files whose rows were read
        to make the added ones.
        """
        self._run(
            RowDelta(
                self.io,
                added=added,
                added_deletes=added_deletes,
                removed=removed,
                removed_deletes=removed_deletes,
                referenced_data_files=referenced_data_files,
                changed=changed,
                validation=validation,
                options=snapshot_options(**snapshot),
            )
        )

    def commit_rewrite(
        self,
        *,
        removed: Iterable[DataFile] = (),
        added: Iterable[DataFile] = (),
        removed_deletes: Iterable[DataFile] = (),
        added_deletes: Iterable[DataFile] = (),
        data_sequence_number: int | None = None,
        delete_sequence_number: int | None = None,
        from_snapshot: SnapshotId,
        **snapshot: Unpack[BranchSettings],
    ) -> None:
        """Replace files by files of the same rows, as they were at `from_snapshot`.

        With `data_sequence_number`, that of the snapshot which was read, later equality deletes
        apply to the new files as well.

        Raises:
            ConflictError: a file to replace is gone, or others committed deletes or rewrites since
                `from_snapshot` that the new files contradict.
        """
        self._run(
            RewriteFiles(
                self.io,
                removed=removed,
                added=added,
                removed_deletes=removed_deletes,
                added_deletes=added_deletes,
                data_sequence_number=data_sequence_number,
                delete_sequence_number=delete_sequence_number,
                from_snapshot=snapshot_id_of(from_snapshot, "from_snapshot"),
                options=snapshot_options(**snapshot),
            )
        )

    # -- branches, tags, the current snapshot ----

    def create_branch(
        self,
        name: str,
        *,
        snapshot_id: SnapshotId | None = None,
        retention: Retention = DEFAULT_RETENTION,
    ) -> None:
        """Make a branch at a snapshot, by default the current one; an empty table's is empty."""
        self._run(
            CreateBranch(
                self.io, name, snapshot_id=optional_snapshot_id_of(snapshot_id), retention=retention
            )
        )

    def create_tag(
        self,
        name: str,
        *,
        snapshot_id: SnapshotId | None = None,
        retention: Retention = DEFAULT_RETENTION,
    ) -> None:
        """Make a tag at a snapshot, by default the current one."""
        self._run(
            references.create_tag(
                name, snapshot_id=optional_snapshot_id_of(snapshot_id), retention=retention
            )
        )

    def replace_branch(
        self,
        name: str,
        *,
        snapshot_id: SnapshotId | None = None,
        retention: Retention | None = None,
    ) -> None:
        """Point an existing branch at another snapshot, by default the current one."""
        self._run(
            references.replace_branch(
                name, snapshot_id=optional_snapshot_id_of(snapshot_id), retention=retention
            )
        )

    def replace_tag(
        self,
        name: str,
        *,
        snapshot_id: SnapshotId | None = None,
        retention: Retention | None = None,
    ) -> None:
        """Point an existing tag at another snapshot, by default the current one."""
        self._run(
            references.replace_tag(
                name, snapshot_id=optional_snapshot_id_of(snapshot_id), retention=retention
            )
        )

    def set_retention(self, name: str, retention: Retention) -> None:
        """Change how long a branch or tag and its snapshots are kept."""
        self._run(references.set_retention(name, retention))

    def remove_branch(self, name: str) -> None:
        """Remove a branch; its snapshots stay until they expire."""
        self._run(references.remove_branch(name))

    def remove_tag(self, name: str) -> None:
        """Remove a tag; its snapshot stays until it expires."""
        self._run(references.remove_tag(name))

    def rename_branch(self, name: str, new_name: str) -> None:
        """Give a branch another name."""
        self._run(references.rename_branch(name, new_name))

    def fast_forward(self, branch: str, to: str) -> None:
        """Move a branch to the snapshot of another reference that builds on it."""
        self._run(references.fast_forward(branch, to))

    def set_current_snapshot(
        self, snapshot_id: SnapshotId | None = None, *, ref: str | None = None
    ) -> None:
        """Make a snapshot, or that of a reference, the current one."""
        self._run(
            references.set_current_snapshot(
                snapshot_id=optional_snapshot_id_of(snapshot_id), ref=ref
            )
        )

    def rollback_to_snapshot(self, snapshot_id: SnapshotId) -> None:
        """Make an ancestor of the current snapshot the current one."""
        self._run(references.rollback_to_snapshot(snapshot_id_of(snapshot_id)))

    def rollback_to_timestamp(self, timestamp: Moment) -> None:
        """Make the newest ancestor older than a time the current snapshot.

        Args:
            timestamp: milliseconds since the epoch, ISO text (in the zone of the Spark session, or
                without one in the process's), a datetime or a date.
        """
        self._run(references.rollback_to_timestamp(self._timestamp_ms(timestamp)))

    def cherrypick_snapshot(self, snapshot_id: SnapshotId) -> None:
        """Apply the append or dynamic overwrite of a snapshot to `main`."""
        self._run(CherryPick(self.io, self._prepare(), snapshot_id_of(snapshot_id)))

    def publish_changes(self, wap_id: str) -> None:
        """Apply what was staged under a WAP id to `main`.

        Raises:
            NoSuchSnapshotError: nothing was.
            ValidationError: several snapshots were that do not build on each other.
            ConflictError: it was published already.
        """
        self._run(publication(self.io, self._prepare(), wap_id))

    # -- statistics ----

    def set_statistics(self, file: StatisticsFile | PartitionStatisticsFile) -> None:
        """Register a statistics file of a snapshot, in place of the one before."""
        if isinstance(file, StatisticsFile):
            self._run(table_statistics.set_statistics(file))
        else:
            self._run(table_statistics.set_partition_statistics(file))

    def remove_statistics(self, snapshot_id: SnapshotId) -> None:
        """Forget the statistics file of a snapshot; the file stays."""
        self._run(table_statistics.remove_statistics(snapshot_id_of(snapshot_id)))

    def remove_partition_statistics(self, snapshot_id: SnapshotId) -> None:
        """Forget the partition statistics of a snapshot; the file stays."""
        self._run(table_statistics.remove_partition_statistics(snapshot_id_of(snapshot_id)))
