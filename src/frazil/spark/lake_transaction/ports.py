"""What commands get of a table in a transaction of a lake."""

from __future__ import annotations

import threading

from pyspark.sql import SparkSession

from frazil.catalog.protocol import Catalog, LoadedTable, StagedTable
from frazil.errors import ValidationError
from frazil.format.metadata import TableMetadata
from frazil.format.snapshots import MAIN_BRANCH
from frazil.spark.port import SparkCreationPort, SparkHandlePort, SparkTransactionPort
from frazil.spark.read_points import ReadPoints
from frazil.spark.upserts.once import Batch, mark
from frazil.table.commit.operation import Operation
from frazil.table.commit.requirements import ref_snapshot_id


class _ReadsSinceBegin(ReadPoints):
    """Which references of a table were read, and where they were when the transaction began."""

    def __init__(self, begun: TableMetadata) -> None:
        super().__init__(begun)
        self._begun = begun
        self.heads: dict[str, int | None] = {}

    def note(self, branch: str | None, metadata: TableMetadata) -> None:
        super().note(branch, metadata)
        name = branch or MAIN_BRANCH
        self.heads[name] = ref_snapshot_id(self._begun, name)


class _OneThread:
    """Tells whether a table is used by the thread that used it first.

    Args:
        counts: whether that matters.
    """

    def __init__(self, *, counts: bool) -> None:
        self._counts = counts
        self._thread: int | None = None
        self._guard = threading.Lock()

    def check(self, name: str) -> None:
        if not self._counts:
            return
        with self._guard:
            if self._thread is None:
                self._thread = threading.get_ident()
            if self._thread == threading.get_ident():
                return
        raise ValidationError(
            f"in a transaction one thread changes a table: {name} is another thread's; change "
            "other tables there, or begin a transaction for each thread"
        )


class JoinedPort(SparkTransactionPort):
    """Collects operations on a table for the commit of a transaction of several."""

    reads: _ReadsSinceBegin

    def __init__(
        self,
        spark: SparkSession,
        catalog: Catalog,
        base: LoadedTable,
        *,
        batch: Batch | None,
        of_one_thread: bool,
    ) -> None:
        handle = SparkHandlePort(spark, catalog, base)
        super().__init__(handle, base, _ReadsSinceBegin(base.metadata))
        self._batch = batch
        self._by = _OneThread(counts=of_one_thread)

    @property
    def metadata_location(self) -> str:
        """The metadata file of the table as it was when the transaction began."""
        return self._base.metadata_location

    @property
    def is_changed(self) -> bool:
        """Whether there are operations."""
        return bool(self._operations)

    def newest(self) -> TableMetadata:
        """Return the metadata with all operations so far."""
        self._by.check(self.name)
        return super().newest()

    def run(self, operation: Operation) -> None:
        """Add an operation."""
        self._by.check(self.name)
        if self._batch is not None and not self._batch.is_in(self.metadata):
            super().run(mark(self._batch))
        super().run(operation)


class NewTablePort(SparkCreationPort):
    """Collects operations on a table that the commit of a transaction makes."""

    def __init__(
        self,
        spark: SparkSession,
        catalog: Catalog,
        staged: StagedTable,
        *,
        batch: Batch | None,
        of_one_thread: bool,
    ) -> None:
        super().__init__(spark, catalog, staged)
        self._by = _OneThread(counts=of_one_thread)
        if batch is not None:
            super().run(mark(batch))

    metadata_location = ""

    def newest(self) -> TableMetadata:
        """Return the metadata with all operations so far."""
        self._by.check(self.name)
        return super().newest()

    def run(self, operation: Operation) -> None:
        """Add an operation."""
        self._by.check(self.name)
        super().run(operation)
