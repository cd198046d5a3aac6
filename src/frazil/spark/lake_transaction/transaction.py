"""LakeTransaction: changes of several tables that become visible together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Unpack

from pyspark.sql import DataFrame, SparkSession

from frazil.catalog.identifiers import Identifier, parse_table_identifier
from frazil.catalog.protocol import Capability, Catalog, LoadedTable, StagedTable
from frazil.errors import UnsupportedError, ValidationError
from frazil.spark.creation import CreateKwargs, CreateTable
from frazil.spark.lake_transaction.catalog import TransactionCatalog
from frazil.spark.lake_transaction.ports import JoinedPort, NewTablePort
from frazil.spark.row_level.options import CommitOptions
from frazil.spark.row_level.writes import Rows
from frazil.spark.schemas.schema_like import SchemaLike
from frazil.spark.sql.context import CurrentNamespace, SqlContext
from frazil.spark.sql.run import run_sql
from frazil.spark.table import Table
from frazil.spark.transaction import TransactionTable
from frazil.spark.upserts.once import Batch, BatchAppliedError
from frazil.spark.words import WordReader
from frazil.storage.on_driver import OnDriver
from frazil.table.commit.block import CommittedAtEnd
from frazil.table.commit.together import TablePart, commit_together
from frazil.table.conflicts.validation import Isolation, isolation_named

_ENDS = ("BEGIN", "START", "COMMIT", "ROLLBACK")


class LakeTransaction(OnDriver, CommittedAtEnd):
    """Changes of several tables, all or none; the end of the `with` block commits them.

        with lake.transaction() as tx:
            tx.table("db.orders").append(orders)
            tx.table("db.totals").merge(sums, on=["id"]).when_matched_update_all().execute()

    Every table is read as it was when the transaction began, with the transaction's own changes.
    Nobody else sees these before the end, and then all of them at once. After an exception nothing
    is changed, and the files that were written are removed.

    Attributes:
        isolation: what others may change of the rows that were read; see `Lake.transaction`.
    """

    def __init__(
        self,
        spark: SparkSession,
        catalog: Catalog,
        current: CurrentNamespace,
        *,
        isolation: str = "serializable",
        batch: Batch | None = None,
    ) -> None:
        if not catalog.can(Capability.MULTI_TABLE_COMMITS):
            raise UnsupportedError(
                f"the {catalog.kind} catalog {catalog.name} commits each table alone, so it has no "
                "transactions of several: use table.transaction(), or a catalog in a database"
            )
        self.isolation: Isolation = isolation_named(isolation)
        self.spark = spark
        self._catalog = catalog
        self._seen = TransactionCatalog(catalog, self)
        self._current = current
        self._batch = batch
        self._load: Callable[[Identifier], LoadedTable] = catalog.loading_as_of_now()
        self._joined: dict[Identifier, JoinedPort] = {}
        self._new: dict[Identifier, NewTablePort] = {}
        self._guard = threading.RLock()
        self._is_open = True

    def __repr__(self) -> str:
        names = sorted(".".join(name) for name in (*self._joined, *self._new))
        return f"LakeTransaction({', '.join(names)}: {'open' if self._is_open else 'closed'})"

    @property
    def is_open(self) -> bool:
        """Whether it was neither committed nor rolled back."""
        return self._is_open

    @property
    def first_properties(self) -> Mapping[str, str]:
        """The properties of the table that was used first; they say how often to try."""
        first = next(iter(self._joined.values()), None)
        return {} if first is None else first.base.properties

    # -- tables ----------------------------------------------------------------------------------

    def table(self, identifier: str | Sequence[str]) -> TransactionTable:
        """Return a table, as it was when the transaction began and with the changes so far.

        Raises:
            NoSuchTableError: there was none.
            ValidationError: the transaction is closed.

        Examples:
            >>> with lake.transaction() as tx:
            ...     tx.table("db.trips").append(df)
        """
        given: object = identifier
        if isinstance(given, Table):
            raise ValidationError(
                f"a transaction takes names of its own lake's tables, as 'db.t', not the table "
                f"{given.name}: a table of another lake cannot be in it"
            )
        port = self._port(parse_table_identifier(identifier))
        return TransactionTable(self._seen, port, port.metadata_location)

    def table_exists(self, identifier: str | Sequence[str]) -> bool:
        """Return whether there is a table of that name, in the transaction too."""
        return self._seen.table_exists(identifier)

    def create_table(
        self,
        identifier: str | Sequence[str],
        schema: SchemaLike,
        **definition: Unpack[CreateKwargs],
    ) -> TransactionTable:
        """Make an empty table at the end of the transaction; see `Lake.create_table`.

        Raises:
            TableAlreadyExistsError: the name is taken.
            NoSuchNamespaceError: the namespace is not there.
        """
        return self.create(
            CreateTable(identifier=identifier, schema=schema, rows=None, **definition)
        )

    def create_table_as_select(
        self,
        identifier: str | Sequence[str],
        df: Rows,
        *,
        snapshot_properties: Mapping[str, str] | None = None,
        **definition: Unpack[CreateKwargs],
    ) -> TransactionTable:
        """Make a table of rows at the end of the transaction; see `Lake.create_table_as_select`."""
        options = CommitOptions(snapshot_properties=snapshot_properties)
        return self.create(
            CreateTable(identifier=identifier, rows=df, options=options, **definition)
        )

    def create(self, command: CreateTable) -> TransactionTable:
        """Make a table as a part of the transaction."""
        with self._guard:
            self._check_open()
            port = command.run_within(self.spark, self._seen, self._new_port)
            assert isinstance(port, NewTablePort)
            self._new[port.identifier] = port
        return self.table(port.identifier)

    def sql(
        self,
        statement: str,
        args: Mapping[str, Any] | Sequence[Any] | None = None,
        **frames: Any,
    ) -> DataFrame:
        """Run a statement as a part of the transaction; see `Lake.sql`.

        Raises:
            UnsupportedError: a transaction cannot hold such a statement, as CALL or DROP TABLE.

        Examples:
            >>> with lake.transaction() as tx:
            ...     tx.sql("DELETE FROM db.trips WHERE fare = 0")
        """
        self._check_open()
        first = _first_words(statement)
        if first[:1] == ("CALL",):
            raise UnsupportedError("a transaction cannot hold a CALL: run it before or after")
        if is_control(first):
            raise UnsupportedError(
                f"{first[0]} is not a part of a transaction: the end of the block commits it, and "
                "transactions are not nested"
            )
        context = SqlContext(self.spark, self._seen, self._current, frames=frames, transaction=self)
        return run_sql(context, statement, args)

    # -- the end ---------------------------------------------------------------------------------

    def commit(self) -> None:
        """Commit everything; the transaction is closed then, whether or not that works.

        Raises:
            ConflictError: another commit contradicts a change, or has changed rows that were read.
            CommitFailedError: other writers were first in every try.
            TableAlreadyExistsError: somebody else has made a table of the name of a new one.
            CommitStateUnknownError: the outcome is unknown; nothing was removed.
        """
        parts = self._close()
        if parts:
            commit_together(self._catalog, parts)

    def rollback(self) -> None:
        """Forget everything, and remove what was written."""
        with self._guard:
            self._check_open()
            self._is_open = False
            ports = [*self._joined.values(), *self._new.values()]
        for port in ports:
            port.rollback()

    def end(self, error: BaseException | None) -> None:
        """End the transaction where it is open: commit it, or after an error roll it back."""
        if not self._is_open:
            return
        if error is None:
            self.commit()
        else:
            self.rollback()

    # -- for the catalog that statements see -----------------------------------------------------

    @property
    def made(self) -> Sequence[Identifier]:
        """The tables that the transaction makes."""
        return tuple(self._new)

    def loaded(self, identifier: Identifier) -> LoadedTable:
        """Return a table with the changes so far."""
        port = self._port(identifier)
        return LoadedTable(identifier, port.metadata, port.metadata_location, port.io)

    def make_empty(self, staged: StagedTable) -> None:
        """Make an empty table as a part of the transaction."""
        with self._guard:
            self._check_open()
            self._new[staged.identifier] = self._new_port(staged)

    # -- parts -----------------------------------------------------------------------------------

    def _port(self, name: Identifier) -> JoinedPort | NewTablePort:
        with self._guard:
            self._check_open()
            found = self._new.get(name) or self._joined.get(name)
            if found is None:
                loaded = self._load(name)
                if self._batch is not None and self._batch.is_in(loaded.metadata):
                    raise BatchAppliedError(
                        f"the table {'.'.join(name)} has batch {self._batch.number} of the query "
                        f"{self._batch.query} already, and so have the others"
                    )
                found = JoinedPort(self.spark, self._catalog, loaded, batch=self._batch)
                self._joined[name] = found
            return found

    def _new_port(self, staged: StagedTable) -> NewTablePort:
        return NewTablePort(self.spark, self._catalog, staged, batch=self._batch)

    def _close(self) -> list[TablePart]:
        with self._guard:
            self._check_open()
            self._is_open = False
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

    def _check_open(self) -> None:
        if not self._is_open:
            raise ValidationError("the transaction is closed; begin another one")


def _first_words(statement: object) -> tuple[str, ...]:
    if not isinstance(statement, str):
        return ()
    return tuple(word.keyword for word in WordReader(statement).words[:3])


def is_control(words: Sequence[str]) -> bool:
    """Whether the words are those of BEGIN, COMMIT or ROLLBACK, not of a script of Spark's."""
    if not words or words[0] not in _ENDS:
        return False
    second = words[1] if len(words) > 1 else ""
    if words[0] == "BEGIN":
        return second in ("", ";", "TRANSACTION", "WORK")
    return second == "TRANSACTION" if words[0] == "START" else True
