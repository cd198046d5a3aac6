"""Changes in the order of their arrival: written as they come, superseded rows by position.

The changes of a key stand in one partition of the rows. So each task can tell by itself which of
the rows that it wrote a later change supersedes: these go by position deletes or deletion vectors
of the same commit, since equality deletes reach earlier commits only. Wide rows are neither moved
nor sorted; the keys alone are, for the figures.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.errors import ValidationError
from frazil.format import types as I
from frazil.format.manifests import DataFile
from frazil.format.metadata import TableMetadata
from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.format.schema import Schema
from frazil.spark.delete_files.write import write_deletes_of_new_files
from frazil.spark.deletes.bitmap import Longs, Words
from frazil.spark.files.wire import entry_from_text, entry_to_text
from frazil.spark.session import costs
from frazil.spark.session.facts import prepare_session
from frazil.spark.session.free_names import free_names
from frazil.spark.session.tasks import map_batches
from frazil.spark.upserts.change_rows import ChangeRows
from frazil.spark.upserts.keys import Keys
from frazil.spark.write.arrow import OpenFile, name_in_task, stored_fields, to_storage
from frazil.spark.write.columns.align import not_null
from frazil.spark.write.columns.partition_columns import partition_keys
from frazil.spark.write.files import FileWrite, WriteProgress, tell_nobody
from frazil.spark.write.finish import Finisher
from frazil.spark.write.options import WriteOptions
from frazil.storage.file_kinds import DATA_FILES
from frazil.storage.files import FileIO

RESULT: Final = "entry string, places binary, bits binary"
"""A row a data file: its entry, and the `Words` of its superseded rows."""

MOST_OPEN: Final = 32
"""A task has so many files open at most; then the one that was written to longest ago is closed."""

_AT: Final = "at"
_NO_FILE: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrivalTask:
    """What an executor does with one partition of the changes; called by ``mapInArrow``.

    A task sees each change once. It writes upserted rows as they come, into one open file a
    partition, and remembers where. In the end the rows that a later change of their key superseded
    are found by column operations.

    Attributes:
        finisher: makes the entries; its schema is the files'.
        keys: the columns that tell rows apart.
        partition_keys: the columns that say which partition a row belongs to.
        gone: the column that is true for deletes.
        folder: where the files go.
        operation_id: of the write, for the files' names.
        options: codec, target size and page sizes.
        partition_type: of the entries.
        most_open: so many files are open at most.
    """

    finisher: Finisher
    keys: tuple[str, ...]
    partition_keys: tuple[str, ...]
    gone: str
    folder: str
    operation_id: str
    options: WriteOptions
    partition_type: I.StructType
    most_open: int = MOST_OPEN

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the rows; yield a row of `RESULT` for each file of which some rows stay."""
        writing = _Writing(self)
        try:
            for batch in batches:
                if batch.num_rows:
                    writing.take(batch)
            yield from writing.finish()
        finally:
            writing.abandon()


class _Writing:
    """The files of one task, and where each change's row is."""

    def __init__(self, task: ArrivalTask) -> None:
        self._task = task
        self._fields = stored_fields(task.finisher.schema.fields)
        self._open: OrderedDict[tuple[Any, ...], int] = OrderedDict()
        self._files: dict[int, OpenFile] = {}
        self._rows: list[int] = []
        self._entries: dict[int, str] = {}
        self._keys: list[pa.RecordBatch] = []
        self._numbers: list[Longs] = []
        self._positions: list[Longs] = []

    def take(self, batch: pa.RecordBatch) -> None:
        """Write the upserted rows of a batch, and remember where."""
        numbers: Longs = np.full(batch.num_rows, _NO_FILE, dtype=np.int64)
        positions: Longs = np.zeros(batch.num_rows, dtype=np.int64)
        gone = batch.column(self._task.gone).to_numpy(zero_copy_only=False).astype(np.bool_)
        for key, at in _by_partition(batch, self._task.partition_keys, np.flatnonzero(~gone)):
            number = self._file_of(key)
            file = self._files[number]
            numbers[at] = number
            positions[at] = np.arange(file.rows, file.rows + len(at))
            places = None if len(at) == batch.num_rows else pa.array(at)
            arrays = [(batch.column(field.name), field.field_type) for field in self._fields]
            file.write(
                [to_storage(a if places is None else a.take(places), kind) for a, kind in arrays]
            )
            self._rows[number] = file.rows
            self._make_room()
        self._keys.append(
            pa.RecordBatch.from_arrays(
                [batch.column(name) for name in self._task.keys],
                names=[f"k{place}" for place in range(len(self._task.keys))],
            )
        )
        self._numbers.append(numbers)
        self._positions.append(positions)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Close the files; yield the entry and the superseded rows of each that has others."""
        superseded = self._superseded_rows()
        for number, rows in enumerate(self._rows):
            words = superseded[number]
            if words.cardinality == rows:
                if (file := self._files.pop(number, None)) is not None:
                    file.abandon()
                continue
            if number in self._files:
                self._close(number)
            yield pa.record_batch(
                {
                    "entry": pa.array([self._entries[number]], pa.string()),
                    "places": pa.array([words.places.tobytes()], pa.binary()),
                    "bits": pa.array([words.bits.tobytes()], pa.binary()),
                }
            )

    def abandon(self) -> None:
        """Remove the files that are open."""
        for file in self._files.values():
            file.abandon()
        self._files.clear()

    def _file_of(self, key: tuple[Any, ...]) -> int:
        """The number of the open file of a partition."""
        number = self._open.get(key)
        if number is not None:
            if self._files[number].size < self._task.options.target_file_size:
                self._open.move_to_end(key)
                return number
            del self._open[key]
            self._close(number)
        if len(self._open) >= self._task.most_open:
            self._close(self._open.popitem(last=False)[1])
        number = len(self._rows)
        name = name_in_task(DATA_FILES, self._task.operation_id, number + 1)
        self._files[number] = OpenFile(
            f"{self._task.folder}/{name}", self._task.finisher, self._task.options
        )
        self._rows.append(0)
        self._open[key] = number
        return number

    def _close(self, number: int) -> None:
        entry = self._files[number].entry()
        self._entries[number] = entry_to_text(entry, self._task.partition_type)
        del self._files[number]

    def _make_room(self) -> None:
        """Let all open files together have one row group in memory."""
        files = self._files.values()
        largest = max(files, key=lambda file: file.pending_size)
        if sum(file.pending_size for file in files) >= largest.row_group_size:
            largest.flush()

    def _superseded_rows(self) -> list[Words]:
        """The rows of each file that a later change of their key supersedes."""
        if not self._keys:
            return []
        numbers = np.concatenate(self._numbers)
        positions = np.concatenate(self._positions)
        table = pa.Table.from_batches(self._keys)
        names = table.column_names
        table = table.append_column(_AT, pa.array(np.arange(len(numbers))))
        # NULL keys are one group.
        last = table.group_by(names, use_threads=False).aggregate([(_AT, "max")])
        goes = numbers != _NO_FILE
        goes[last.column(f"{_AT}_max").to_numpy()] = False
        at = np.flatnonzero(goes)
        at = at[np.argsort(numbers[at], kind="stable")]
        ends = np.searchsorted(numbers[at], np.arange(len(self._rows) + 1))
        return [
            Words.of_values(positions[at[ends[number] : ends[number + 1]]])
            for number in range(len(self._rows))
        ]


def _by_partition(
    batch: pa.RecordBatch, keys: tuple[str, ...], at: Longs
) -> Iterator[tuple[tuple[Any, ...], Longs]]:
    """The places of each partition's rows, in order.

    Args:
        keys: the columns that tell the partition.
        at: the places of the rows that are asked for.
    """
    if not len(at):
        return
    columns = [batch.column(key) for key in keys]
    codes: Longs = np.zeros(len(at), dtype=np.int64)
    for column in columns:
        encoded = column.dictionary_encode(null_encoding="encode")
        step = codes * (len(encoded.dictionary) + 1) + encoded.indices.to_numpy()[at]
        codes = np.unique(step, return_inverse=True)[1].reshape(-1)
    order = np.argsort(codes, kind="stable")
    edges = np.flatnonzero(np.diff(codes[order])) + 1
    for part in np.split(at[order], edges):
        yield tuple(column[int(part[0])].as_py() for column in columns), part


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
            F.min(F.when(first != last, self.keys.shown_text)),
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
        write = FileWrite.plan(metadata, io, options, metadata.schema, DATA_FILES, None)
        tell = on_progress or tell_nobody
        tell(WriteProgress("writing"))
        files, deleted = self._write(write, rows, most_open)
        with io.remove_on_failure(file.file_path for file in files):
            deletes = write_deletes_of_new_files(
                rows.sparkSession, files, deleted, metadata=metadata, io=io
            )
            size = sum(file.file_size_in_bytes for file in files)
            records = sum(file.record_count for file in files)
            with io.remove_on_failure(deletes.paths):
                tell(WriteProgress("done", len(files), records, size))
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
        with write.staging.discard_on_failure():
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
