"""TableMaintenance: maintenance of a table that a Spark session can do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Unpack

from pyspark.sql import Column, DataFrame, SparkSession

from frazil.format.arguments import SnapshotId
from frazil.format.predicates.expressions import Expression
from frazil.format.sorting import SortField
from frazil.spark.delete_files.write import Granularity
from frazil.spark.maintenance import checks
from frazil.spark.maintenance.compaction.arranging.arrangement import Strategy
from frazil.spark.maintenance.compaction.compact import Compact, OnRewrite
from frazil.spark.maintenance.compaction.conversion import ConvertEqualityDeletes
from frazil.spark.maintenance.compaction.manifests import ClusterManifests
from frazil.spark.maintenance.compaction.options import CompactionSettings, RewriteSettings
from frazil.spark.maintenance.compaction.position_deletes import RewritePositionDeletes
from frazil.spark.maintenance.compaction.results import (
    CompactionResult,
    ConversionResult,
    ManifestsResult,
    PositionDeletesResult,
)
from frazil.spark.maintenance.orphans import file_list_of, remove_orphan_files
from frazil.spark.maintenance.partition_stats import ComputePartitionStats
from frazil.spark.maintenance.stats_results import PartitionStatsResult, TableStatsResult
from frazil.spark.maintenance.table_stats import ComputeTableStats
from frazil.spark.migration.add_files import AddFilesResult, ImportFiles
from frazil.spark.port import SparkHandlePort
from frazil.spark.row_level.options import write_options
from frazil.spark.write.files import WriteProgress
from frazil.storage.listing import listing_of
from frazil.table.maintenance.check import CheckResult
from frazil.table.maintenance.orphans import OrphanFilesResult, OrphanSearch
from frazil.table.maintenance.progress import (
    OnDelete,
    OnMaintenance,
    tell_nobody,
)
from frazil.table.maintenance.table_maintenance import Maintenance
from frazil.table.snapshots.producer import BranchSettings, snapshot_options


class TableMaintenance(Maintenance):
    """Maintenance of a table: what keeps it small, and leaves its rows as they are."""

    _port: SparkHandlePort

    def __init__(self, port: SparkHandlePort) -> None:
        super().__init__(port)

    @property
    def spark(self) -> SparkSession:
        """The session that does the work."""
        return self._port.spark

    def compact(
        self,
        where: str | Column | Expression | None = None,
        *,
        strategy: Strategy = "binpack",
        sort_order: str | Sequence[str | SortField] | None = None,
        columns: str | Sequence[str] | None = None,
        branch: str | None = None,
        options: Mapping[str, str] | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        on_progress: OnRewrite | None = None,
        **settings: Unpack[CompactionSettings],
    ) -> CompactionResult:
        """Rewrite data files as fewer, larger or better sorted ones without deleted rows.

        Files are rewritten that are too small or too large, or of whose rows many are deleted, in
        groups of one partition each. Groups that another commit takes files of, or deletes rows of
        by position, are given up, and the result says so; the others are committed.

        Args:
            where: which files: those that may hold matching rows; all unless given.
            strategy: ``binpack`` leaves rows in the table's order; ``sort`` sorts all rows of a
                group; ``zorder`` and ``hilbert`` sort them along a curve through columns.
            sort_order: keys for ``sort``, as ``"ts desc nulls last"`` or several of them; the
                table's sort order unless given.
            columns: of a curve.
            branch: the branch to compact; `main` unless given.
            options: options by the names of Java's ``rewrite_data_files``.
            snapshot_properties: entries for the snapshots' summaries.
            on_progress: called as groups are rewritten and committed.
            settings: options as keywords, see `CompactionSettings`.

        Raises:
            ConfigurationError: an option is unknown or malformed.
            ValidationError: no such strategy or column.
            PredicateError: the condition does not fit the schema, or chooses no files.
            CommitFailedError: others kept being first.
            FrazilError, PySparkException: a group could not be rewritten. Groups that were
                finished are committed. With partial progress that is in the result instead.
        """
        return Compact(
            where=where,
            strategy=strategy,
            sort_order=sort_order,
            columns=columns,
            options=options,
            settings=settings,
            on_progress=on_progress,
            commit=snapshot_options(branch=branch, snapshot_properties=snapshot_properties),
        ).run(self._port)

    def convert_equality_deletes(
        self,
        where: str | Column | Expression | None = None,
        *,
        on_progress: Callable[[WriteProgress], None] | None = None,
        **commit: Unpack[BranchSettings],
    ) -> ConversionResult:
        """Turn equality deletes into position deletes (version 2) or deletion vectors (version 3).

        Data files stay as they are. Deletes that arrive meanwhile stay too. Where another commit
        rewrote the data files, the conversion is made again on the new snapshot.

        Args:
            where: only deletes whose data files all may hold matching rows, as of whole
                partitions; all unless given.
            on_progress: called as delete files are written.
            commit: see `BranchSettings`.

        Raises:
            ConflictError: others rewrote data files in every try; nothing was changed.
            PredicateError: the condition does not fit the schema, or chooses no files.
            UnsupportedError: a delete compares a column that cannot be compared.
        """
        return ConvertEqualityDeletes(
            where=where, on_progress=on_progress, commit=snapshot_options(**commit)
        ).run(self._port)

    def rewrite_position_deletes(
        self,
        where: str | Column | Expression | None = None,
        *,
        granularity: Granularity | None = None,
        branch: str | None = None,
        options: Mapping[str, str] | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        **settings: Unpack[RewriteSettings],
    ) -> PositionDeletesResult:
        """Rewrite position deletes in fewer files, without those of data files that are gone.

        In version 3 position delete files become deletion vectors, whatever their sizes, and
        vectors that lie in many small files are put together.

        Args:
            where: only deletes whose data files all may hold matching rows; all unless given.
            granularity: of position delete files, ``file`` or ``partition``; the table's property
                ``write.delete.granularity`` unless given.
            branch: the branch to rewrite; `main` unless given.
            options: options by the names of Java's ``rewrite_position_delete_files``.
            snapshot_properties: entries for the snapshot's summary.
            settings: options as keywords, see `RewriteSettings`. All is one commit.

        Raises:
            ConflictError: others changed the deletes or their data files in every try.
            ConfigurationError: an option is unknown or malformed.
            PredicateError: the condition does not fit the schema, or chooses no files.
        """
        return RewritePositionDeletes(
            where=where,
            granularity=granularity,
            options=options,
            settings=settings,
            commit=snapshot_options(branch=branch, snapshot_properties=snapshot_properties),
        ).run(self._port)

    def rewrite_manifests(
        self,
        *,
        spec_id: int | None = None,
        sort_by: str | Sequence[str] = (),
        on_progress: OnMaintenance | None = None,
        **commit: Unpack[BranchSettings],
    ) -> ManifestsResult:
        """Rewrite manifests so that each is of the target size and holds few partitions.

        None holds more than 250 000 files, so that a change of one of them reads few others.

        Args:
            spec_id: the partition spec whose manifests are rewritten; the current one unless given.
            sort_by: names of partition fields, the most important one first; all of the spec's in
                their order unless given.
            on_progress: called as many manifests are read, and before new ones are written.
            commit: see `BranchSettings`.

        Raises:
            ValidationError: the spec has no such field.
            CommitFailedError: others kept being first.
        """
        return ClusterManifests(
            spec_id=spec_id,
            sort_by=sort_by,
            on_progress=on_progress,
            commit=snapshot_options(**commit),
        ).run(self._port)

    def add_files(
        self,
        source: str,
        *,
        format: str | None = None,
        partition_filter: Mapping[str, Any] | None = None,
        check_duplicate_files: bool = True,
        parallelism: int | None = None,
        **commit: Unpack[BranchSettings],
    ) -> AddFilesResult:
        """Make data files of a folder or of a Spark table files of this table, as they are.

        No file is written anew or moved; from then on they belong to this table, whose expiry
        deletes them. Partition values are taken from the folders' names. Columns are found by name:
        the table gets the name mapping that readers need (`schema.name-mapping.default`).

        Args:
            source: the name of a table in Spark's session catalog, ```parquet`.`/folder``` (or
                ``orc``, ``avro``), or with `format` a path.
            format: of the files below the path: ``parquet``, ``orc`` or ``avro``.
            partition_filter: only partitions with these values by column; None is NULL.
            check_duplicate_files: refuse files that the table has.
            parallelism: how many footers a process reads beside each other; 8 on the driver and 1
                in each task unless given.
            commit: see `BranchSettings`.

        Raises:
            ValidationError: the table has one of the files, no spec of the table is that of the
                folders, or the filter fits nothing.
            SchemaMismatchError: a file's columns do not fit the table.
            InvalidDataFileError: a file is damaged or of another format.
            NoSuchTableError, MissingFileError: there is no such source.
            UnsupportedError: the source is a view, or has other files.

        Examples:
            >>> spark.range(3).write.parquet("/data/ids")
            >>> ids = lake.create_table("db.ids", "id bigint")
            >>> ids.maintenance.add_files("/data/ids", format="parquet")
        """
        return ImportFiles(
            source=source,
            file_format=format,
            partition_filter=partition_filter,
            check_duplicate_files=check_duplicate_files,
            parallelism=parallelism,
            options=write_options(**commit),
        ).run(self._port)

    def check(self, *, on_progress: OnMaintenance | None = None) -> CheckResult:
        """Look whether all that the metadata names is there and is as it says; change nothing.

        See `Maintenance.check`. Executors look at the files of large tables.

        Args:
            on_progress: as of `Maintenance.check`; executors tell of each half a million files.

        Raises:
            StorageError: the store does not answer, which says nothing of a file.
        """
        return checks.check(self._port, on_progress or tell_nobody)

    def compute_table_stats(
        self,
        *,
        snapshot_id: SnapshotId | None = None,
        columns: str | Sequence[str] | None = None,
    ) -> TableStatsResult:
        """Count the distinct values of columns, as theta sketches in a Puffin file.

        Query planners read them, such as Trino's and the Java runtime's. Spark's executors make
        the sketches. The file takes the place of the one that the snapshot had.

        Args:
            snapshot_id: of which snapshot; the current one unless given.
            columns: which columns; all of primitive types unless given.

        Raises:
            NoSuchSnapshotError: there is no such snapshot.
            ValidationError, UnsupportedError: there is no such column, or it cannot be counted.

        Examples:
            >>> trips = lake.load_table("db.trips")
            >>> lake.load_table("db.trips").maintenance.compute_table_stats(columns=["id", "city"])
        """
        return ComputeTableStats(snapshot_id=snapshot_id, columns=columns).run(self._port)

    def compute_partition_stats(
        self, *, snapshot_id: SnapshotId | None = None
    ) -> PartitionStatsResult:
        """Count rows, files and deletes by partition, in a file that planners read.

        The file takes the place of the one that the snapshot had.

        Args:
            snapshot_id: of which snapshot; the current one unless given.

        Raises:
            NoSuchSnapshotError: there is no such snapshot.
            ValidationError: the table is not partitioned.
        """
        return ComputePartitionStats(snapshot_id=snapshot_id).run(self._port)

    def _remove_orphans(
        self, search: OrphanSearch, file_list: Any, *, is_dry_run: bool, tell: OnDelete
    ) -> OrphanFilesResult:
        files = file_list
        if file_list is not None:
            is_of_spark = isinstance(file_list, DataFrame)
            files = file_list_of(file_list) if is_of_spark else listing_of(file_list)
        return remove_orphan_files(
            self._port,
            search,
            is_dry_run=is_dry_run,
            files=files,
            tell=tell,
        )
