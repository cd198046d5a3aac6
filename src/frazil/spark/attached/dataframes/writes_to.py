"""`df.writeTo` of a table of a lake."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from pyspark.sql import Column, DataFrame

from frazil.catalog.identifiers import Identifier
from frazil.errors import UnsupportedError
from frazil.spark.attached.dataframes.table_writes import TableWrite
from frazil.spark.attached.dataframes.transforms import partition_term
from frazil.spark.attached.names import SessionNames
from frazil.spark.plans.sparks_errors import sparks_errors
from frazil.spark.sql.statements.tables import format_properties

if TYPE_CHECKING:
    from pyspark.sql.readwriter import DataFrameWriterV2
else:
    DataFrameWriterV2 = object


class LakeWriterTo(DataFrameWriterV2):
    """Writes rows to one table of a lake."""

    SPARK_KIND: ClassVar[str] = "DataFrameWriterV2"

    def __init__(self, names: SessionNames, rows: DataFrame, parts: Identifier) -> None:
        self._frazil_write = TableWrite(names=names, parts=parts, rows=rows)

    def using(self, provider: str) -> LakeWriterTo:
        """Set the format of a new table: iceberg, or that of its files, which is parquet."""
        write, found = self._frazil_write, format_properties(provider)
        self._frazil_write = replace(write, properties={**write.properties, **found})
        return self

    def option(self, key: str, value: Any) -> LakeWriterTo:
        """Set an option of the write."""
        self._frazil_write.given.note(key, value)
        return self

    def options(self, **options: Any) -> LakeWriterTo:
        """Set options of the write."""
        self._frazil_write.given.note_each(options)
        return self

    def tableProperty(self, property: str, value: str) -> LakeWriterTo:
        """Set a property of a new table; ``location`` and ``format-version`` among them."""
        write = self._frazil_write
        self._frazil_write = replace(write, properties={**write.properties, property: str(value)})
        return self

    def partitionedBy(self, col: Any, *cols: Any) -> LakeWriterTo:
        """Set what a new table is partitioned by: columns and transforms of columns."""
        terms = tuple(partition_term(each) for each in (col, *cols))
        self._frazil_write = replace(self._frazil_write, partition_by=terms)
        return self

    def clusterBy(self, col: str, *cols: str) -> NoReturn:
        """Raise: tables of lakes are not clustered.

        Raises:
            UnsupportedError: always.
        """
        raise UnsupportedError(
            "clusterBy is not there for tables of a lake: partitionedBy() says where rows lie, and "
            "ALTER TABLE … WRITE ORDERED BY in which order"
        )

    def create(self) -> None:
        """Make the table of the rows."""
        self._frazil_run(TableWrite.create)

    def replace(self) -> None:
        """Give the table the schema and the rows; its history stays."""
        self._frazil_run(TableWrite.replace_table)

    def createOrReplace(self) -> None:
        """Make the table, or replace it."""
        self._frazil_run(TableWrite.create_or_replace)

    def append(self) -> None:
        """Add the rows, columns by name."""
        self._frazil_run(TableWrite.append)

    def overwrite(self, condition: Any) -> None:
        """Put the rows in place of those that match a condition."""
        where: Column | str = condition
        self._frazil_run(lambda write: write.overwrite(where))

    def overwritePartitions(self) -> None:
        """Put the rows in place of the partitions that they belong to."""
        self._frazil_run(TableWrite.overwrite_partitions)

    def _frazil_run(self, method: Callable[[TableWrite], None]) -> None:
        with sparks_errors():
            method(self._frazil_write)
