"""TableMaintenance: upkeep of a table that a Spark session can do."""

from __future__ import annotations

from pyspark.sql import SparkSession

from frazil.spark.writes import Writes
from frazil.table.maintenance.upkeep import Maintenance


class TableMaintenance(Maintenance):
    """Upkeep of a table: what keeps it small, and leaves its rows as they are."""

    def __init__(self, table: Writes) -> None:
        super().__init__(table)
        self._writes = table

    @property
    def spark(self) -> SparkSession:
        """The session that does the work."""
        return self._writes.spark
