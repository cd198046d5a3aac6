"""LakeTransaction: changes of several tables that become visible together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from pyspark.sql import DataFrame

from frazil.errors import UnsupportedError, ValidationError
from frazil.spark.creation import CreateKwargs, CreateTable
from frazil.spark.lake_transaction.tables import JoinedTables
from frazil.spark.row_level.options import CommitOptions
from frazil.spark.row_level.writes import Rows
from frazil.spark.schemas.schema_like import SchemaLike
from frazil.spark.sql.context import CurrentNamespace, SqlContext
from frazil.spark.sql.execute_immediate import immediate_statement, is_immediate
from frazil.spark.sql.run import run_sql
from frazil.spark.table import Table
from frazil.spark.transaction.table import TransactionTable
from frazil.spark.words import WordReader
from frazil.storage.on_driver import OnDriver
from frazil.table.commit.block import CommittedAtEnd
from frazil.table.conflicts.validation import Isolation

_ENDS = ("BEGIN", "START", "COMMIT", "ROLLBACK")


class LakeTransaction(OnDriver, CommittedAtEnd):
    """Changes of several tables, all or none; the end of the `with` block commits them.

        with lake.transaction() as tx:
            tx.table("db.orders").append(orders)
            tx.table("db.totals").merge(sums, on=["id"]).when_matched_update_all().execute()

    Every table is read as it was when the transaction began, with the transaction's own changes.
    Nobody else sees these before the end, and then all of them at once. After an exception nothing
    is changed, and the files that were written are removed.
    """

    def __init__(self, tables: JoinedTables, current: CurrentNamespace) -> None:
        self._tables = tables
        self._current = current

    def __repr__(self) -> str:
        names = ", ".join(sorted(".".join(name) for name in self._tables.names))
        return f"LakeTransaction({names or 'no table yet'}: {'open' if self.is_open else 'closed'})"

    @property
    def is_open(self) -> bool:
        """Whether it was neither committed nor rolled back."""
        return self._tables.is_open

    @property
    def isolation(self) -> Isolation:
        """What others may change of the rows that were read; see `Lake.transaction`."""
        return self._tables.isolation

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
        return self._tables.table(identifier)

    def table_exists(self, identifier: str | Sequence[str]) -> bool:
        """Return whether there is a table of that name, in the transaction too."""
        return self._tables.catalog.table_exists(identifier)

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
        return self._tables.create(
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
        return self._tables.create(
            CreateTable(identifier=identifier, rows=df, options=options, **definition)
        )

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
        self._tables.check_open()
        if is_immediate(statement):
            return self.sql(immediate_statement(self._tables.spark, statement, args), **frames)
        first = _first_words(statement)
        if first[:1] == ("CALL",):
            raise UnsupportedError("a transaction cannot hold a CALL: run it before or after")
        if is_control(first):
            raise UnsupportedError(
                f"{first[0]} is not a part of a transaction: the end of the block commits it, and "
                "transactions are not nested"
            )
        tables = self._tables
        context = SqlContext(
            tables.spark, tables.catalog, self._current, frames=frames, transaction=tables
        )
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
        self._tables.commit()

    def rollback(self) -> None:
        """Forget everything, and remove what was written."""
        self._tables.rollback()

    def end(self, error: BaseException | None) -> None:
        """End the transaction where it is open: commit it, or after an error roll it back."""
        if not self.is_open:
            return
        if error is None:
            self.commit()
        else:
            self.rollback()


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
