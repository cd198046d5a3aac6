"""Transactions: several operations, one commit; and a table that does not exist yet."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from frazil.catalog.protocol import Catalog, LoadedTable, StagedTable
from frazil.errors import ValidationError
from frazil.format.changes import Update, apply_updates
from frazil.format.metadata import TableMetadata
from frazil.storage.files import FileIO
from frazil.table.commit.loop import abandon, commit, create
from frazil.table.commit.operation import Changes, CompositeOperation, Operation
from frazil.table.operations import TableOperations
from frazil.table.port import HandlePort, TablePort


class TransactionPort(TablePort):
    """Collects operations of a table for one commit.

    Each operation sees what those before it did, and nobody else sees anything until the end. When
    another writer is first, all operations are run again on the newer metadata; one that cannot be
    (a schema change after another one) raises ConflictError. Each checks what others committed
    since the transaction began, and not what the operations before it did.
    """

    def __init__(self, handle: HandlePort, base: LoadedTable) -> None:
        self._handle = handle
        self._base = base
        self._metadata = base.metadata
        self._operations: list[Operation] = []
        self._updates: list[Update] = []
        self._is_open = True

    def __repr__(self) -> str:
        state = "open" if self._is_open else "closed"
        return f"Transaction({self.name}, {len(self._operations)} operations, {state})"

    @property
    def identifier(self) -> tuple[str, ...]:
        """Namespace levels and the table's name."""
        return self._base.identifier

    @property
    def base(self) -> TableMetadata:
        """The table as it was when the transaction began."""
        return self._base.metadata

    @property
    def metadata(self) -> TableMetadata:
        """The table as it will be, with all operations so far."""
        return self._metadata

    @property
    def io(self) -> FileIO:
        """The table's files, by the credentials that it was loaded with."""
        return self._base.io

    @property
    def is_open(self) -> bool:
        """Whether it was neither committed nor rolled back."""
        return self._is_open

    def newest(self) -> TableMetadata:
        """Return the metadata of the transaction."""
        return self._metadata

    def run(self, operation: Operation) -> None:
        """Add an operation.

        Raises:
            ValidationError: the transaction is closed.
        """
        try:
            self._check_open()
            updates = operation.changes(self._metadata, committed=self._base.metadata).updates
            staged = apply_updates(self._metadata, updates)
        except BaseException:
            abandon(operation)
            raise
        self._metadata = staged
        self._updates.extend(updates)
        self._operations.append(operation)

    def commit(self) -> LoadedTable:
        """Commit everything; the transaction is closed then, whether or not that works."""
        self._check_open()
        self._is_open = False
        staged = _Staged(self._operations, self._base.metadata, self._updates)
        committed = commit(self._handle.catalog, self.identifier, staged, base=self._base)
        self._handle.committed(committed, CompositeOperation(self._operations).made_snapshots)
        return committed

    def rollback(self) -> None:
        """Forget everything, and remove what the operations wrote."""
        self._check_open()
        self._is_open = False
        abandon(CompositeOperation(self._operations))

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """Run a block whose operations count together: if it raises, none of them does.

        What they wrote is removed then, and the transaction is as it was before the block.
        """
        metadata, updates, operations = self._metadata, len(self._updates), len(self._operations)
        try:
            yield
        except BaseException:
            abandon(CompositeOperation(self._operations[operations:]))
            self._metadata = metadata
            del self._updates[updates:]
            del self._operations[operations:]
            raise

    def end(self, error: BaseException | None) -> None:
        """End the transaction where it is open: commit it, or after an error roll it back."""
        if not self._is_open:
            return
        if error is None:
            self.commit()
        else:
            self.rollback()

    def _check_open(self) -> None:
        if not self._is_open:
            raise ValidationError("the transaction is closed; begin another one")


class Transaction(TableOperations):
    """Collects operations; leaving the `with` block commits them all at once.

        with table.transaction() as tx:
            with tx.update_schema() as u:
                u.add_column("tip", "double")
            tx.files.append(files)

    Each operation sees what those before it did (`tx.metadata`), and nobody else sees anything
    until the end. An exception inside of the block commits nothing. When another writer is first,
    all operations are run again on the newer metadata; one that cannot be (a schema change after
    another one) raises ConflictError. Each checks what others committed since the block began, and
    not what the operations before it did.
    """

    port: TransactionPort

    def __init__(self, port: TransactionPort) -> None:
        super().__init__(port)

    def __repr__(self) -> str:
        return repr(self.port)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.port.end(error)

    def commit(self) -> LoadedTable:
        """Commit everything; the handle then shows it. The transaction is closed in any case."""
        return self.port.commit()

    def rollback(self) -> None:
        """Forget everything, and remove what the operations wrote."""
        self.port.rollback()


class _Staged(CompositeOperation):
    """The operations of a transaction; on their first base they have been run already."""

    def __init__(
        self, operations: list[Operation], base: TableMetadata, updates: list[Update]
    ) -> None:
        super().__init__(operations)
        self._staged_base = base
        self._staged_updates = updates

    def changes(self, base: TableMetadata, *, committed: TableMetadata | None = None) -> Changes:
        if base is self._staged_base:
            return Changes.of(base, self._staged_updates)
        return super().changes(base, committed=committed)


class CreationPort(TablePort):
    """Collects the first operations of a table that does not exist yet."""

    def __init__(self, catalog: Catalog, staged: StagedTable) -> None:
        self._catalog = catalog
        self._staged = staged
        self._operations: list[Operation] = []

    @property
    def identifier(self) -> tuple[str, ...]:
        """Namespace levels and the table's name."""
        return self._staged.identifier

    @property
    def metadata(self) -> TableMetadata:
        """The table as it will be."""
        return self._staged.metadata

    @property
    def io(self) -> FileIO:
        """The table's files."""
        return self._staged.io

    def newest(self) -> TableMetadata:
        """Return the metadata of the table as it will be."""
        return self._staged.metadata

    def run(self, operation: Operation) -> None:
        """Add an operation."""
        try:
            self._staged = self._staged.updated(operation.changes(self.metadata).updates)
        except BaseException:
            abandon(operation)
            raise
        self._operations.append(operation)

    def create(self) -> LoadedTable:
        """Create the table with everything so far."""
        return create(self._catalog, self._staged, CompositeOperation(self._operations))

    def abandon(self) -> None:
        """Remove what the operations wrote."""
        abandon(CompositeOperation(self._operations))


class CreateTransaction(TableOperations):
    """A table that does not exist yet, and its first operations; the `with` block creates it.

        with CreateTransaction(catalog, catalog.stage_table("db.t", metadata)) as tx:
            tx.files.append(files)
        table = TableHandle(catalog, tx.created)

    Raises TableAlreadyExistsError at the end of the block if somebody else was first; then, and
    after any exception inside of the block, what the operations wrote is removed.
    """

    port: CreationPort

    def __init__(self, catalog: Catalog, staged: StagedTable) -> None:
        super().__init__(CreationPort(catalog, staged))
        self._created: LoadedTable | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.create()
        else:
            self.port.abandon()

    @property
    def created(self) -> LoadedTable:
        """The table, once it is created."""
        if self._created is None:
            raise ValidationError(f"{self.port.name} is not created yet")
        return self._created

    def create(self) -> LoadedTable:
        """Create the table with everything so far."""
        self._created = self.port.create()
        return self._created
