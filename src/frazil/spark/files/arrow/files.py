"""Data and delete files of every format through Arrow, in the table's types.

This is for executors: it needs nothing of Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq

from frazil.errors import FrazilError, InvalidDataFileError, UnsupportedError
from frazil.format import types as I
from frazil.format.schema.name_mapping import NameMapping
from frazil.spark.files.arrow.avro_files import AvroFile
from frazil.spark.files.arrow.values import arrow_type, constant, projected
from frazil.spark.files.layout.footers import FooterColumn, columns_of_arrow, has_ids
from frazil.spark.files.layout.layouts import with_ids
from frazil.storage.files import FileIO
from frazil.storage.parquet.field_ids import PARQUET_FIELD_ID
from frazil.storage.parquet.footer import read_metadata

_BATCH_ROWS: Final = 16_384
_ORC_ID: Final = b"iceberg.id"
_OF_INT96: Final = "us"

Opened = tuple[tuple[FooterColumn, ...], Callable[[Sequence[int]], Iterator[Sequence[pa.Array]]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumns:
    """What is needed to give a file's columns their ids.

    Attributes:
        fields: the table's columns, for files without ids and without a mapping (rule 260).
        mapping: the table's name mapping (rule 54).
    """

    fields: tuple[I.NestedField, ...] = ()
    mapping: NameMapping | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePart:
    """A file to read.

    Attributes:
        file_format: ``parquet``, ``orc`` or ``avro``.
        constants: values of columns that the file may lack, by field id: internal values (rule 53).
    """

    path: str
    file_format: str
    constants: Mapping[int, Any] = field(default_factory=dict)


def read_batches(
    io: FileIO, part: FilePart, fields: Sequence[I.NestedField], table: TableColumns
) -> Iterator[tuple[int, int, list[pa.Array]]]:
    """The columns of a file, batch by batch: first position, number of rows, an array a field.

    A column that the file lacks is its constant, else its initial default, else NULL (rules 53-56).

    Raises:
        MissingFileError: there is no such file.
        InvalidDataFileError: the file is damaged, or a column's stored type cannot be read.
        UnsupportedError: a format or a type that is not supported.
    """
    with _open(io, part.path, part.file_format) as (columns, batches):
        if not has_ids(columns):
            columns = with_ids(columns, table.mapping, table.fields)
        places = {column.field_id: place for place, column in enumerate(columns)}
        wanted = [_place_of(item, places) for item in fields]
        stored = sorted({place for place in wanted if place is not None})
        position = 0
        for arrays in batches(stored):
            by_place = dict(zip(stored, arrays, strict=False))
            length = len(arrays[-1])
            found = [
                _column(item, place, by_place, columns, part, length)
                for item, place in zip(fields, wanted, strict=True)
            ]
            yield position, length, found
            position += length


def columns_of_file(io: FileIO, path: str, file_format: str) -> tuple[FooterColumn, ...]:
    """The columns of a file with the ids that it gives them.

    Raises:
        MissingFileError, InvalidDataFileError, UnsupportedError: as `read_batches`.
    """
    with _open(io, path, file_format) as (columns, _):
        return columns


@contextmanager
def _open(io: FileIO, path: str, file_format: str) -> Iterator[Opened]:
    """A file's columns and batches; what goes wrong with it becomes an error that names it."""
    opener = _OPENERS.get(file_format)
    if opener is None:
        raise UnsupportedError(f"data files of format {file_format!r} cannot be read")
    try:
        with closing(io.open_input(path)) as stream:
            yield opener(stream, path)
    except InvalidDataFileError as error:
        if error.file is not None:
            raise
        raise InvalidDataFileError(error.reason, file=path) from None
    except FrazilError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InvalidDataFileError(
            f"the {file_format} file cannot be read: {error}", file=path
        ) from None


def _place_of(item: I.NestedField, places: Mapping[int | None, int]) -> int | None:
    # A stored column of an unknown field is ignored (rule 259).
    return None if isinstance(item.field_type, I.UnknownType) else places.get(item.field_id)


def _column(
    item: I.NestedField,
    place: int | None,
    arrays: Mapping[int, pa.Array],
    columns: Sequence[FooterColumn],
    part: FilePart,
    length: int,
) -> pa.Array:
    if place is not None:
        return projected(arrays[place], columns[place], item.field_type)
    value = part.constants.get(item.field_id, item.initial_default)
    if value is None and item.required:
        raise InvalidDataFileError(
            f"the file lacks the required column {item.name!r} (field {item.field_id})"
        )
    return constant(value, item.field_type, length)


def _open_parquet(stream: BinaryIO, path: str) -> Opened:
    # As nanoseconds INT96 would silently become other times before 1677 and after 2262.
    file = pq.ParquetFile(
        stream, metadata=read_metadata(stream), coerce_int96_timestamp_unit=_OF_INT96
    )
    schema = file.schema_arrow
    columns = columns_of_arrow(schema, PARQUET_FIELD_ID)

    def batches(places: Sequence[int]) -> Iterator[Sequence[pa.Array]]:
        names = [schema.field(place).name for place in places]
        for batch in file.iter_batches(_BATCH_ROWS, columns=names, use_threads=False):
            if names and batch.num_columns != len(names):
                raise UnsupportedError(
                    f"the Parquet file {path} without field ids has several columns of one name"
                )
            arrays = [batch.column(name) for name in names]
            yield [*arrays, pa.nulls(batch.num_rows)]

    return columns, batches


def _open_orc(stream: BinaryIO, path: str) -> Opened:
    file = orc.ORCFile(stream)
    schema = file.schema
    columns = columns_of_arrow(schema, _ORC_ID)

    def batches(places: Sequence[int]) -> Iterator[Sequence[pa.Array]]:
        names = [schema.field(place).name for place in places]
        for stripe in range(file.nstripes):
            whole = file.read_stripe(stripe, columns=names or None)
            table = pa.Table.from_batches([whole]) if isinstance(whole, pa.RecordBatch) else whole
            for batch in table.to_batches(max_chunksize=_BATCH_ROWS):
                yield [*(batch.column(name) for name in names), pa.nulls(batch.num_rows)]

    return columns, batches


def _open_avro(stream: BinaryIO, path: str) -> Opened:
    file = AvroFile(stream, path)

    def batches(places: Sequence[int]) -> Iterator[Sequence[pa.Array]]:
        for rows in file.batches():
            stored = rows.flatten()
            yield [*(stored[place] for place in places), pa.nulls(len(rows))]

    return file.columns, batches


_OPENERS: Final[Mapping[str, Callable[[BinaryIO, str], Opened]]] = {
    "parquet": _open_parquet,
    "orc": _open_orc,
    "avro": _open_avro,
}

__all__ = ["FilePart", "TableColumns", "arrow_type", "read_batches"]
