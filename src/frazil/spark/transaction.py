"""TableTransaction: appends, overwrites and every other change of a table in one commit."""

from __future__ import annotations

from frazil.spark.port import SparkTransactionPort
from frazil.spark.row_level.commands import RowCommands
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
