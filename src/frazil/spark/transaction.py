"""TableTransaction: appends, overwrites and every other change of a table in one commit."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from frazil.catalog.base import LoadedTable
from frazil.format.metadata import TableMetadata
from frazil.format.snapshots import Snapshot
from frazil.spark.read_points import ReadPoints
from frazil.spark.row_level.commands import RowCommands
from frazil.spark.row_level.writes import OnProgress, Rows, owning
from frazil.spark.write.rows import rows_of
from frazil.spark.write.write_audit_publish import Destination
from frazil.table.handle import HandleTransaction, TableHandle
from frazil.table.snapshots.producer import snapshots_of_transaction, staged_head


class TableTransaction(RowCommands, HandleTransaction):
    """Changes of a table that become visible together, at the end of the `with` block.

        with trips.transaction() as tx:
            with tx.update_schema() as change:
                change.add_column("tip", "double")
            tx.overwrite(df, where="ts >= '2024-03-01'")

    Each operation sees those before it. After an exception nothing is committed, and the data files
    that were written are removed.
    """

    def __init__(
        self, handle: TableHandle, base: LoadedTable, spark: SparkSession, reads: ReadPoints
    ) -> None:
        super().__init__(handle, base)
        self._spark = spark
        self._reads = reads

    @property
    def spark(self) -> SparkSession:
        """The session that moves the data."""
        return self._spark

    def append_to_main(
        self,
        df: Rows,
        *,
        snapshot_properties: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
        on_progress: OnProgress | None = None,
    ) -> None:
        """Add rows to `main`, whatever the session says for write-audit-publish."""
        base = self._prepare()
        settings = self._settings(base, Destination(), snapshot_properties)
        files = self._write(base, rows_of(self.spark, df), options, on_progress)
        self.files.append(files, **owning(settings, files))

    def _head(self, target: Destination, base: TableMetadata) -> Snapshot | None:
        if target.wap_id is not None:
            own = snapshots_of_transaction(base, self._base.metadata)
            staged = staged_head(base, target.wap_id, own)
            if staged is not None:
                return staged
        return target.head(base)

    def _read_point(self, branch: str | None) -> int | None:
        return self._reads.of(branch)
