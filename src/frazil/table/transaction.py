"""Transactions: several operations, one commit; and a table that does not exist yet."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from frazil.catalog.protocol import Catalog, LoadedTable, StagedTable
from frazil.errors import ValidationError
from frazil.format.changes import Requirement, Update
from frazil.format.metadata import TableMetadata
from frazil.later import later
from frazil.table.commit.block import CommittedAtEnd
from frazil.table.commit.loop import abandon, commit, create
from frazil.table.commit.operation import Changes, CompositeOperation, Operation
from frazil.table.operations import TableOperations
from frazil.table.port import HandlePort, TablePort

if TYPE_CHECKING:
    from frazil.table.commit.together import ChangedTable, NewTable
else:
    ChangedTable, NewTable = later("frazil.table.commit.together", "ChangedTable", "NewTable")


class CollectingPort(TablePort, CommittedAtEnd):
    """Collects operations for one commit, which closes it.

    Each operation sees what those before it did, and nobody else sees anything until the end.
    """

    _table: StagedTable

    def __init__(self, table: StagedTable, committed: TableMetadata | None = None) -> None:
        """Begin.

        Args:
            committed: the table as others see it; None for one that does not exist yet.
        """
        super().__init__(table)
        self._committed = committed
        self._operations: list[Operation] = []
        self._reads: list[Requirement] = []
        self._is_open = True

    def __repr__(self) -> str:
        state = "open" if self._is_open else "closed"
        return f"Transaction({self.name}, {len(self._operations)} operations, {state})"

    @property
    def is_open(self) -> bool:
        """Whether it was neither committed nor rolled back."""
        return self._is_open

    def newest(self) -> TableMetadata:
        """Return the metadata with all operations so far."""
        return self.metadata

    def run(self, operation: Operation) -> None:
        """Add an operation."""
        self._collect(operation)

    def check_at_commit(self, read: Operation) -> None:
        """Add what a command has read that changes nothing: the commit checks it."""
        self._collect(read)

    def _collect(self, operation: Operation) -> None:
        try:
            self._check_open()
            changes = operation.changes(self.metadata, committed=self._committed)
            self._table = self._table.with_updates(changes.updates)
            self._reads.extend(changes.reads)
        except BaseException:
            abandon(operation)
            raise
        for earlier in self._operations:
            earlier.before_another()
        self._operations.append(operation)

    def commit(self) -> LoadedTable:
        """Commit everything; the transaction is closed then, whether or not that works."""
        self._check_open()
        self._is_open = False
        return self.commit_operations(CompositeOperation(self._operations))

    @abstractmethod
    def commit_operations(self, operations: CompositeOperation) -> LoadedTable:
        """Commit operations, and return the table with them."""

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """Run a block whose operations count together: if it raises, none of them does.

        What they wrote is removed then, and the transaction is as it was before the block.
        """
        table, operations, reads = self._table, len(self._operations), len(self._reads)
        try:
            yield
        except BaseException:
            abandon(CompositeOperation(self._operations[operations:]))
            self._table = table
            del self._operations[operations:]
            del self._reads[reads:]
            raise

    def rollback(self) -> None:
        """Forget everything, and remove what the operations wrote."""
        self._check_open()
        self._is_open = False
        abandon(CompositeOperation(self._operations))

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


class TransactionPort(CollectingPort):
    """Collects operations of a table for one commit.

    When another writer is first, all operations are run again on the newer metadata; one that
    cannot be (a schema change after another one) raises ConflictError. Each checks what others
    committed since the transaction began, and not what the operations before it did.
    """

    def __init__(self, handle: HandlePort, base: LoadedTable) -> None:
        super().__init__(
            StagedTable(base.identifier, base.metadata, base.io, base.config), base.metadata
        )
        self._handle = handle
        self._base = base

    @property
    def base(self) -> TableMetadata:
        """The table as it was when the transaction began."""
        return self._base.metadata

    def commit_operations(self, operations: CompositeOperation) -> LoadedTable:
        """Commit operations, and let the handle show the table with them."""
        if self._reads and not self._table.updates:
            # What changes nothing is as if it had been done when it read.
            abandon(operations)
            return self._base
        staged = self._staged_changes
        committed = commit(self._handle.catalog, self.identifier, staged, base=self._base)
        self._handle.show_commit(committed, operations.made_snapshots)
        return committed

    def close(self, read: Mapping[str, int | None]) -> ChangedTable:
        """End it without a commit; return what a commit of several tables has of it.

        `read`: the references whose rows must stay, and where they were.
        """
        self._check_open()
        self._is_open = False
        return ChangedTable(self.identifier, self._staged_changes, self._base, read)

    @property
    def _staged_changes(self) -> _Staged:
        return _Staged(self._operations, self.base, self._table.updates, self._reads)


class Transaction(TableOperations, CommittedAtEnd):
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

    port: CollectingPort

    def __init__(self, port: CollectingPort) -> None:
        super().__init__(port)

    def __repr__(self) -> str:
        return repr(self.port)

    def commit(self) -> LoadedTable:
        """Commit everything; the handle then shows it. The transaction is closed in any case."""
        return self.port.commit()

    def rollback(self) -> None:
        """Forget everything, and remove what the operations wrote."""
        self.port.rollback()

    def end(self, error: BaseException | None) -> None:
        """End the block: commit, or after an error roll back."""
        self.port.end(error)


class _Staged(CompositeOperation):
    """The operations of a transaction; on their first base they have been run already."""

    def __init__(
        self,
        operations: Sequence[Operation],
        base: TableMetadata,
        updates: Sequence[Update],
        reads: Sequence[Requirement],
    ) -> None:
        super().__init__(operations)
        self._staged_base = base
        self._staged_updates = updates
        self._staged_reads = reads

    def changes(self, base: TableMetadata, *, committed: TableMetadata | None = None) -> Changes:
        if base is self._staged_base:
            return Changes.of(base, self._staged_updates, self._staged_reads)
        return super().changes(base, committed=committed)


class CreationPort(CollectingPort):
    """Collects the first operations of a table that does not exist yet."""

    def __init__(self, catalog: Catalog, staged: StagedTable) -> None:
        super().__init__(staged)
        self._begun = staged
        self._catalog = catalog
        self._created: LoadedTable | None = None

    @property
    def created_table(self) -> LoadedTable:
        """The table, once it is created."""
        if self._created is None:
            raise ValidationError(f"{self.name} is not created yet")
        return self._created

    def close(self) -> NewTable:
        """End it without a commit; return what a commit of several tables has of it."""
        self._check_open()
        self._is_open = False
        return NewTable(self._begun, CompositeOperation(self._operations), self._table)

    def commit_operations(self, operations: CompositeOperation) -> LoadedTable:
        """Create the table with the operations."""
        self._created = create(self._catalog, self._table, operations)
        return self._created


class CreateTransaction(Transaction):
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

    @property
    def created_table(self) -> LoadedTable:
        """The table, once it is created."""
        return self.port.created_table
