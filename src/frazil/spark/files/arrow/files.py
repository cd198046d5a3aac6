"""Data and delete files of every format through Arrow, in the table's types.

This is for executors: it needs nothing of Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc as orc
import pyarrow.parquet as pq

from frazil.errors import FrazilError, InvalidDataFileError, UnsupportedError
from frazil.format import types as I
from frazil.format.schema.name_mapping import NameMapping
from frazil.format.types.forms import form_of
from frazil.spark.files.arrow.avro_files import AvroFile
from frazil.spark.files.layout.footers import (
    OF_UNSIGNED_LONGS,
    FooterColumn,
    columns_of_arrow,
    has_ids,
)
from frazil.spark.files.layout.layouts import with_ids
from frazil.storage.files import FileIO
from frazil.storage.parquet.arrow_names import ARROW_TYPES
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
        # A stored column of an unknown field is ignored (rule 259).
        wanted = [
            None if isinstance(item.field_type, I.UnknownType) else places.get(item.field_id)
            for item in fields
        ]
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


def _column(
    item: I.NestedField,
    place: int | None,
    arrays: Mapping[int, pa.Array],
    columns: Sequence[FooterColumn],
    part: FilePart,
    length: int,
) -> pa.Array:
    if place is not None:
        return project_array(arrays[place], columns[place], item.field_type)
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


def arrow_type(field_type: I.IcebergType) -> pa.DataType:
    """The Arrow type in which a column is handed to Spark, in the types of a scan.

    A uuid is 16 bytes, nanoseconds and times are longs.
    """
    match field_type:
        case I.DecimalType(precision=precision, scale=scale):
            return pa.decimal128(precision, scale)
        case I.StructType(fields=fields):
            return pa.struct([_arrow_field(field) for field in fields])
        case I.ListType():
            return pa.list_(_arrow_field(field_type.element_field))
        case I.MapType():
            return pa.map_(arrow_type(field_type.key_type), _arrow_field(field_type.value_field))
    form = form_of(field_type)
    if not form.arrow and not form.scanned:
        raise UnsupportedError(
            f"a column of type {field_type} can be read from Parquet files with field ids only"
        )
    return ARROW_TYPES[form.scanned or form.arrow]


def project_array(array: pa.Array, column: FooterColumn, field_type: I.IcebergType) -> pa.Array:
    """A stored column as the table's type: nested fields by id, values promoted (rules 44, 52).

    Raises:
        InvalidDataFileError: the stored type cannot become the table's.
    """
    match field_type:
        case I.StructType(fields=fields):
            _check_kind(column, "struct", field_type)
            return _struct(array, column, fields)
        case I.ListType():
            _check_kind(column, "list", field_type)
            whole = _without_offset(array)
            values = project_array(whole.values, column.children[0], field_type.element_type)
            return pa.ListArray.from_arrays(
                whole.offsets.cast(pa.int32()),
                values,
                type=arrow_type(field_type),
                mask=whole.is_null(),
            )
        case I.MapType():
            _check_kind(column, "map", field_type)
            whole = _without_offset(array)
            return pa.MapArray.from_arrays(
                whole.offsets,
                project_array(whole.keys, column.children[0], field_type.key_type),
                project_array(whole.items, column.children[1], field_type.value_type),
                type=arrow_type(field_type),
                mask=whole.is_null(),
            )
        case _:
            return _primitive(array, column, field_type)


def constant(value: Any, field_type: I.IcebergType, length: int) -> pa.Array:
    """An internal value repeated; None is NULL, and ``()`` a struct of its fields' defaults."""
    target = arrow_type(field_type)
    if value is None:
        return pa.nulls(length, target)
    if isinstance(field_type, I.StructType):
        children = [
            constant(field.initial_default, field.field_type, length) for field in field_type.fields
        ]
        return pa.StructArray.from_arrays(children, fields=list(target))
    if field_type.is_nested:
        raise UnsupportedError(f"a default of type {field_type} is not supported")
    return pa.repeat(_scalar(value, field_type, target), length)


def _scalar(value: Any, field_type: I.IcebergType, target: pa.DataType) -> pa.Scalar:
    form = form_of(field_type)
    if form.meaning == "uuid":
        return pa.scalar(value.bytes, target)
    if form.unit:
        return pa.scalar(value, pa.int32() if form.carrier == "int" else pa.int64()).cast(target)
    return pa.scalar(value, target)


def _arrow_field(field: I.NestedField) -> pa.Field:
    return pa.field(field.name, arrow_type(field.field_type), nullable=not field.required)


def _struct(
    array: pa.StructArray, column: FooterColumn, fields: tuple[I.NestedField, ...]
) -> pa.StructArray:
    stored = array.flatten()
    places = {child.field_id: place for place, child in enumerate(column.children)}
    children = []
    for each in fields:
        place = places.get(each.field_id)
        if place is None or isinstance(each.field_type, I.UnknownType):
            children.append(constant(each.initial_default, each.field_type, len(array)))
        else:
            children.append(project_array(stored[place], column.children[place], each.field_type))
    wanted = [pa.field(field.name, arrow_type(field.field_type), nullable=True) for field in fields]
    return pa.StructArray.from_arrays(children, fields=wanted, mask=array.is_null())


def _without_offset(array: pa.Array) -> pa.Array:
    # Offsets and masks do not go together on a slice.
    return array.take(pa.array(range(len(array)), pa.int64())) if array.offset else array


def _check_kind(column: FooterColumn, kind: str, field_type: I.IcebergType) -> None:
    if column.kind != kind:
        raise InvalidDataFileError(
            f"the column {column.name!r} is stored as {column.kind}; the table's type is "
            f"{field_type}"
        )


def _primitive(array: pa.Array, column: FooterColumn, field_type: I.IcebergType) -> pa.Array:
    target = arrow_type(field_type)
    stored = array.type
    if isinstance(array, pa.ExtensionArray):
        array, stored = array.storage, array.storage.type
    if pa.types.is_dictionary(stored):
        array, stored = array.dictionary_decode(), stored.value_type
    if pa.types.is_null(stored):
        return pa.nulls(len(array), target)
    if not _is_promotable(stored, field_type):
        raise InvalidDataFileError(
            f"the column {column.name!r} is stored as {stored}; the table's type is {field_type}"
        )
    form = form_of(field_type)
    if form.unit == 1:
        zone = getattr(stored, "tz", None)
        moments = array if pa.types.is_integer(stored) else array.cast(pa.timestamp("ns", zone))
        return moments.cast(pa.int64())
    if form.meaning == "time":
        return array if pa.types.is_integer(stored) else array.cast(pa.time64("us")).cast(target)
    if form.meaning == "timestamp":
        if pa.types.is_timestamp(stored):
            # ORC holds nanoseconds: they are cut down (rule 263), towards the past.
            array = _floored_to_micros(array)
        elif pa.types.is_date(stored):
            array = array.cast(pa.timestamp("us"))
        return array.cast(pa.int64()).cast(target)
    return array.cast(target)


def _floored_to_micros(array: pa.Array) -> pa.Array:
    if array.type.unit != "ns":
        return array.cast(pa.timestamp("us", array.type.tz))
    nanos = array.cast(pa.int64())
    micros = pc.divide(nanos, 1000)
    rest = pc.subtract(nanos, pc.multiply(micros, 1000))
    return pc.subtract(micros, pc.less(rest, 0).cast(pa.int64()))


def _is_promotable(stored: pa.DataType, field_type: I.IcebergType) -> bool:
    t = pa.types
    form = form_of(field_type)
    if isinstance(field_type, I.DecimalType):
        precision, scale = field_type.precision, field_type.scale
        if t.is_uint64(stored):
            return (precision, scale) == OF_UNSIGNED_LONGS
        return bool(
            t.is_decimal(stored) and stored.scale == scale and stored.precision <= precision
        )
    match form.meaning:
        case "boolean":
            return bool(t.is_boolean(stored))
        case "integer":
            return _is_integer(stored, form.bits)
        case "floating":
            wider = form.carrier == "double" and t.is_float64(stored)
            return bool(t.is_float32(stored) or wider)
        case "date":
            return bool(t.is_date32(stored))
        case "time":
            return bool(t.is_time(stored) or t.is_int64(stored))
        case "timestamp":
            was_date = bool(form.promoted_from) and t.is_date32(stored)
            return bool(t.is_timestamp(stored) or t.is_int64(stored) or was_date)
        case "string":
            return bool(t.is_string(stored) or t.is_large_string(stored) or _is_bytes(stored))
        case "uuid" | "fixed" | "binary" | "wkb":
            return _is_bytes(stored)
        case _:
            return False


def _is_integer(stored: pa.DataType, bits: int) -> bool:
    """Whether every value fits a signed integer of so many bits."""
    t = pa.types
    if t.is_unsigned_integer(stored):
        return bool(stored.bit_width < bits)
    return bool(t.is_signed_integer(stored) and stored.bit_width <= bits)


def _is_bytes(stored: pa.DataType) -> bool:
    t = pa.types
    return bool(t.is_binary(stored) or t.is_large_binary(stored) or t.is_fixed_size_binary(stored))
