"""What a command gets of a table and of the session that moves its rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

from frazil.catalog.protocol import Catalog, LoadedTable, StagedTable
from frazil.format.metadata import TableMetadata
from frazil.format.snapshots import Snapshot
from frazil.format.types import IcebergType
from frazil.later import later
from frazil.spark.session.facts import engine_summary, is_case_sensitive, time_zone_of
from frazil.table.port import HandlePort, TablePort
from frazil.table.transaction import CreationPort, TransactionPort

if TYPE_CHECKING:
    from frazil.planning.scan_report import PlannedScan
    from frazil.spark.read_points import ReadPoints
    from frazil.spark.schemas.schema_like import column_type
    from frazil.spark.write.write_audit_publish import Destination
    from frazil.table.commit.definition import Definition
    from frazil.table.snapshots.producer import (
        SnapshotOptions,
        SnapshotSettings,
        snapshot_options,
        snapshots_of_transaction,
        staged_head,
    )
else:
    ReadPoints = later("frazil.spark.read_points", "ReadPoints")
    column_type = later("frazil.spark.schemas.schema_like", "column_type")
    Definition = later("frazil.table.commit.definition", "Definition")
    snapshot_options, snapshots_of_transaction, staged_head = later(
        "frazil.table.snapshots.producer",
        "snapshot_options",
        "snapshots_of_transaction",
        "staged_head",
    )


class SparkPort(TablePort):
    """A table with a session: the same for a handle and for a transaction.

    Attributes:
        spark: the session that moves the data.
        reads: which snapshots the user has read.
    """

    spark: SparkSession
    reads: ReadPoints

    @property
    def text_zone(self) -> str:
        """The session's zone."""
        return time_zone_of(self.spark)

    @property
    def case_sensitive(self) -> bool:
        """How the session matches names."""
        return is_case_sensitive(self.spark)

    def column_type(self, given: Any) -> IcebergType:
        """Return the type that a user gives for a column, also as Spark's or as DDL text."""
        return column_type(given)

    def head(self, target: Destination, base: TableMetadata) -> Snapshot | None:
        """Return the snapshot that a write builds on; NoSuchRefError without its branch."""
        return target.head(base)

    def read_point(self, branch: str | None) -> int | None:
        """Return the snapshot of a branch that the rows of a write were made from, if any."""
        return self.reads.snapshot_of(branch)

    def report_scan(self, scan: PlannedScan) -> None:
        """Tell the catalog of a scan; one inside of a transaction is told to nobody."""

    @abstractmethod
    def in_one_commit(self) -> AbstractContextManager[SparkPort]:
        """Give what several operations of one commit are run on."""

    def settings(
        self,
        base: TableMetadata,
        target: Destination,
        snapshot_properties: Mapping[str, str] | None,
    ) -> SnapshotSettings:
        """Return where a snapshot goes and what it says, checked before anything is written."""
        settings: SnapshotSettings = {
            "branch": target.branch,
            "snapshot_properties": {**engine_summary(self.spark), **(snapshot_properties or {})},
            "wap_id": target.wap_id,
            "starts_branch": target.makes_branch,
            "definition": Definition.of(base),
        }
        snapshot_options(**settings)
        return settings

    def naming_engine(self, commit: SnapshotOptions) -> SnapshotOptions:
        """Return where maintenance commits and what it says, with the engine that does it."""
        engine = engine_summary(self.spark)
        return replace(commit, snapshot_properties={**engine, **commit.snapshot_properties})


class SparkHandlePort(SparkPort, HandlePort):
    """A table of a catalog: each operation is a commit."""

    def __init__(self, spark: SparkSession, catalog: Catalog, loaded: LoadedTable) -> None:
        HandlePort.__init__(self, catalog, loaded)
        self.spark = spark
        self.reads = ReadPoints(loaded.metadata)

    def report_scan(self, scan: PlannedScan) -> None:
        """Tell the catalog of a scan."""
        self.catalog.report_scan(self.identifier, scan)

    def newest(self) -> TableMetadata:
        """Load the table and return its metadata."""
        self.reads = self.reads.with_metadata(self.metadata)
        return super().newest()

    def show_commit(self, loaded: LoadedTable, made: frozenset[int]) -> None:
        """Show what was committed; what the user reads goes on to it."""
        super().show_commit(loaded, made)
        self.reads.follow(loaded.metadata, made)

    def transaction(self) -> SparkTransactionPort:
        """Begin several operations of one commit."""
        reads = self.reads.with_metadata(self.metadata)
        return SparkTransactionPort(self, self.refresh(), reads)

    def of_another_thread(self) -> SparkHandlePort:
        """Return a port of the same table that moves by itself."""
        return SparkHandlePort(self.spark, self.catalog, self.loaded_table)

    def in_one_commit(self) -> AbstractContextManager[SparkPort]:
        """Give a transaction, which is committed at the end of the block."""
        return self.transaction()


class SparkTransactionPort(SparkPort, TransactionPort):
    """Several operations of one commit."""

    def __init__(self, handle: SparkHandlePort, base: LoadedTable, reads: ReadPoints) -> None:
        TransactionPort.__init__(self, handle, base)
        self.spark = handle.spark
        self.reads = reads

    def head(self, target: Destination, base: TableMetadata) -> Snapshot | None:
        """Return the snapshot that a write builds on, which the transaction may have staged."""
        if target.wap_id is not None:
            own = snapshots_of_transaction(base, self.base)
            staged = staged_head(base, target.wap_id, own)
            if staged is not None:
                return staged
        return target.head(base)

    @contextmanager
    def in_one_commit(self) -> Iterator[SparkPort]:
        """Give the transaction itself; where the block raises it is as it was before."""
        with self.all_or_nothing():
            yield self


class SparkCreationPort(SparkPort, CreationPort):
    """The first operations of a table that does not exist yet."""

    def __init__(self, spark: SparkSession, catalog: Catalog, staged: StagedTable) -> None:
        CreationPort.__init__(self, catalog, staged)
        self.spark = spark
        self.reads = ReadPoints(staged.metadata)

    @contextmanager
    def in_one_commit(self) -> Iterator[SparkPort]:
        """Give the port itself; where the block raises it is as it was before."""
        with self.all_or_nothing():
            yield self
