"""Transaction: several operations, one commit."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from frazil.catalog.base import Catalog, LoadedTable
from frazil.catalog.identifiers import parse_table_identifier
from frazil.errors import ValidationError
from frazil.format.changes import Update, apply_updates
from frazil.format.metadata import TableMetadata
from frazil.storage.files import FileIO
from frazil.table.commit.loop import abandon, commit, create
from frazil.table.commit.operation import Changes, CompositeOperation, Operation
from frazil.table.operations import TableOperations


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

    def __init__(self, catalog: Catalog, base: LoadedTable, io: FileIO) -> None:
        self._catalog = catalog
        self._base = base
        self._io = io
        self._metadata = base.metadata
        self._operations: list[Operation] = []
        self._updates: list[Update] = []
        self._is_open = True
        self.committed: LoadedTable | None = None

    def __repr__(self) -> str:
        state = "open" if self._is_open else "closed"
        name = ".".join(self._base.identifier)
        return f"Transaction({name}, {len(self._operations)} operations, {state})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._is_open:
            return
        if kind is None:
            self.commit()
        else:
            self.rollback()

    @property
    def metadata(self) -> TableMetadata:
        """The table as it will be, with all operations so far."""
        return self._metadata

    @property
    def io(self) -> FileIO:
        """The table's files."""
        return self._io

    @property
    def made_snapshots(self) -> frozenset[int]:
        """The ids of the snapshots that the operations make."""
        return CompositeOperation(self._operations).made_snapshots

    def commit(self) -> LoadedTable:
        """Commit everything; the transaction is closed then, whether or not that works."""
        self._check_open()
        self._is_open = False
        staged = _Staged(self._operations, self._base.metadata, self._updates)
        self.committed = commit(self._catalog, self._base.identifier, staged, base=self._base)
        return self.committed

    def rollback(self) -> None:
        """Forget everything, and remove what the operations wrote."""
        self._check_open()
        self._is_open = False
        abandon(CompositeOperation(self._operations))

    def _prepare(self) -> TableMetadata:
        """Return the metadata of the transaction."""
        return self._metadata

    def _run(self, operation: Operation) -> None:
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

    def _check_open(self) -> None:
        if not self._is_open:
            raise ValidationError("the transaction is closed; begin another one")


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


class CreateTransaction(TableOperations):
    """A table that does not exist yet, and its first operations; the `with` block creates it.

        with CreateTransaction(catalog, "db.t", metadata) as tx:
            tx.files.append(files)
        table = TableHandle(catalog, tx.created)

    Raises TableAlreadyExistsError at the end of the block if somebody else was first; then, and
    after any exception inside of the block, what the operations wrote is removed.
    """

    def __init__(
        self, catalog: Catalog, identifier: str | Sequence[str], metadata: TableMetadata
    ) -> None:
        self._catalog = catalog
        self._identifier = parse_table_identifier(identifier)
        self._metadata = metadata
        self._operations: list[Operation] = []
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
            abandon(CompositeOperation(self._operations))

    @property
    def metadata(self) -> TableMetadata:
        """The table as it will be."""
        return self._metadata

    @property
    def io(self) -> FileIO:
        """The table's files."""
        return self._catalog.io

    @property
    def created(self) -> LoadedTable:
        """The table, once it is created."""
        if self._created is None:
            raise ValidationError(f"{'.'.join(self._identifier)} is not created yet")
        return self._created

    def create(self) -> LoadedTable:
        """Create the table with everything so far."""
        self._created = create(
            self._catalog, self._identifier, self._metadata, CompositeOperation(self._operations)
        )
        return self._created

    def _prepare(self) -> TableMetadata:
        """Return the metadata of the transaction."""
        return self._metadata

    def _run(self, operation: Operation) -> None:
        try:
            updates = operation.changes(self._metadata).updates
            self._metadata = apply_updates(self._metadata, updates)
        except BaseException:
            abandon(operation)
            raise
        self._operations.append(operation)
