"""Rows that nothing changes go from files into files by Arrow, without becoming rows of Spark.

Decoding and encoding is most of what bin packing costs, and Arrow does it in a third of the time.
Executors copy, but for a group that is copied here sooner than a job of Spark's begins. Files that
need more than a copy are left to Spark's own reader and writer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.errors import PySparkException

from frazil.errors import InvalidDataFileError, StorageError
from frazil.format import types as I
from frazil.format.manifests import DataFile
from frazil.format.metadata import TableMetadata
from frazil.format.schema import Schema
from frazil.format.types.inside import fields_inside
from frazil.spark.abilities import repartition_by_id
from frazil.spark.deletes.bitmap import Longs, Words
from frazil.spark.files.projection import LAST_UPDATED_FIELD, ROW_ID_FIELD
from frazil.spark.maintenance.compaction.groups import FileGroup
from frazil.spark.maintenance.compaction.known_deletes import KnownDeletes
from frazil.spark.row_level.target import Target
from frazil.spark.session import costs
from frazil.spark.session.packages import have_packages, lacks_packages
from frazil.spark.session.tasks import map_batches, own_error
from frazil.spark.write.arrow import ArrowTask, arrow_schema
from frazil.spark.write.files import FileWrite
from frazil.storage.file_kinds import DATA_FILES
from frazil.storage.files import FileIO, local_path
from frazil.storage.parquet.field_ids import stored_field_id
from frazil.storage.parquet.row_sources import RowSource
from frazil.storage.side_by_side import WAITING_THREADS, in_threads

_LEGACY: Final = b"org.apache.spark.legacy"
_SOURCES: Final = (
    "file int, place bigint, ordinal bigint, path string, size bigint, first_row_id bigint, "
    "sequence_number bigint"
)
_ROWS_AT_ONCE: Final = 1 << 17
_WHOLE_BYTES: Final = 4 << 20
"""A file of a store of up to so many bytes is read whole, along with those after it."""

_BYTES_AHEAD: Final = 32 << 20
"""So many bytes of them a task keeps at most."""

_COPIED: Final = (
    I.BooleanType, I.IntegerType, I.LongType, I.FloatType, I.DoubleType, I.DateType,
    I.DecimalType, I.TimestampType, I.TimestamptzType, I.StringType, I.BinaryType,
)  # fmt: skip
"""Types that Arrow and Spark store alike."""

_OF_PARQUET: Final = {"parquet.dictionary.page.size", "parquet.page.size", "parquet.block.size"}
"""Settings that both writers have."""


def can_copy(metadata: TableMetadata, group: FileGroup) -> bool:
    """Return whether a group's rows may stay as they are: none is sorted, none gets columns."""
    return (
        metadata.sort_order.is_unsorted
        and group.is_of_output_spec
        and all(_is_copied(field.field_type) for field in metadata.schema.fields)
    )


def is_little(metadata: TableMetadata, group: FileGroup) -> bool:
    """Return whether a job of Spark's would cost more than to copy a group here."""
    values = group.record_count * len(metadata.schema.fields)
    return (
        group.files_count <= costs.COPIED_FILES_HERE
        and group.size_in_bytes <= costs.COPIED_BYTES_HERE
        and values <= costs.COPIED_VALUES_HERE
    )


def _is_copied(field_type: I.IcebergType) -> bool:
    if field_type.is_nested:
        return all(_is_copied(part.field_type) for part in fields_inside(field_type))
    return isinstance(field_type, _COPIED)


class _MoreThanACopyError(Exception):
    """A file whose rows Spark's own reader has to read; a task tells of it without failing."""


def copy_rows(
    files: Target,
    group: FileGroup,
    *,
    options: dict[str, str],
    tasks: int,
    known: KnownDeletes,
) -> tuple[list[DataFile], Target, int]:
    """Copy the rows of files into new ones, of those that take no more than a copy.

    Args:
        files: of the group.
        group: of one partition.
        options: of the write, by the names of Java's write options.
        tasks: how many files are written beside each other.
        known: which rows are deleted, where deletes apply.

    Returns:
        The new files, the files that take more than a copy, and how many files their rows go to.

    Raises:
        InvalidDataFileError, StorageError: a file cannot be read or written; nothing is left.
    """
    nothing: tuple[list[DataFile], Target, int] = ([], files, tasks)
    write = FileWrite.plan(
        files.metadata, files.io, options, files.written_schema, DATA_FILES, None
    )
    is_parquet = all(each.lower() == "parquet" for each in files.plan.files["file_format"].unique())
    if not is_parquet or write.options.parquet.keys() - _OF_PARQUET:
        return nothing
    here = is_little(files.metadata, group)
    if group.has_deletes and not (here and known.cover(files)):
        return nothing
    if not here and not have_packages(files.spark):
        return nothing
    numbers = _tasks_of(files, tasks)
    words = known.words if group.has_deletes else None
    copy = _Copy(write.arrow_task(), files.io, files.schema, files.lineage, words)
    write.staging.make()
    try:
        sources = _sources(files, numbers)
        rows = _copy_here(copy, sources) if here else _copy_there(files, copy, sources, tasks)
        left = [row["left"] for row in rows if row["left"] is not None]
        entries = [row["entry"] for row in rows if row["entry"] is not None]
        # Nothing is tried twice here, so that files without entries are those of files left.
        staged = write.told_files(entries) if here and not left else write.staged_entries(entries)
        added = write.staging.publish(staged, write.final_path)
    except PySparkException as error:
        write.staging.discard()
        if lacks_packages(error):
            return nothing
        own = own_error(error)
        if own is None:
            raise
        raise own from error
    except BaseException:
        write.staging.discard()
        raise
    return added, files.where_files(pl.Series(np.isin(numbers, left))), len(left)


def _tasks_of(files: Target, tasks: int) -> npt.NDArray[np.int64]:
    """Which task copies which file: neighbours of about as many bytes."""
    sizes = files.plan.files["file_size_in_bytes"].to_numpy()
    before = np.cumsum(sizes) - sizes
    numbers: npt.NDArray[np.int64] = np.minimum(
        before * tasks // max(int(sizes.sum()), 1), tasks - 1
    )
    return numbers


def _sources(files: Target, numbers: npt.NDArray[np.int64]) -> pa.Table:
    """What each task has to know of its files."""
    return pa.table(
        {
            "file": pa.array(numbers, pa.int32()),
            "place": pa.array(range(len(numbers)), pa.int64()),
            "ordinal": files.plan.files["ordinal"].cast(pl.Int64).to_arrow(),
            "path": files.plan.files["file_path"].to_arrow(),
            "size": files.plan.files["file_size_in_bytes"].cast(pl.Int64).to_arrow(),
            "first_row_id": files.plan.files["first_row_id"].to_arrow(),
            "sequence_number": files.plan.files["sequence_number"].to_arrow(),
        }
    )


def _copy_here(copy: _Copy, sources: pa.Table) -> list[Mapping[str, Any]]:
    """Let this process copy, one task after the other."""
    rows: list[Mapping[str, Any]] = []
    for number in pc.unique(sources["file"]).to_pylist():
        task = replace(copy, task=replace(copy.task, number=number))
        some = sources.filter(pc.equal(sources["file"], number))
        rows += [row for made in task(iter(some.to_batches())) for row in made.to_pylist()]
    return rows


def _copy_there(
    files: Target, copy: _Copy, sources: pa.Table, tasks: int
) -> list[Mapping[str, Any]]:
    """Let executors copy."""
    spread = repartition_by_id(files.spark.createDataFrame(sources, _SOURCES), tasks, "file")
    rows = map_batches(spread, copy, "entry string, left int").collect()
    return [row.asDict() for row in rows]


@dataclass(frozen=True, slots=True)
class _Copy:
    """Files to what is written of their rows, in a Python worker.

    Attributes:
        lineage: the columns of row lineage that are written beside the table's.
        deleted: the positions of deleted rows by the file's ordinal; None where none is.
    """

    task: ArrowTask
    io: FileIO
    schema: Schema
    lineage: tuple[I.NestedField, ...]
    deleted: Mapping[int, Words] | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        files = [file for batch in batches for file in batch.to_pylist()]
        # A shuffle keeps no order, and rows are to stay as they come.
        ordered = sorted(files, key=lambda file: int(file["place"]))
        try:
            # None of a task's files is written unless all of them can be.
            written = list(self.task.copy(self._all_rows(ordered)))
        except _MoreThanACopyError:
            yield _result_row(None, int(ordered[0]["file"]))
            return
        for batch in written:
            for entry in batch.column("entry").to_pylist():
                yield _result_row(entry, None)

    def _all_rows(
        self, sources: Sequence[Mapping[str, Any]]
    ) -> Iterator[tuple[pa.RecordBatch, RowSource | None]]:
        for together in _read_together(sources):
            small = [
                str(source["path"])
                for source in together
                if source["size"] <= _WHOLE_BYTES and local_path(str(source["path"])) is None
            ]
            read = in_threads(self.io.read, small, threads=WAITING_THREADS, name="frazil-sources")
            contents = dict(zip(small, read, strict=True))
            for source in together:
                yield from self._rows(source, contents.get(str(source["path"])))

    def _rows(
        self, source: Mapping[str, Any], content: bytes | None
    ) -> Iterator[tuple[pa.RecordBatch, RowSource | None]]:
        path = str(source["path"])
        wanted = arrow_schema(self.schema)
        written = arrow_schema(Schema((*self.schema.fields, *self.lineage)))
        local = local_path(path)
        try:
            if content is not None:
                opened = pa.BufferReader(content)
            else:
                opened = pa.memory_map(local) if local is not None else self.io.open_input(path)
            with opened as stream, pq.ParquetFile(stream) as file:
                _refuse_other_calendars(file.metadata.metadata or {}, path)
                names = _names(file.schema_arrow, wanted, path)
                kept = _lineage_names(file.schema_arrow) if self.lineage else {}
                position, gone = 0, self._deleted_positions(source)
                for batch in file.iter_batches(_ROWS_AT_ONCE, columns=[*names, *kept.values()]):
                    columns = [batch.column(name) for name in names]
                    if self.lineage:
                        columns += _lineage(batch, kept, source, position)
                    rows = pa.RecordBatch.from_arrays(columns, schema=written)
                    if self.deleted is None:
                        yield rows, RowSource(path, position, batch.num_rows)
                    else:
                        yield _live_rows(rows, gone, position), None
                    position += batch.num_rows
        except FileNotFoundError as error:
            raise StorageError(f"there is no file {path}") from error
        except (pa.ArrowException, OSError) as error:
            raise InvalidDataFileError(f"the file cannot be read: {error}", file=path) from error

    def _deleted_positions(self, source: Mapping[str, Any]) -> Longs:
        """The positions of a file's deleted rows, in order."""
        words = (self.deleted or {}).get(int(source["ordinal"]))
        return np.zeros(0, dtype=np.int64) if words is None else words.values()


def _live_rows(rows: pa.RecordBatch, gone: Longs, first: int) -> pa.RecordBatch:
    """Rows without those that are deleted of the file in which they begin at a position."""
    start, end = np.searchsorted(gone, [first, first + rows.num_rows])
    if start == end:
        return rows
    keep = np.ones(rows.num_rows, dtype=np.bool_)
    keep[gone[start:end] - first] = False
    return rows.filter(pa.array(keep))


def _read_together(
    sources: Sequence[Mapping[str, Any]],
) -> Iterator[Sequence[Mapping[str, Any]]]:
    """Neighbours of few bytes, which one wait brings; each larger file alone."""
    together: list[Mapping[str, Any]] = []
    size = 0
    for source in sources:
        if together and (size + source["size"] > _BYTES_AHEAD or source["size"] > _WHOLE_BYTES):
            yield together
            together, size = [], 0
        together.append(source)
        size += source["size"]
        if source["size"] > _WHOLE_BYTES:
            yield together
            together, size = [], 0
    if together:
        yield together


def _result_row(entry: str | None, left: int | None) -> pa.RecordBatch:
    """A new file, or the number of a task whose files are left as they are."""
    columns = {"entry": pa.array([entry], pa.string()), "left": pa.array([left], pa.int32())}
    return pa.record_batch(columns)


def _lineage_names(stored: pa.Schema) -> dict[int, str]:
    """What a file calls the columns of row lineage, where it has them."""
    ids = (ROW_ID_FIELD.field_id, LAST_UPDATED_FIELD.field_id)
    return {found: f.name for f in stored if (found := stored_field_id(f)) in ids}


def _lineage(
    batch: pa.RecordBatch, kept: Mapping[int, str], source: Mapping[str, Any], position: int
) -> list[pa.Array]:
    """The ids and sequence numbers of rows, where their file does not state them its own (148)."""
    count, first = batch.num_rows, source["first_row_id"]
    if first is None:
        return [pa.nulls(count, pa.int64())] * 2
    start = int(first) + position
    inherited = {
        ROW_ID_FIELD.field_id: pa.array(np.arange(start, start + count)),
        LAST_UPDATED_FIELD.field_id: pa.repeat(
            pa.scalar(source["sequence_number"], pa.int64()), count
        ),
    }
    return [
        pc.coalesce(batch.column(kept[field_id]), values) if field_id in kept else values
        for field_id, values in inherited.items()
    ]


def _refuse_other_calendars(footer: Mapping[bytes, bytes], path: str) -> None:
    """Leave files to Spark in which old dates are of the Julian calendar, as a footer says."""
    if any(key.startswith(_LEGACY) for key in footer):
        raise _MoreThanACopyError(path)


def _names(stored: pa.Schema, wanted: pa.Schema, path: str) -> list[str]:
    """What a file calls the columns, where they are stored as new ones would be."""
    by_id = {stored_field_id(field): field for field in stored}
    found = [by_id.get(stored_field_id(field)) for field in wanted]
    if any(
        field is None
        or not field.type.equals(column.type, check_metadata=True)
        or field.nullable > column.nullable
        for field, column in zip(found, wanted, strict=True)
    ):
        raise _MoreThanACopyError(path)
    return [field.name for field in found if field is not None]
