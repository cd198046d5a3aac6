"""Transactions of several tables, as methods of a lake."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from pyspark.sql import SparkSession

from frazil.catalog.protocol import Catalog
from frazil.errors import CommitError, ConfigurationError
from frazil.later import later

if TYPE_CHECKING:
    from frazil.spark.lake_transaction.statements import StatementTransactions
    from frazil.spark.lake_transaction.tables import JoinedTables
    from frazil.spark.lake_transaction.transaction import LakeTransaction
    from frazil.spark.sql.context import CurrentNamespace
    from frazil.spark.upserts import once as batches
    from frazil.spark.upserts.once import Batch
    from frazil.table.commit.loop import Backoff
    from frazil.table.commit.retries import run_with_retries
    from frazil.table.conflicts.validation import Isolation
else:
    StatementTransactions = later(
        "frazil.spark.lake_transaction.statements", "StatementTransactions"
    )
    JoinedTables = later("frazil.spark.lake_transaction.tables", "JoinedTables")
    LakeTransaction = later("frazil.spark.lake_transaction.transaction", "LakeTransaction")
    batches = later("frazil.spark.upserts.once")
    Backoff = later("frazil.table.commit.loop", "Backoff")
    run_with_retries = later("frazil.table.commit.retries", "run_with_retries")


Result = TypeVar("Result")


class LakeTransactions:
    """Changes of several tables, all or none."""

    spark: SparkSession
    catalog: Catalog
    _current: CurrentNamespace

    def transaction(self, *, isolation: Isolation = "serializable") -> LakeTransaction:
        """Begin changes of several tables, for a `with` block, whose end commits all or none.

        Tables are read as they are at this moment, all of them where the catalog can tell (one in
        a database can), with the transaction's own changes.

        Args:
            isolation: ``serializable``: who changes rows of a table that the transaction has read
                makes its commit a ConflictError, also where the transaction changes only other
                tables. ``snapshot``: only what the transaction changes itself may conflict, as its
                commands say.

        Raises:
            UnsupportedError: the catalog commits each table alone.
            ConflictError: at the end, another commit contradicts it; nothing was changed.

        Examples:
            >>> with lake.transaction() as tx:
            ...     tx.create_table_as_select("db.costly", df.where("fare > 99"))
            ...     tx.sql("DELETE FROM db.trips WHERE fare > 99")
        """
        tables = JoinedTables(self.spark, self.catalog, isolation=isolation)
        return LakeTransaction(tables, self._current)

    def run_transaction(
        self,
        work: Callable[[LakeTransaction], Result],
        *,
        isolation: Isolation = "serializable",
        retries: int | None = None,
        batch: Batch | None = None,
    ) -> Result | None:
        """Run a function in a transaction, and again in a new one after a conflict.

        Args:
            work: gets the transaction; it reads and writes tables through it alone, since it may be
                called several times.
            isolation: as of `transaction`.
            retries: how often again; unless given, as the property ``commit.retry.num-retries`` of
                the table says that was used first. Waits are those of its ``commit.retry.*``.
            batch: what tells the work from other work: where a table that it uses has the batch
                already, nothing is done. Each table that is changed remembers it in the same
                commit, so that a batch of ``foreachBatch`` counts once in all of them.

        Returns:
            What the function returned; None where the batch was there already.

        Raises:
            UnsupportedError: the catalog commits each table alone.
            ConflictError, CommitFailedError: others were first in every try; nothing was changed.
            CommitStateUnknownError: the outcome is unknown; it is not run again.

        Examples:
            >>> lake.run_transaction(lambda tx: tx.sql("DELETE FROM db.trips WHERE fare = 0"))
        """
        if retries is not None and (not isinstance(retries, int) or retries < 0):
            raise ConfigurationError(f"retries is a number of tries from 0 on, not {retries!r}")
        tries: list[JoinedTables] = []

        def run_once() -> Result | None:
            if tries:
                time.sleep(_backoff(tries[-1]).wait_seconds(len(tries)))
            tables = JoinedTables(self.spark, self.catalog, isolation=isolation, batch=batch)
            tries.append(tables)
            try:
                with LakeTransaction(tables, self._current) as transaction:
                    return work(transaction)
            except batches.BatchAppliedError:
                if batch is None:
                    raise
                return None

        def most_retries(_: CommitError) -> int:
            return _backoff(tries[-1]).num_retries if retries is None else retries

        return run_with_retries(run_once, most_retries)

    def _statement_transactions(self) -> StatementTransactions:
        begin = partial(_tables, self.spark, self.catalog)
        return StatementTransactions(self.spark, begin, self._current)


def _tables(spark: SparkSession, catalog: Catalog, isolation: Isolation) -> JoinedTables:
    return JoinedTables(spark, catalog, isolation=isolation)


def _backoff(tables: JoinedTables) -> Backoff:
    return Backoff.for_commits(tables.first_properties)
