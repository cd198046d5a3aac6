"""Data files by PyArrow: for columns that Spark's Parquet writer has no physical type for.

It also writes partitions of few rows: on a store by one request a file, where Spark's writer and
the footer take three; on a local disk since Spark's writer, through Hadoop, starts a process for
each file and each folder to set its permissions.

A task gets aligned rows, sorted by their partition keys, as Arrow batches. It writes one file after
the other, each with rows of one partition, and gives back the files' entries.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from inspect import signature
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark import TaskContext

from frazil.errors import SchemaMismatchError
from frazil.format import types as I
from frazil.format.manifests import DataFile
from frazil.format.properties.metrics_mode import NONE, MetricsMode
from frazil.format.properties.table import PAGE_ROWS
from frazil.format.schema import Schema
from frazil.format.types.forms import form_of
from frazil.format.values import to_bytes
from frazil.spark.files.wire import entry_to_text
from frazil.spark.session import costs
from frazil.spark.write.finish import Finisher
from frazil.spark.write.options import WriteOptions
from frazil.storage.file_kinds import DATA_FILES, FileKind
from frazil.storage.files import local_path
from frazil.storage.parquet.arrow_names import ARROW_TYPES
from frazil.storage.parquet.field_ids import field_id_metadata
from frazil.storage.parquet.row_sources import RowSource, RowSources

_SHARED_SETTINGS: Final = frozenset(
    {"parquet.block.size", "parquet.page.size", "parquet.dictionary.page.size"}
)
"""Settings of a write that this writer follows too."""
_SHARED_CODECS: Final = ("zstd", "snappy", "gzip", "uncompressed")

_VARIANT_PARTS: Final = ("metadata", "value")
_SIMPLE: Final = frozenset(I.ORDERED_TYPES) - {I.FixedType}
_CODECS: Final = {"uncompressed": "none"}
_ZSTD_LEVEL: Final = 3
"""Of Spark's writer and the Java runtime's, where nothing else is asked for."""

_PAGES_OF_ROWS: Final[Mapping[str, int]] = (
    {"max_rows_per_page": PAGE_ROWS.default}
    if "max_rows_per_page" in signature(pq.ParquetWriter.__init__).parameters
    else {}
)


def writes_few(schema: Schema, options: WriteOptions, rows: float) -> bool:
    """Whether so many rows of each partition are few, and the same files may be written here.

    Args:
        schema: of the files.
        options: of the write.
        rows: of a partition.
    """
    return (
        rows * len(schema.fields) <= costs.FEW_VALUES
        and options.codec in _SHARED_CODECS
        and options.parquet.keys() <= _SHARED_SETTINGS
        and all(type(field.field_type) in _SIMPLE for field in schema.fields)
    )


def arrow_schema(schema: Schema) -> pa.Schema:
    """The Arrow schema of a table's files, with field ids; unknown columns are left out."""
    return pa.schema([_arrow_field(field) for field in stored_fields(schema.fields)])


def to_storage(array: pa.Array, iceberg_type: I.IcebergType) -> pa.Array:
    """An array of aligned values in the type that a file holds.

    Raises:
        SchemaMismatchError: a uuid's text is malformed.
    """
    match iceberg_type:
        case I.UUIDType():
            return _uuids(array)
        case I.FixedType(length=length):
            return array.cast(pa.binary(length))
        case I.StructType():
            fields = stored_fields(iceberg_type.fields)
            parts = [to_storage(array.field(f.name), f.field_type) for f in fields]
            return _struct(array, parts, [_inner_field(f) for f in fields])
        case I.VariantType():
            parts = [
                pc.fill_null(array.field(name).cast(pa.binary()), b"") for name in _VARIANT_PARTS
            ]
            return _struct(array, parts, [pa.field(n, pa.binary(), False) for n in _VARIANT_PARTS])
        case I.ListType():
            values = to_storage(array.values, iceberg_type.element_type)
            return pa.ListArray.from_arrays(
                _offsets(array),
                values,
                type=_arrow_type(iceberg_type),
            )
        case I.MapType():
            keys = to_storage(array.keys, iceberg_type.key_type)
            items = to_storage(array.items, iceberg_type.value_type)
            return pa.MapArray.from_arrays(
                _offsets(array), keys, items, type=_arrow_type(iceberg_type)
            )
        case _:
            stored, shown = _arrow_type(iceberg_type), form_of(iceberg_type).scanned
            return array.cast(ARROW_TYPES[shown]).view(stored) if shown else array.cast(stored)


@dataclass(frozen=True, slots=True)
class ArrowTask:
    """What an executor does with one partition of the rows; called by ``mapInArrow``.

    Attributes:
        finisher: makes the entries; its schema is the files'.
        keys: the names of the columns that say which partition a row belongs to.
        folder: where the files go.
        operation_id: of the write, for the files' names.
        options: codec, target size and page sizes.
        partition_type: of the entries.
        kind: what the files hold.
        number: of the task, for the files' names where no task of Spark's has one.
    """

    finisher: Finisher
    keys: tuple[str, ...]
    folder: str
    operation_id: str
    options: WriteOptions
    partition_type: I.StructType
    kind: FileKind = DATA_FILES
    number: int = 0

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the rows; yield one line of JSON for each file."""
        fields = stored_fields(self.finisher.schema.fields)
        return self._write(
            (key, [to_storage(rows.column(f.name), f.field_type) for f in fields], None)
            for batch in batches
            for key, rows in _runs(batch, self.keys)
        )

    def copy(
        self, batches: Iterator[tuple[pa.RecordBatch, RowSource | None]]
    ) -> Iterator[pa.RecordBatch]:
        """Write rows of one partition that are in the types of `arrow_schema` already.

        Args:
            batches: rows, and where they come from, if the files' footers are to say it.
        """
        return self._write(
            ((), batch.columns, source) for batch, source in batches if batch.num_rows
        )

    def _write(
        self, runs: Iterator[tuple[tuple[Any, ...], list[pa.Array], RowSource | None]]
    ) -> Iterator[pa.RecordBatch]:
        current: tuple[Any, ...] | None = None
        file: OpenFile | None = None
        count = 0
        try:
            for key, arrays, source in runs:
                full = file is not None and file.size >= self.options.target_file_size
                if file is not None and (full or key != current):
                    yield self._line(file)
                    file = None
                if file is None:
                    count += 1
                    name = name_in_task(self.kind, self.operation_id, count, number=self.number)
                    file = OpenFile(f"{self.folder}/{name}", self.finisher, self.options)
                    current = key
                file.write(arrays)
                if source is not None:
                    file.sources.add(source)
            if file is not None:
                yield self._line(file)
                file = None
        finally:
            if file is not None:
                file.abandon()

    def _line(self, file: OpenFile) -> pa.RecordBatch:
        text = entry_to_text(file.entry(), self.partition_type)
        return pa.record_batch({"entry": pa.array([text], pa.string())})


def name_in_task(kind: FileKind, operation_id: str, count: int, *, number: int = 0) -> str:
    """Return the name of a file that the running task writes.

    Args:
        count: of the file among the task's.
        number: of the task, where Spark runs none.
    """
    context = TaskContext.get()
    return kind.file_name(
        partition_id=number if context is None else context.partitionId(),
        task_id=0 if context is None else context.taskAttemptId(),
        operation_id=operation_id,
        count=count,
    )


class OpenFile:
    """One data file while it is written, on a local disk.

    Attributes:
        path: where it goes.
        rows: that it has.
        pending_size: bytes of rows that wait for a row group.
        row_group_size: so many bytes of rows are a row group.
        sources: where the rows come from, for the footer.
    """

    def __init__(self, path: str, finisher: Finisher, options: WriteOptions) -> None:
        self.path = path
        self.rows = 0
        # Geometries and variants get their logical types by the same labels as Spark's files.
        self._finisher = replace(finisher, labels=True, keys={})
        self._floats = FloatMetrics(finisher.schema.fields, finisher.reader.modes)
        self._schema = arrow_schema(finisher.schema)
        target = local_path(path)
        if target is None:
            handle, target = tempfile.mkstemp(suffix=".parquet")
            os.close(handle)
        # A local folder is the driver's: a task that outlives a failed write finds it gone.
        self._local = target
        settings = options.parquet
        self._writer = pq.ParquetWriter(
            target,
            self._schema,
            compression=_CODECS.get(options.codec, options.codec),
            compression_level=(
                _ZSTD_LEVEL
                if options.codec == "zstd" and options.codec_level is None
                else options.codec_level
            ),
            store_schema=False,
            store_decimal_as_integer=True,
            write_statistics=with_statistics(self._schema),
            data_page_size=_number(settings, "parquet.page.size"),
            dictionary_pagesize_limit=_number(settings, "parquet.dictionary.page.size"),
            write_page_index=True,
            **_PAGES_OF_ROWS,
        )
        self.row_group_size = _number(settings, "parquet.block.size") or 128 << 20
        self._pending: list[pa.RecordBatch] = []
        self.pending_size = 0
        self.sources = RowSources()

    @property
    def size(self) -> int:
        """Bytes that the file has, with what waits for a row group counted as half."""
        return int(os.path.getsize(self._local)) + self.pending_size // 2

    def write(self, arrays: list[pa.Array]) -> None:
        batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        self._floats.add_rows(arrays)
        self.rows += batch.num_rows
        self._pending.append(batch)
        self.pending_size += batch.nbytes
        if self.pending_size >= self.row_group_size:
            self.flush()

    def entry(self) -> DataFile:
        """Close the file, send it to its store, and return its entry."""
        self.flush()
        if footer := self.sources.footer():
            self._writer.add_key_value_metadata(footer)
        self._writer.close()
        local, io = self._local, self._finisher.io
        entry = self._finisher.finish(local, os.path.getsize(local))
        if local_path(self.path) is None:
            try:
                io.upload_unique(local, self.path)
            finally:
                os.remove(local)
        return replace(self._floats.with_metrics(entry), file_path=self.path)

    def abandon(self) -> None:
        self._writer.close()
        # A file that was closed to be sent to its store is gone already.
        with suppress(FileNotFoundError):
            os.remove(self._local)

    def flush(self) -> None:
        """Write what waits as a row group."""
        if self._pending:
            table = pa.Table.from_batches(self._pending)
            self._writer.write_table(table, row_group_size=max(1, table.num_rows))
            self._pending, self.pending_size = [], 0


def _number(settings: Mapping[str, str], key: str) -> int | None:
    text = settings.get(key)
    return int(text) if text is not None and text.isdigit() else None


def _runs(
    batch: pa.RecordBatch, keys: tuple[str, ...]
) -> Iterator[tuple[tuple[Any, ...], pa.RecordBatch]]:
    """The stretches of equal keys of a batch that is sorted by them."""
    if not keys or not batch.num_rows:
        if batch.num_rows:
            yield (), batch
        return
    columns = [batch.column(key) for key in keys]
    edges = {0, batch.num_rows}
    for column in columns:
        ends = pc.run_end_encode(column.cast(column.type)).run_ends.to_pylist()
        edges.update(ends)
    ordered = sorted(edges)
    for start, end in pairwise(ordered):
        key = tuple(column[start].as_py() for column in columns)
        yield key, batch.slice(start, end - start)


def stored_fields(fields: Sequence[I.NestedField]) -> list[I.NestedField]:
    """Return the fields that files have columns of."""
    return [field for field in fields if not isinstance(field.field_type, I.UnknownType)]


def _arrow_field(field: I.NestedField) -> pa.Field:
    return pa.field(
        field.name,
        _arrow_type(field.field_type),
        nullable=not field.required,
        metadata=field_id_metadata(field.field_id),
    )


def _inner_field(field: I.NestedField) -> pa.Field:
    # PyArrow takes a required field inside a null struct for a null in it; readers take optional
    # columns for required fields.
    return _arrow_field(field).with_nullable(True)


def _arrow_type(iceberg_type: I.IcebergType) -> pa.DataType:
    match iceberg_type:
        case I.DecimalType(precision=precision, scale=scale):
            return pa.decimal128(precision, scale)
        case I.FixedType(length=length):
            return pa.binary(length)
        case I.StructType():
            return pa.struct([_inner_field(field) for field in stored_fields(iceberg_type.fields)])
        case I.ListType():
            return pa.list_(_inner_field(iceberg_type.element_field))
        case I.MapType():
            return pa.map_(
                _arrow_field(iceberg_type.key_field), _inner_field(iceberg_type.value_field)
            )
        case I.VariantType():
            return pa.struct([pa.field(name, pa.binary(), False) for name in _VARIANT_PARTS])
        case _:
            return ARROW_TYPES[form_of(iceberg_type).arrow]


def _uuids(array: pa.Array) -> pa.Array:
    """Texts of 36 characters as 16 bytes, all of them in one decoding."""
    missing = "0" * 32
    texts = "".join(pc.fill_null(array.cast(pa.string()), missing).to_pylist())
    try:
        raw = bytes.fromhex(texts.replace("-", ""))
    except ValueError as error:
        raise SchemaMismatchError(f"a value of a uuid column is no uuid: {error}") from error
    if len(raw) != 16 * len(array):
        raise SchemaMismatchError("a value of a uuid column has not exactly 16 bytes")
    stored = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(16), len(array), [_validity(array), pa.py_buffer(raw)]
    )
    return pa.ExtensionArray.from_storage(pa.uuid(), stored)


def _validity(array: pa.Array) -> pa.Buffer | None:
    if not array.null_count:
        return None
    return pa.array(pc.is_valid(array).to_pylist(), pa.bool_()).buffers()[1]


def _struct(array: pa.Array, parts: list[pa.Array], fields: list[pa.Field]) -> pa.Array:
    mask = pc.is_null(array) if array.null_count else None
    return pa.StructArray.from_arrays(parts, fields=fields, mask=mask)


def _offsets(array: pa.Array) -> pa.Array:
    """The offsets of a list or map, null where it is null."""
    if not array.null_count:
        return array.offsets
    valid = pa.concat_arrays([pc.is_valid(array), pa.array([True])])
    return pc.if_else(valid, array.offsets, pa.scalar(None, pa.int32()))


_PHYSICAL: Final = ("FLOAT", "DOUBLE")


def with_statistics(schema: pa.Schema) -> bool | list[str]:
    """Return of which columns a Parquet file has statistics, by their paths; True for all."""
    sink = pa.BufferOutputStream()
    pq.ParquetWriter(sink, schema, store_schema=False).close()
    columns = pq.read_metadata(pa.BufferReader(sink.getvalue())).schema
    floating = {column.path for column in columns if column.physical_type in _PHYSICAL}
    return sorted({column.path for column in columns} - floating) if floating else True


@dataclass(slots=True)
class _Column:
    """One column and what was seen of it."""

    field: I.NestedField
    mode: MetricsMode
    places: tuple[int, ...]
    values: int = 0
    nulls: int = 0
    nans: int = 0
    lower: float = math.inf
    upper: float = -math.inf

    def add_rows(self, columns: Sequence[pa.Array]) -> None:
        array = columns[self.places[0]]
        for place in self.places[1:]:
            # What is in a struct that is NULL is NULL.
            array = pc.struct_field(array, place)
        numbers = array.to_numpy(zero_copy_only=False)
        self.values += len(array)
        self.nulls += array.null_count
        self.nans += int(np.isnan(numbers).sum()) - array.null_count
        self.lower = min(self.lower, float(np.fmin.reduce(numbers, initial=math.inf)))
        self.upper = max(self.upper, float(np.fmax.reduce(numbers, initial=-math.inf)))

    def bounds(self) -> tuple[bytes, bytes] | None:
        """The bounds, where all values lie within them in every engine's order."""
        if not self.mode.has_bounds or self.nans or self.nulls == self.values:
            return None
        # A zero's sign depends on the order of the values; -0.0 sorts before 0.0 (rule 120).
        kind = self.field.field_type
        return to_bytes(kind, self.lower or -0.0), to_bytes(kind, self.upper or 0.0)


class FloatMetrics:
    """Counts and bounds of a file's columns of floating-point numbers.

    Arrow's statistics leave NaN out. Spark, for which NaN is the largest value, would pass over its
    rows under a filter that it pushes down. So files have no statistics of these columns, and
    entries get counts and bounds from the values as they are written.

    Bounds are left out where NaN is among the values, and the count where all of them are NaN: by
    either Java's runtime passes over files, and Spark asks for NaN by `d > 5` too.
    """

    def __init__(self, fields: Sequence[I.NestedField], modes: Mapping[int, MetricsMode]) -> None:
        """Look for the columns among the stored fields of a file."""
        self._columns = [
            _Column(field, mode, places)
            for field, places in _floating_columns(fields, ())
            if (mode := modes.get(field.field_id, NONE)).kind != "none"
        ]

    def add_rows(self, columns: Sequence[pa.Array]) -> None:
        """Take some rows of the file in."""
        for column in self._columns:
            column.add_rows(columns)

    def with_metrics(self, entry: DataFile) -> DataFile:
        """Return the file's entry with what was seen."""
        nulls, nans = dict(entry.null_value_counts or {}), dict(entry.nan_value_counts or {})
        lower, upper = dict(entry.lower_bounds or {}), dict(entry.upper_bounds or {})
        for column in self._columns:
            field_id = column.field.field_id
            nulls[field_id] = column.nulls
            if not 0 < column.nans == column.values:
                nans[field_id] = column.nans
            bounds = column.bounds()
            if bounds is not None:
                lower[field_id], upper[field_id] = bounds
        return replace(
            entry,
            null_value_counts=nulls,
            nan_value_counts=nans,
            lower_bounds=lower,
            upper_bounds=upper,
        )


def _floating_columns(
    fields: Sequence[I.NestedField], above: tuple[int, ...]
) -> Iterator[tuple[I.NestedField, tuple[int, ...]]]:
    """The columns outside of lists and maps, each with its places from struct to struct."""
    for place, field in enumerate(stored_fields(fields)):
        places = (*above, place)
        match field.field_type:
            case I.FloatType() | I.DoubleType():
                yield field, places
            case I.StructType(fields=parts):
                yield from _floating_columns(parts, places)
            case _:
                pass
