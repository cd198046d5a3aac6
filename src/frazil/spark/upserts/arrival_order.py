"""Changes in the order of their arrival: written as they come, superseded rows by position.

The changes of a key stand in one partition of the rows. So each task can tell by itself which of
the rows that it wrote a later change supersedes: these go by position deletes or deletion vectors
of the same commit, since equality deletes reach earlier commits only. Wide rows are neither moved
nor sorted; the keys alone are, for the figures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.errors import ValidationError
from frazil.format.manifests import DataFile
from frazil.format.metadata import TableMetadata
from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.format.schema import Schema
from frazil.spark.delete_files.write import write_deletes_of_new_files
from frazil.spark.deletes.bitmap import Words
from frazil.spark.files.wire import entry_from_text
from frazil.spark.session import costs
from frazil.spark.session.facts import prepare_session
from frazil.spark.session.free_names import free_names
from frazil.spark.session.tasks import map_batches
from frazil.spark.upserts.arrival_task import MOST_OPEN, RESULT, ArrivalTask
from frazil.spark.upserts.change_rows import ChangeRows
from frazil.spark.upserts.keys import Keys
from frazil.spark.write.columns.align import not_null
from frazil.spark.write.columns.partition_columns import partition_keys
from frazil.spark.write.files import FileWrite, WriteProgress, tell_nobody
from frazil.storage.file_kinds import DATA_FILES
from frazil.storage.files import FileIO

_PARTITION_SHIFT: Final = 33
"""`monotonically_increasing_id` has the row's place in its partition in so many lower bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyFigures:
    """What changes come to.

    Attributes:
        keys: that are changed.
        deleted: of these, the keys whose last change is a delete.
        changes: all rows.
    """

    keys: int
    deleted: int
    changes: int


@dataclass(frozen=True, slots=True)
class ArrivalOrder:
    """Changes whose order is that of their rows.

    Attributes:
        changes: kept by Spark, with a column of their order.
        keys: the columns that tell rows apart.
        by_key: a row a key, kept by Spark: the keys and what `figures` sums.
    """

    changes: ChangeRows
    keys: Keys
    by_key: DataFrame
    _names: tuple[str, ...]

    @classmethod
    def of(cls, changes: ChangeRows, keys: Keys) -> ArrivalOrder:
        """Number the changes, as of `aligned_changes`, before any row moves."""
        rows = changes.rows
        place, *names = free_names(
            ["_frazil_arrival", "_frazil_first", "_frazil_last", "_frazil_gone", "_frazil_count"],
            rows.columns,
        )
        rows = rows.withColumn(place, F.monotonically_increasing_id()).persist()
        partition = F.shiftright(F.col(place), _PARTITION_SHIFT)
        by_key = rows.groupBy(*keys.columns).agg(
            F.min(partition).alias(names[0]),
            F.max(partition).alias(names[1]),
            F.max_by(F.col(changes.gone), F.col(place)).alias(names[2]),
            F.count("*").alias(names[3]),
        )
        numbered = replace(changes, rows=rows, order=(place,))
        return cls(numbered, keys, by_key.persist(), tuple(names))

    def figures(self) -> KeyFigures:
        """Evaluate the changes, and count them.

        Raises:
            ValidationError: a key stands in several partitions of the rows.
        """
        first, last, gone, count = (F.col(name) for name in self._names)
        row = self.by_key.agg(
            F.count("*"),
            F.count_if(gone),
            F.sum(count),
            F.count_if(first != last),
            F.min(F.when(first != last, self.keys.shown)),
        ).collect()[0]
        if row[3]:
            raise ValidationError(
                f"the order of arrival cannot be told for {row[3]} keys, as {row[4]}, whose "
                "changes stand in several partitions of the rows: give columns as order_by (to "
                "repartition the rows by key does not keep their order); nothing was changed"
            )
        return KeyFigures(keys=int(row[0]), deleted=int(row[1]), changes=int(row[2] or 0))

    def forget(self) -> None:
        """Let Spark drop what it keeps."""
        for frame in (self.by_key, self.changes.rows):
            with suppress(PySparkException):
                frame.unpersist()

    def write(
        self,
        figures: KeyFigures,
        *,
        metadata: TableMetadata,
        io: FileIO,
        options: Mapping[str, str] | None = None,
        on_progress: Callable[[WriteProgress], None] | None = None,
        most_open: int = MOST_OPEN,
    ) -> list[DataFile]:
        """Write data files of all upserted rows, and deletes of the superseded ones.

        Args:
            figures: of the changes.
            metadata: of the table.
            io: of the table.
            options: of the write.
            on_progress: called at each stage.
            most_open: a task has so many files open at most.

        Returns:
            The entries of both; nothing is committed.

        Raises:
            SchemaMismatchError: an upserted row has NULL in a required column.
            StorageError: the store refused or failed; what was written is removed.
        """
        # Partitions are joined whole, so that the changes of a key keep their order.
        rows = self.changes.rows.coalesce(1 + figures.changes // costs.CHANGES_A_TASK)
        # Rows are written in the order of their arrival.
        options = {**(options or {}), "output-sort-order-id": "0"}
        write = FileWrite.planned(metadata, io, options, metadata.schema, DATA_FILES, None)
        tell = on_progress or tell_nobody
        tell(WriteProgress("writing"))
        files, deleted = self._write(write, rows, most_open)
        try:
            deletes = write_deletes_of_new_files(
                rows.sparkSession, files, deleted, metadata=metadata, io=io
            )
            size = sum(file.file_size_in_bytes for file in files)
            records = sum(file.record_count for file in files)
            try:
                tell(WriteProgress("done", len(files), records, size))
            except BaseException:
                io.delete_many(deletes.paths)
                raise
        except BaseException:
            io.delete_many(file.file_path for file in files)
            raise
        return [*files, *deletes.added]

    def _write(
        self, write: FileWrite, rows: DataFrame, most_open: int
    ) -> tuple[list[DataFile], list[Words]]:
        """Data files where they stay, and the positions that go of each."""
        prepare_session(rows.sparkSession)
        kept = ~F.col(self.changes.gone)
        placing = partition_keys(write.schema, write.spec)
        columns = _required_columns(write.schema, self.keys, kept)
        columns |= {name: F.when(kept, column) for name, column in placing.items()}
        # Spark Connect takes no columns for a mistake.
        placed = rows.withColumns(columns) if columns else rows
        task = ArrivalTask(
            finisher=write.finisher(),
            keys=self.keys.names,
            partition_keys=tuple(placing),
            gone=self.changes.gone,
            folder=write.folder,
            operation_id=write.operation_id,
            options=write.options,
            partition_type=write.partition_type,
            most_open=most_open,
        )
        write.staging.make()
        with write.staging.discarding():
            results = map_batches(placed, task, RESULT).collect()
            found = [
                (
                    entry_from_text(row["entry"], write.partition_type),
                    Words(
                        np.frombuffer(row["places"], dtype=np.int64),
                        np.frombuffer(row["bits"], dtype=np.uint64),
                    ),
                )
                for row in results
            ]
            found.sort(key=lambda each: each[0].file_path)
            staged = [entry for entry, _ in found]
            write.staging.keep_only(staged)
            files = write.staging.publish(staged, write.final_path)
        return files, [words for _, words in found]


def _required_columns(schema: Schema, keys: Keys, kept: Column) -> dict[str, Column]:
    """The required columns, of which only rows that are gone may have NULL."""
    columns: dict[str, Column] = {}
    for field in schema.fields:
        if field.required and field.field_id not in keys.ids:
            value = F.col(quote_name_always([field.name]))
            columns[field.name] = F.when(kept, not_null(field.name)(value)).otherwise(value)
    return columns
