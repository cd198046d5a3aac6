"""TableReads: a table's rows, as it is shown or as a transaction has it so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame

from frazil.format.arguments import SnapshotId
from frazil.later import later
from frazil.table.operations import TableOperations
from frazil.table.time_travel import Moment

if TYPE_CHECKING:
    from frazil.format.predicates.expressions import Expression
    from frazil.spark.port import SparkPort
    from frazil.spark.scan import Scan
    from frazil.spark.write.write_audit_publish import branch_to_read
else:
    Scan = later("frazil.spark.scan", "Scan")
    branch_to_read = later("frazil.spark.write.write_audit_publish", "branch_to_read")


class TableReads(TableOperations):
    """Reads of a table's rows."""

    port: SparkPort

    def scan(
        self,
        where: str | Column | Expression | None = None,
        *,
        columns: str | Sequence[str] | None = None,
        snapshot_id: SnapshotId | None = None,
        as_of: Moment | None = None,
        ref: str | None = None,
        case_sensitive: bool | None = None,
        limit: int | None = None,
    ) -> Scan:
        """Return a query of the table; nothing is read yet.

        Args:
            where: which rows: any condition of Spark as SQL text or as a `Column`, sub-queries too,
                or an expression; what it says of single columns prunes partitions and files.
            columns: which columns in which order, metadata columns such as ``_file`` among them.
            snapshot_id: read this snapshot.
            as_of: read the snapshot that was current then: milliseconds, ISO text (in the session's
                zone unless it names one), a datetime (local time unless it has a zone) or a date.
            ref: read a branch or tag.
            case_sensitive: how names are matched; as Spark is set unless given.
            limit: at most this many rows, any of them.

        Raises:
            NoSuchSnapshotError, NoSuchRefError: there is no such snapshot.
            PredicateError: the condition does not fit the schema, or is refused by Spark.
            ValidationError: a column is not there, or the limit is no number of rows.

        Examples:
            >>> trips.scan("ts >= '2024-03-01'", columns=["id", "fare"], limit=10).to_df()
        """
        metadata = self.metadata
        if snapshot_id is None and as_of is None:
            ref = ref if ref is not None else branch_to_read(self.port.spark, metadata)
            self.port.reads.note(ref, metadata)
        return Scan(
            self.port.spark,
            metadata,
            self.io,
            where=where,
            columns=columns,
            snapshot_id=snapshot_id,
            as_of=as_of,
            ref=ref,
            case_sensitive=case_sensitive,
            limit=limit,
            on_planned=self.port.report_scan,
        )

    def to_df(self) -> DataFrame:
        """Return all rows as a native DataFrame: of `main`, or of the session's WAP branch."""
        return self.scan().to_df()

    def count(self) -> int:
        """Return the number of rows, as `Scan.count` tells it."""
        return self.scan().count()

    def show(self, n: int = 20, truncate: bool | int = True, vertical: bool = False) -> None:
        """Print the first rows, as `DataFrame.show` of Spark does.

        Args:
            n: at most this many rows.
            truncate: cut text after 20 characters, or after that many; False cuts nothing.
            vertical: one line for each value instead of one for each row.
        """
        self.to_df().show(n, truncate, vertical)
