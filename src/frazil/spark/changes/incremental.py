"""IncrementalScan: the rows that appends added after one snapshot and up to another."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pyspark.sql import Column, SparkSession

from frazil.format.metadata import TableMetadata
from frazil.format.predicates.expressions import Expression
from frazil.planning.changes import appended_files
from frazil.planning.changes_range import SnapshotRange
from frazil.planning.counts.rows import CountedRows
from frazil.planning.scan_plan import ScanPlan
from frazil.spark.scan import Scan
from frazil.storage.files import FileIO


class IncrementalScan(Scan):
    """A read of what `append` snapshots of a range added; other snapshots are skipped.

    Rows that were deleted later are there: they were appended. Rows are read with the schema of the
    range's end, the table's where the end was not asked for.

    Args:
        snapshots: the range.
        snapshot_id: its end, where it was asked for.
        ref: its end, where it was asked for as a branch or tag.
    """

    def __init__(
        self,
        spark: SparkSession,
        metadata: TableMetadata,
        io: FileIO,
        *,
        snapshots: SnapshotRange,
        where: str | Column | Expression | None = None,
        columns: str | Sequence[str] | None = None,
        snapshot_id: int | None = None,
        ref: str | None = None,
        case_sensitive: bool | None = None,
        limit: int | None = None,
        name: str = "",
    ) -> None:
        super().__init__(
            spark,
            metadata,
            io,
            where=where,
            columns=columns,
            snapshot_id=snapshot_id,
            ref=ref,
            case_sensitive=case_sensitive,
            limit=limit,
            name=name,
        )
        self.snapshots = snapshots

    def __repr__(self) -> str:
        start = self.snapshots.start_id
        since = "from the first snapshot on" if start is None else f"after snapshot {start}"
        return f"Incremental{super().__repr__()[:-1]}, appended {since})"

    def _counts(self) -> CountedRows:
        return self._counted_in_plan()

    def _files(self, where: Expression, statistics: Mapping[str, Collection[int]]) -> ScanPlan:
        return appended_files(
            self._metadata,
            self.snapshots.snapshots,
            self._io,
            where=where,
            schema=self.schema,
            statistics=statistics,
        )
