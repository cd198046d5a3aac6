"""The tables of a transaction: those that it has used, and those that it makes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import SparkSession

from frazil.catalog.identifiers import Identifier, parse_table_identifier, shown
from frazil.catalog.protocol import Capability, Catalog, LoadedTable, StagedTable
from frazil.errors import TableAlreadyExistsError, UnsupportedError, ValidationError
from frazil.format.metadata import TableMetadata
from frazil.format.snapshots import MAIN_BRANCH
from frazil.spark.creation import CreateTable
from frazil.spark.lake_transaction.catalog import TransactionCatalog
from frazil.spark.port import SparkCreationPort, SparkHandlePort, SparkTransactionPort
from frazil.spark.read_points import ReadPoints
from frazil.spark.transaction.table import TransactionTable
from frazil.spark.upserts.once import Batch, BatchAppliedError, mark
from frazil.table.commit.operation import Operation
from frazil.table.commit.requirements import ref_snapshot_id
from frazil.table.commit.together import TablePart, commit_together
from frazil.table.conflicts.validation import Isolation, isolation_named


class JoinedTables:
    """The tables of a transaction, as of the moment when it began.

    Attributes:
        of_one_thread: each table is changed by one thread alone; where not, who begins the
            transaction sees to it that one change runs at a time.

    Args:
        isolation: see `LakeTransactions.transaction`.
        batch: what the tables are to remember of the transaction.

    Raises:
        UnsupportedError: the catalog commits each table alone.
        ValidationError: there is no such isolation level.
    """

    def __init__(
        self,
        spark: SparkSession,
        catalog: Catalog,
        isolation: str = "serializable",
        *,
        batch: Batch | None = None,
    ) -> None:
        if not catalog.can(Capability.MULTI_TABLE_COMMITS):
            raise UnsupportedError(
                f"the {catalog.kind} catalog {catalog.name} commits each table alone, so it has no "
                "transactions of several: use table.transaction(), or a catalog in a database"
            )
        self.spark = spark
        self.isolation: Isolation = isolation_named(isolation)
        self.is_open = True
        self.of_one_thread = True
        self.catalog = TransactionCatalog(catalog, self)
        self._below = catalog
        self._batch = batch
        self._load: Callable[[Identifier], LoadedTable] = catalog.loading_as_of_now()
        self._joined: dict[Identifier, JoinedPort] = {}
        self._new: dict[Identifier, NewTablePort] = {}
        self._guard = threading.RLock()

    @property
    def names(self) -> Sequence[Identifier]:
        """The tables that were used or are made."""
        return (*self._joined, *self._new)

    @property
    def made_tables(self) -> Sequence[Identifier]:
        """The tables that the transaction makes."""
        return tuple(self._new)

    @property
    def first_properties(self) -> Mapping[str, str]:
        """The properties of the table that was used first."""
        first = next(iter(self._joined.values()), None)
        return {} if first is None else first.base.properties

    def table(self, identifier: str | Sequence[str]) -> TransactionTable:
        """Return a table with the changes so far."""
        port = self._port(parse_table_identifier(identifier))
        return TransactionTable(self.catalog, port, port.metadata_location)

    def loaded_table(self, identifier: Identifier) -> LoadedTable:
        """Return a table with the changes so far, as a catalog does."""
        port = self._port(identifier)
        return LoadedTable(identifier, port.metadata, port.metadata_location, port.io)

    def create(self, command: CreateTable) -> TransactionTable:
        """Make a table as a part of the transaction."""
        self.check_open()
        made: list[NewTablePort] = []

        def begin(staged: StagedTable) -> NewTablePort:
            made.append(self._new_port(staged))
            return made[0]

        command.run_within(self.spark, self.catalog, begin)
        self._add(made[0])
        return self.table(made[0].identifier)

    def make_empty(self, staged: StagedTable) -> None:
        """Make an empty table as a part of the transaction."""
        self._add(self._new_port(staged))

    def commit(self) -> None:
        """Commit everything; see `LakeTransaction.commit`."""
        parts = self._close()
        if parts:
            commit_together(self._below, parts)

    def rollback(self) -> None:
        """Forget everything, and remove what was written."""
        with self._guard:
            self.check_open()
            self.is_open = False
        for port in (*self._joined.values(), *self._new.values()):
            port.rollback()

    def check_open(self) -> None:
        """Raise ValidationError where the transaction has ended."""
        if not self.is_open:
            raise ValidationError("the transaction is closed; begin another one")

    def _add(self, port: NewTablePort) -> None:
        with self._guard:
            if self.is_open and port.identifier not in self._new:
                self._new[port.identifier] = port
                return
        # Another thread has made the table, or ended the transaction.
        port.rollback()
        self.check_open()
        raise TableAlreadyExistsError(f"the transaction has made {shown(port.identifier)}")

    def _port(self, name: Identifier) -> JoinedPort | NewTablePort:
        with self._guard:
            self.check_open()
            found = self._new.get(name) or self._joined.get(name)
            if found is None:
                loaded = self._load(name)
                if self._batch is not None and self._batch.is_in(loaded.metadata):
                    raise BatchAppliedError(
                        f"the table {shown(name)} has batch {self._batch.number} of the query "
                        f"{self._batch.query} already, and so have the others of the transaction"
                    )
                found = JoinedPort(
                    self.spark,
                    self._below,
                    loaded,
                    batch=self._batch,
                    of_one_thread=self.of_one_thread,
                )
                self._joined[name] = found
            return found

    def _new_port(self, staged: StagedTable) -> NewTablePort:
        return NewTablePort(
            self.spark,
            self._below,
            staged,
            batch=self._batch,
            of_one_thread=self.of_one_thread,
        )

    def _close(self) -> list[TablePart]:
        with self._guard:
            self.check_open()
            self.is_open = False
            read: list[TablePart] = []
            changed: list[TablePart] = []
            for port in self._joined.values():
                heads = dict(port.reads.heads) if self.isolation == "serializable" else {}
                is_changed = port.is_changed
                part = port.close(heads)
                if is_changed:
                    changed.append(part)
                elif heads:
                    read.append(part)
            changed.extend(port.close() for port in self._new.values())
        # What was read at one moment and changes nothing is as if it had been done then.
        return [*changed, *read] if changed else []


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
