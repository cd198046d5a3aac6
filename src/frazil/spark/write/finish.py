"""From a file that was written to its entry in a manifest.

A footer tells whether the columns are stored as they must be, and the metrics. The partition
follows from the rows themselves: from the exact range of the source column where that settles it,
else from the first row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.parquet as pq

from frazil.errors import InvalidDataFileError, StorageError
from frazil.format import types as I
from frazil.format.manifests import DataFile
from frazil.format.partitions.partitioning import PartitionField, PartitionSpec
from frazil.format.schema import Schema
from frazil.format.types.forms import form_of
from frazil.storage.file_kinds import DATA_FILES, FileKind
from frazil.storage.files import FileIO, local_path
from frazil.storage.parquet.check import SchemaCheck
from frazil.storage.parquet.footer import is_whole, patch_file, patched_end
from frazil.storage.parquet.metrics import FooterRange, MetricsReader
from frazil.storage.stores.range_input import input_of_known_end

_SENT_WHOLE: Final = 5 << 20
"""Of a longer file a store copies the beginning by itself."""
_NULL_FOLDER: Final = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class Finisher:
    """Makes entries of the files of one write; runs on the driver or, pickled, on executors.

    Attributes:
        io: opens the files.
        reader: of their footers; its schema is theirs.
        spec: the partition spec that they were written with.
        sort_order_id: the order of their rows.
        labels: whether ids and types must still be put into the footers.
        keys: the names of the folders that Spark lays files out by, by the field's place in the
            spec; none where it makes no folders.
        kind: what the files hold.
    """

    io: FileIO
    reader: MetricsReader
    spec: PartitionSpec
    sort_order_id: int
    labels: bool
    keys: Mapping[int, str] = field(default_factory=dict)
    kind: FileKind = DATA_FILES
    _check: SchemaCheck = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_check", SchemaCheck(self.reader.schema))

    @property
    def schema(self) -> Schema:
        """The schema of the files."""
        return self.reader.schema

    def finish(self, path: str, size: int) -> DataFile:
        """The entry of one file; calling it again gives the same.

        Raises:
            InvalidDataFileError: the file is damaged, does not hold its columns as the schema wants
                them stored, or holds rows of several partitions or of another than its folder says.
            StorageError: the file cannot be read.
        """
        local = local_path(path)
        if self.labels and local is not None:
            size = patch_file(local, self.schema.as_struct())
        try:
            if local is not None:
                with pq.ParquetFile(local) as file:
                    return self._entry(file, path, size)
            with (
                self._remote_input(path, size) as (stream, length),
                pq.ParquetFile(stream) as file,
            ):
                return self._entry(file, path, length)
        except pa.ArrowInvalid as error:
            raise InvalidDataFileError(f"the file cannot be read: {error}", file=path) from error
        except OSError as error:
            if isinstance(error, StorageError):
                raise
            raise StorageError(f"cannot read {path}: {error}") from error

    @contextmanager
    def _remote_input(self, path: str, size: int) -> Iterator[tuple[BinaryIO, int]]:
        """A file of a store as it stays, with its length: ids and types are in its footer."""
        with ExitStack() as open_inputs:
            if not self.labels:
                yield open_inputs.enter_context(self.io.open_footer(path, size)), size
                return
            stream = open_inputs.enter_context(self._labelled_input(path, size))
            if not is_whole(stream):
                # Another try of this task has put them there.
                size = self.io.size(path)
                stream = open_inputs.enter_context(self._labelled_input(path, size))
            start, end = patched_end(stream, self.schema.as_struct(), path)
            if end is None:
                yield stream, size
                return

            def read(offset: int, length: int) -> bytes:
                stream.seek(offset)
                return stream.read(length)

            self.io.replace_end(path, start=start, end=end, read_head=partial(read, 0, start))
            size = start + len(end)
            yield open_inputs.enter_context(input_of_known_end(size, end, read)), size

    def _labelled_input(self, path: str, size: int) -> BinaryIO:
        """A file whose footer is about to change: a small one comes whole, to be sent again."""
        if size <= _SENT_WHOLE:
            return self.io.open_footer(path, size, tail_bytes=size)
        return self.io.open_footer(path, size)

    def _entry(self, file: pq.ParquetFile, path: str, size: int) -> DataFile:
        self._check.check(file, path)
        footer = file.metadata
        metrics = self.reader.metrics(footer)
        partition = tuple(self._partition_value(f, file, path) for f in self.spec.fields)
        self._check_folders(partition, path)
        return DataFile(
            content=self.kind.content,
            file_path=path,
            file_format=self.kind.file_format,
            spec_id=self.spec.spec_id,
            partition=partition,
            record_count=metrics.record_count,
            file_size_in_bytes=size,
            column_sizes=metrics.column_sizes,
            value_counts=metrics.value_counts,
            null_value_counts=metrics.null_value_counts,
            nan_value_counts=metrics.nan_value_counts,
            lower_bounds=metrics.lower_bounds,
            upper_bounds=metrics.upper_bounds,
            split_offsets=metrics.split_offsets,
            equality_ids=self.kind.equality_ids,
            sort_order_id=self.sort_order_id,
        )

    def _check_folders(self, partition: tuple[Any, ...], path: str) -> None:
        """Compare what the rows say with where Spark put them, where both are whole numbers."""
        if not self.keys:
            return
        folders = dict(part.partition("=")[::2] for part in path.split("/")[:-1])
        for place, name in self.keys.items():
            part, value, folder = self.spec.fields[place], partition[place], folders.get(name)
            result_type = part.transform.result_type(self.schema.find_type(part.source_id))
            if form_of(result_type).meaning not in ("integer", "date"):
                continue
            if folder != (_NULL_FOLDER if value is None else str(value)):
                raise InvalidDataFileError(
                    f"the rows belong to {part.name}={value}, and Spark laid them out as {folder}",
                    file=path,
                )

    def _partition_value(self, field: PartitionField, file: pq.ParquetFile, path: str) -> Any:
        if field.is_void:
            return None
        source = self.schema.find_field(field.source_id)
        if isinstance(source.field_type, I.UnknownType):
            return None
        found = self.reader.column_range(file.metadata, field.source_id)
        if found is not None:
            if found.null_count == found.value_count:
                return None
            if found.null_count:
                raise _several_partitions_error(field, path, None, found.lower)
            if not _is_open(found):
                low = field.transform.apply(source.field_type, found.lower)
                high = field.transform.apply(source.field_type, found.upper)
                if low == high:
                    return low
                if field.transform.preserves_order:
                    raise _several_partitions_error(field, path, low, high)
        first = _first_value(file, self.schema.name_path(field.source_id), source.field_type)
        return field.transform.apply(source.field_type, first)


def _several_partitions_error(
    field: PartitionField, path: str, low: Any, high: Any
) -> InvalidDataFileError:
    return InvalidDataFileError(
        f"the rows belong to several partitions of {field.name!r}, not to one: there are {low!r} "
        f"and {high!r}",
        file=path,
    )


def _is_open(found: FooterRange) -> bool:
    """Whether a footer's zeros hide the sign of the rows' (rules 120, 180)."""
    return isinstance(found.lower, float) and 0.0 in (found.lower, found.upper)


def _first_value(file: pq.ParquetFile, names: tuple[str, ...], source_type: I.IcebergType) -> Any:
    column = ".".join(names)
    batch = next(file.iter_batches(batch_size=1, columns=[column], use_threads=False))
    values = batch.column(names[0])
    for name in names[1:]:
        if not values[0].is_valid:
            return None
        values = values.field(name)
    if not values[0].is_valid:
        return None
    form = form_of(source_type)
    if form.unit:
        return values.cast(pa.int32() if form.carrier == "int" else pa.int64())[0].as_py()
    return values[0].as_py()
