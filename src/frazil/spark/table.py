"""Table: a table handle that Spark fills and reads."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Literal, Unpack, overload

from pyspark.sql import Column, DataFrame, SparkSession

from frazil.catalog.protocol import Catalog, LoadedTable
from frazil.later import later
from frazil.spark.changes.table_changes import TableChanges
from frazil.spark.stream.table_streams import TableStreams
from frazil.spark.transaction.reads import TableReads
from frazil.spark.upserts.commands import ChangeCommands
from frazil.table.handle import TableHandle
from frazil.table.operations import TableOperations

if TYPE_CHECKING:
    from frazil.format.predicates.expressions import Expression
    from frazil.spark.creation import ReplaceTable
    from frazil.spark.maintenance.compaction.compact import CompactionArguments
    from frazil.spark.maintenance.compaction.results import CompactionResult, ConversionResult
    from frazil.spark.maintenance.optimizing.optimize import OnOptimize, Optimize
    from frazil.spark.maintenance.optimizing.results import OptimizeResult
    from frazil.spark.metadata_frames.frames import MetadataFrames
    from frazil.spark.metadata_frames.inspector import TableInspector
    from frazil.spark.port import SparkHandlePort
    from frazil.spark.row_level.options import CommitOptions, OnProgress
    from frazil.spark.row_level.writes import Rows
    from frazil.spark.table_files import TableFiles
    from frazil.spark.table_maintenance import TableMaintenance
    from frazil.spark.transaction.table import TableTransaction
    from frazil.table.inspect.inspector import SnapshotChoice
    from frazil.table.maintenance.optimizing.choices import OptimizingPlan
    from frazil.table.maintenance.progress import OnMaintenance
    from frazil.table.report.write import write_report
    from frazil.table.snapshots.producer import BranchSettings, snapshot_options
    from frazil.table.updates.replacement import DefinitionKwargs
else:
    ReplaceTable = later("frazil.spark.creation", "ReplaceTable")
    Optimize = later("frazil.spark.maintenance.optimizing.optimize", "Optimize")
    TableInspector = later("frazil.spark.metadata_frames.inspector", "TableInspector")
    SparkHandlePort = later("frazil.spark.port", "SparkHandlePort")
    CommitOptions = later("frazil.spark.row_level.options", "CommitOptions")
    TableFiles = later("frazil.spark.table_files", "TableFiles")
    TableMaintenance = later("frazil.spark.table_maintenance", "TableMaintenance")
    TableTransaction = later("frazil.spark.transaction.table", "TableTransaction")
    write_report = later("frazil.table.report.write", "write_report")
    snapshot_options = later("frazil.table.snapshots.producer", "snapshot_options")


class Table(TableReads, ChangeCommands, TableChanges, TableStreams, TableHandle):
    """An Iceberg table: `append`, `overwrite`, `scan`, and every change of a `TableHandle`.

    What keeps a table small is at `maintenance`, all metadata tables are at `inspect`, and commits
    of files that are already written at `files`.

    A handle shows the table as it was when it was loaded
    or last changed through it; writes refresh it first, reads do not (`refresh`).
    """

    port: SparkHandlePort

    def __init__(self, spark: SparkSession, catalog: Catalog, loaded: LoadedTable) -> None:
        TableOperations.__init__(self, SparkHandlePort(spark, catalog, loaded))

    # -- namespaces ------------------------------------------------------------------------------

    @property
    def inspect(self) -> TableInspector:
        """All metadata tables: as Polars frames, and at `inspect.dataframes` as DataFrames."""
        return TableInspector(
            self.spark,
            self.metadata,
            self.metadata_location,
            self.io,
            text_zone=self.port.text_zone,
        )

    @property
    def files(self) -> TableFiles:
        """`files()`: the files of a snapshot as a DataFrame; `files.append(…)`: commit files."""
        return TableFiles(self.port, lambda: self._metadata_frames)

    @property
    def maintenance(self) -> TableMaintenance:
        """What keeps the table small: `maintenance.expire_snapshots()` and others."""
        return TableMaintenance(self.port)

    # -- maintenance of every day ----------------------------------------------------------------

    def compact(
        self,
        where: str | Column | Expression | None = None,
        **arguments: Unpack[CompactionArguments],
    ) -> CompactionResult:
        """Rewrite data files as fewer, larger or better sorted ones: `maintenance.compact`."""
        return self.maintenance.compact(where, **arguments)

    def convert_equality_deletes(
        self,
        where: str | Column | Expression | None = None,
        **commit: Unpack[BranchSettings],
    ) -> ConversionResult:
        """Turn equality deletes into positions: `maintenance.convert_equality_deletes`."""
        return self.maintenance.convert_equality_deletes(where, **commit)

    @overload
    def optimize(
        self,
        where: str | Column | Expression | None = None,
        *,
        dry_run: Literal[True],
        branch: str | None = None,
    ) -> OptimizingPlan: ...

    @overload
    def optimize(
        self,
        where: str | Column | Expression | None = None,
        *,
        dry_run: Literal[False] = False,
        on_progress: OnOptimize | None = None,
        **commit: Unpack[BranchSettings],
    ) -> OptimizeResult: ...

    def optimize(
        self,
        where: str | Column | Expression | None = None,
        *,
        dry_run: bool = False,
        on_progress: OnOptimize | None = None,
        **commit: Unpack[BranchSettings],
    ) -> OptimizingPlan | OptimizeResult:
        """Do the maintenance that is worth it, and nothing else.

        Fragments are put together, and equality deletes become positions or vectors (minor).
        Files of whose rows many are deleted, and files that are too small, are rewritten (major).
        On request whole partitions are, after a time (full). The triggers are the table properties
        `self-optimizing.…`. What fails, or loses its files to another commit, takes nothing else
        with it; the result says so.

        Args:
            where: only files that may hold matching rows; all unless given.
            dry_run: change nothing, and return what would be done, why, and what reads would gain.
            on_progress: called with each step.
            commit: see `BranchSettings`.

        Raises:
            ConfigurationError: a property of the table is malformed.
            PredicateError: the condition does not fit the schema, or chooses no files.

        Examples:
            >>> print(trips.optimize(dry_run=True))
            >>> trips.optimize()
        """
        command = Optimize(where=where, on_progress=on_progress, commit=snapshot_options(**commit))
        return command.plan(self.port) if dry_run else command.run(self.port)

    def report(
        self, path: str | PathLike[str], *, on_progress: OnMaintenance | None = None
    ) -> None:
        """Write one self-contained page about the table as this handle shows it.

        It has snapshots over time, file sizes, deleted rows by partition, and what `optimize`
        would do. It loads nothing from a network. It needs `frazil[report]`.

        Args:
            path: a local file, which is replaced.
            on_progress: called as manifests are read.

        Raises:
            UnsupportedError: the plotting library is not installed.
            StorageError: the file cannot be written.

        Examples:
            >>> trips.report("/tmp/report.html")
        """
        write_report(
            path,
            name=self.name,
            metadata=self.metadata,
            io=self.io,
            on_progress=on_progress,
        )

    # -- writes ----------------------------------------------------------------------------------

    def transaction(self) -> TableTransaction:
        """Several operations in one commit, for a `with` block; it has `append` and the others."""
        return TableTransaction(self.port.transaction())

    def replace_as_select(
        self,
        df: Rows,
        *,
        snapshot_properties: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
        on_progress: OnProgress | None = None,
        **definition: Unpack[DefinitionKwargs],
    ) -> Table:
        """Give the table a DataFrame's schema and rows in one commit; its history stays.

        Columns keep their ids by name; partitioning and order are as given here.

        Args:
            snapshot_properties, options, on_progress: see `WriteKwargs`.
            definition: see `DefinitionKwargs`.
        """
        chosen = CommitOptions(
            snapshot_properties=snapshot_properties, options=options, on_progress=on_progress
        )
        ReplaceTable(rows=df, options=chosen, **definition).run(self.port)
        return self

    # -- metadata tables of every day ------------------------------------------------------------

    def history(self) -> DataFrame:
        """made_current_at, snapshot_id, parent_id, is_current_ancestor."""
        return self._metadata_frames.history()

    def snapshots(self) -> DataFrame:
        """committed_at, snapshot_id, parent_id, operation, manifest_list, summary."""
        return self._metadata_frames.snapshots()

    def refs(self) -> DataFrame:
        """name, type, snapshot_id, max_reference_age_in_ms, min_snapshots_to_keep, …"""
        return self._metadata_frames.refs()

    def partitions(self, **moment: Unpack[SnapshotChoice]) -> DataFrame:
        """Return what each partition of a snapshot holds: rows, files, bytes, deletes."""
        return self._metadata_frames.partitions(**moment)

    # -- parts -----------------------------------------------------------------------------------

    @property
    def _metadata_frames(self) -> MetadataFrames:
        return self.inspect.dataframes
