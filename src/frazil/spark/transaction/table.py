"""Changes of a table in one commit: its own, or one that it shares with other tables."""

from __future__ import annotations

from typing import NoReturn

from frazil.catalog.protocol import Catalog
from frazil.errors import UnsupportedError
from frazil.spark.metadata_frames.inspector import TableInspector
from frazil.spark.port import SparkPort, SparkTransactionPort
from frazil.spark.row_level.commands import RowCommands
from frazil.spark.transaction.reads import TableReads
from frazil.table.transaction import Transaction


class TableTransaction(RowCommands, Transaction):
    """Changes of a table that become visible together, at the end of the `with` block.

        with trips.transaction() as tx:
            with tx.update_schema() as change:
                change.add_column("tip", "double")
            tx.overwrite(df, where="ts >= '2024-03-01'")

    Each operation sees those before it. After an exception nothing is committed, and the data files
    that were written are removed.
    """

    port: SparkTransactionPort

    def __init__(self, port: SparkTransactionPort) -> None:
        super().__init__(port)


class TransactionTable(TableReads, RowCommands):
    """A table in a transaction of a lake: read as when that began, with the changes so far.

    It has the changes of a `TableTransaction` and the reads of a `Table`. Nobody else sees the
    changes before the transaction is committed.
    """

    def __init__(self, catalog: Catalog, port: SparkPort, metadata_location: str) -> None:
        super().__init__(port)
        self._catalog = catalog
        self._metadata_location = metadata_location

    def __repr__(self) -> str:
        return f"TransactionTable({self.name})"

    @property
    def identifier(self) -> tuple[str, ...]:
        """Namespace levels and the table's name."""
        return self.port.identifier

    @property
    def name(self) -> str:
        """The identifier as text."""
        return self.port.name

    @property
    def catalog(self) -> Catalog:
        """The catalog that the table is in."""
        return self._catalog

    @property
    def inspect(self) -> TableInspector:
        """All metadata tables, with the changes so far."""
        return TableInspector(
            self.spark,
            self.metadata,
            self._metadata_location,
            self.io,
            text_zone=self.port.text_zone,
        )

    def transaction(self) -> NoReturn:
        """Refuse a transaction within the transaction.

        Raises:
            UnsupportedError: always.
        """
        raise UnsupportedError(
            f"transactions are not nested: {self.name} is in one already, whose end commits all"
        )
