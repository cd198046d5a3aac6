"""What `table.maintenance` has: statistics files, expiry, what no snapshot uses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Unpack

from frazil.format.arguments import SnapshotId, snapshot_id_of, snapshot_ids_of
from frazil.format.metadata.statistics import PartitionStatisticsFile, StatisticsFile
from frazil.storage.listing import listing_of
from frazil.storage.on_driver import OnDriver
from frazil.table.maintenance.check import CheckResult, check_files_here, check_table
from frazil.table.maintenance.expire import (
    ExpireResult,
    ExpireSnapshots,
    UnreachableFiles,
    delete_unreachable,
    expiry_result,
    planned_expiry,
    unreachable_files,
)
from frazil.table.maintenance.orphans import (
    OrphanFilesResult,
    OrphanSearch,
    OrphanSettings,
    refuse_without_catalog,
    remove_orphans,
    remove_unfinished_uploads,
)
from frazil.table.maintenance.progress import (
    DeleteProgress,
    OnDelete,
    OnMaintenance,
    tell_nobody,
)
from frazil.table.maintenance.repair import RepairResult, repair
from frazil.table.maintenance.table_path import RewriteTablePath, RewriteTablePathResult
from frazil.table.maintenance.unused_definitions import remove_unused_specs_and_schemas
from frazil.table.port import HandlePort, TablePort
from frazil.table.time_travel import Moment
from frazil.table.updates import statistics as table_statistics


class StatisticsChanges(OnDriver):
    """Which statistics files a table has: what of its maintenance a transaction can do."""

    def __init__(self, port: TablePort) -> None:
        self._port = port

    def set_statistics(self, file: StatisticsFile | PartitionStatisticsFile) -> None:
        """Register a statistics file of a snapshot, in place of the one before."""
        self._port.run(table_statistics.set_statistics(file))

    def remove_statistics(self, snapshot_id: SnapshotId) -> None:
        """Forget the statistics file of a snapshot; the file stays."""
        self._port.run(table_statistics.remove_statistics(snapshot_id_of(snapshot_id)))

    def remove_partition_statistics(self, snapshot_id: SnapshotId) -> None:
        """Forget the partition statistics of a snapshot; the file stays."""
        self._port.run(table_statistics.remove_partition_statistics(snapshot_id_of(snapshot_id)))


class Maintenance(StatisticsChanges):
    """Maintenance of a table: what keeps it small, and leaves its rows as they are."""

    _port: HandlePort

    def __init__(self, port: HandlePort) -> None:
        super().__init__(port)

    def remove_orphan_files(
        self,
        *,
        older_than: Moment | None = None,
        dry_run: bool = False,
        on_progress: OnDelete | None = None,
        **settings: Unpack[OrphanSettings],
    ) -> OrphanFilesResult:
        """Delete files in the table's folder that no metadata reaches, as killed writes leave them.

        Files are kept that any snapshot reaches, of whatever branch, and metadata files that the
        log of the current one leads to. So are hidden files, whose path below the folder has a
        part that begins with ``_`` or ``.``; what a killed write left under such names is not.
        Parts of files that were sent to S3 and never became one go too.

        Args:
            older_than: files that were changed before, as in `expire_snapshots`; 3 days ago unless
                given. It keeps what others are writing.
            dry_run: tell what would be deleted, and delete nothing.
            on_progress: called as files are deleted, by the threads that delete them.
            settings: see `OrphanSettings`.

        Raises:
            ValidationError: gc.enabled is false, `older_than` is less than a day ago, the folder
                holds another table, or metadata names files by another scheme or authority.
            UnsupportedError: the table is opened without a catalog, which knows its newest state.
            FrazilError: a snapshot's metadata cannot be read; nothing was deleted.

        Examples:
            >>> print(trips.maintenance.remove_orphan_files(dry_run=True))
            >>> lake.load_table("db.trips").maintenance.remove_orphan_files()
        """
        if not dry_run:
            refuse_without_catalog(self._port)
        search = OrphanSearch.of(
            self._port.refresh().metadata, self._optional_ms(older_than), settings
        )
        file_list = settings.get("file_list")
        found = self._remove_orphans(
            search, file_list, is_dry_run=dry_run, tell=on_progress or tell_nobody
        )
        if file_list is not None:
            return found
        uploads = remove_unfinished_uploads(self._port.io, search, is_dry_run=dry_run)
        return replace(found, unfinished_uploads=uploads)

    def check(self, *, on_progress: OnMaintenance | None = None) -> CheckResult:
        """Look whether all that the metadata names is there and is as it says; change nothing.

        Looked at are manifest lists and manifests of every snapshot, data and delete files with
        their sizes and row counts, deletion vectors, statistics, and the log's metadata files.

        Args:
            on_progress: called as manifests and files are looked at, by the threads that look.

        Raises:
            StorageError: the store does not answer, which says nothing of a file.

        Examples:
            >>> print(trips.maintenance.check())
        """
        tell = on_progress or tell_nobody
        loaded = self._port.refresh()
        here = check_files_here(self._port.io, loaded.metadata, tell)
        return check_table(self._port.io, loaded, here, catalog=self._port.catalog, tell=tell)

    def repair(self) -> RepairResult:
        """Check the table, and mend what can be mended in the current snapshot of `main`.

        Missing data files leave the table, whose rows were lost with them. Sizes and row counts are
        corrected; bounds and other statistics of columns stay. Statistics files that are gone are
        forgotten. Of several vectors of one data file the newest stays, if it has all positions of
        the others; position delete files beside a vector, which no reader applies, go. Missing
        delete files stay a problem, since rows would come back without them; so do missing
        manifests, and what only older snapshots have. The result says what can be done.

        Raises:
            StorageError: the store does not answer; nothing was changed.
            ConflictError, CommitFailedError: others changed the table meanwhile.
        """
        return repair(self._port, self.check())

    def expire_snapshots(
        self,
        *,
        older_than: Moment | None = None,
        retain_last: int | None = None,
        snapshot_ids: SnapshotId | Iterable[SnapshotId] = (),
        dry_run: bool = False,
        on_progress: OnDelete | None = None,
    ) -> ExpireResult:
        """Forget snapshots that retention no longer keeps; delete the files that only they reach.

        Args:
            older_than: expire what is older, milliseconds since the epoch, ISO text (in the zone
                of the Spark session, or without one in the process's), a datetime or a date; by
                default what `history.expire.max-snapshot-age-ms` says, 5 days.
            retain_last: keep at least this many of each branch.
            snapshot_ids: expire these too, whatever their age; they must not be the head of a
                branch or tag.
            dry_run: tell what would be removed, and remove nothing.
            on_progress: called as files are deleted, by the threads that delete them: ten thousand
                times at most.

        Raises:
            ValidationError: gc.enabled is false, or a named snapshot is referenced.

        Examples:
            >>> trips.maintenance.expire_snapshots(older_than="2024-01-01", retain_last=10)
        """
        operation = self._expiry(older_than, retain_last, snapshot_ids)
        if dry_run:
            return planned_expiry(self._port.io, self._port.refresh().metadata, operation)
        self._port.run(operation)
        if operation.base is None or operation.after is None:
            return ExpireResult()
        tell = on_progress or tell_nobody
        tell(DeleteProgress("searching"))
        files = unreachable_files(self._port.io, operation.base, operation.after)
        return delete_unreachable(files, operation, self._port.io, tell)

    def expire_snapshots_keeping_files(
        self,
        *,
        older_than: Moment | None = None,
        retain_last: int | None = None,
        snapshot_ids: SnapshotId | Iterable[SnapshotId] = (),
    ) -> ExpireResult:
        """Do as `expire_snapshots`, and delete no file."""
        operation = self._expiry(older_than, retain_last, snapshot_ids)
        self._port.run(operation)
        return expiry_result(operation, UnreachableFiles(), {})

    def remove_unused_specs_and_schemas(self) -> None:
        """Forget partition specs and schemas that no snapshot uses.

        A schema stays while an equality delete compares a column that was dropped since, or files
        are partitioned by one.
        """
        self._port.run(remove_unused_specs_and_schemas(self._port.io))

    def rewrite_table_path(
        self,
        source_prefix: str,
        target_prefix: str,
        *,
        start_version: str | None = None,
        end_version: str | None = None,
        staging_location: str | None = None,
        create_file_list: bool = True,
    ) -> RewriteTablePathResult:
        """Stage the table's metadata for another place, with a list of what is to be copied.

        The table stays as it is. When every source of the list is copied to its target, the newest
        metadata file there can be registered as a table.

        Args:
            source_prefix: what all paths of the table begin with, as its location has it.
            target_prefix: what takes its place.
            start_version: the name of the metadata file that was copied last; all that was added
                since is staged. The whole table unless given.
            end_version: the name of the newest metadata file to stage; the current one unless
                given.
            staging_location: the folder for files that are written anew; a fresh one in the
                metadata folder unless given.
            create_file_list: whether the list is written as a CSV file too.

        Raises:
            ValidationError: a path has another prefix, or there is no such version.
            UnsupportedError: position deletes are neither Parquet nor Puffin.

        Examples:
            >>> trips.maintenance.rewrite_table_path(trips.location, "s3://new/lake/db/trips")
        """
        return RewriteTablePath(
            source_prefix=source_prefix,
            target_prefix=target_prefix,
            start_version=start_version,
            end_version=end_version,
            staging_location=staging_location,
            create_file_list=create_file_list,
        ).run(self._port)

    def _expiry(
        self,
        older_than: Moment | None,
        retain_last: int | None,
        snapshot_ids: SnapshotId | Iterable[SnapshotId],
    ) -> ExpireSnapshots:
        return ExpireSnapshots(
            older_than_ms=self._optional_ms(older_than),
            retain_last=retain_last,
            snapshot_ids=snapshot_ids_of(snapshot_ids, "snapshot_ids"),
        )

    def _remove_orphans(
        self, search: OrphanSearch, file_list: Any, *, is_dry_run: bool, tell: OnDelete
    ) -> OrphanFilesResult:
        """Do the work; a table with a session shares it with executors."""
        files = None if file_list is None else listing_of(file_list)
        return remove_orphans(self._port, search, is_dry_run=is_dry_run, files=files, tell=tell)

    def _optional_ms(self, moment: Moment | None) -> int | None:
        return None if moment is None else self._port.timestamp_ms(moment)
