"""Data files of changes that come one after the other; runs on executors.

A task sees each change once. It writes upserted rows as they come, into one open file a partition,
and remembers where. In the end the rows that a later change of their key superseded are found by
column operations.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from frazil.format import types as I
from frazil.spark.deletes.bitmap import Longs, Words
from frazil.spark.files.wire import entry_to_text
from frazil.spark.write.arrow import OpenFile, name_in_task, stored_fields, to_storage
from frazil.spark.write.finish import Finisher
from frazil.spark.write.options import WriteOptions
from frazil.storage.file_kinds import DATA_FILES

RESULT: Final = "entry string, places binary, bits binary"
"""A row a data file: its entry, and the `Words` of its superseded rows."""

MOST_OPEN: Final = 32
"""A task has so many files open at most; then the one that was written to longest ago is closed."""

_AT: Final = "at"
_NO_FILE: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrivalTask:
    """What an executor does with one partition of the changes; called by ``mapInArrow``.

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
            yield from writing.finished()
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

    def finished(self) -> Iterator[pa.RecordBatch]:
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
        self._files[number] = self._new_file(number + 1)
        self._rows.append(0)
        self._open[key] = number
        return number

    def _new_file(self, count: int) -> OpenFile:
        task = self._task
        name = name_in_task(DATA_FILES, task.operation_id, count)
        return OpenFile(f"{task.folder}/{name}", task.finisher, task.options)

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
