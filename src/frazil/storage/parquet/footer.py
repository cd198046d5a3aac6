"""The schema in a Parquet footer: what another writer left out or put there wrongly.

Spark's writer knows ids for struct fields only, and no type for nanoseconds. Both are nothing but
entries of the footer's schema, so they are put there after the write (SPEC rules 255, 258). Only
the schema list is decoded; every other byte of the footer stays as it is, and what this module
does not know inside the schema is kept.

Writers of before 2021 mark the entries of maps as a logical type that Arrow refuses on a group and
Spark overlooks; `read_metadata` overlooks it too.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.parquet as pq
from thrift.protocol.TCompactProtocol import TCompactProtocol
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TType
from thrift.transport.TTransport import TMemoryBuffer

from frazil.errors import FrazilError, InvalidDataFileError
from frazil.format import types as I
from frazil.format.types.forms import form_of

MAGIC: Final = b"PAR1"
_TAIL: Final = 8

# FileMetaData
_VERSION, _SCHEMA = 1, 2
# SchemaElement
_TYPE, _REPETITION, _NAME, _NUM_CHILDREN, _CONVERTED_TYPE = 1, 3, 4, 5, 6
_FIELD_ID, _LOGICAL_TYPE = 9, 10
# LogicalType, its TimeUnit and ConvertedType
_MAP, _LIST, _TIME, _TIMESTAMP, _VARIANT, _GEOMETRY, _GEOGRAPHY = 2, 3, 7, 8, 16, 17, 18
_GROUPS: Final = frozenset({_MAP, _LIST, _VARIANT})
_MICROS, _NANOS = 2, 3
_VARIANT_VERSION: Final = 1
_CONVERTED_MAP: Final = 1
_CONVERTED_TIME_MICROS: Final = 8
_READ: Final[Mapping[int, Callable[[TCompactProtocol], Any]]] = {
    TType.BOOL: TCompactProtocol.readBool,
    TType.BYTE: TCompactProtocol.readByte,
    TType.I16: TCompactProtocol.readI16,
    TType.I32: TCompactProtocol.readI32,
    TType.I64: TCompactProtocol.readI64,
    TType.DOUBLE: TCompactProtocol.readDouble,
    TType.STRING: TCompactProtocol.readBinary,
}
_WRITE: Final[Mapping[int, Callable[[TCompactProtocol, Any], None]]] = {
    TType.BOOL: TCompactProtocol.writeBool,
    TType.BYTE: TCompactProtocol.writeByte,
    TType.I16: TCompactProtocol.writeI16,
    TType.I32: TCompactProtocol.writeI32,
    TType.I64: TCompactProtocol.writeI64,
    TType.DOUBLE: TCompactProtocol.writeDouble,
    TType.STRING: TCompactProtocol.writeBinary,
}
"""How values that hold no others are read and written, by their types."""

_EDGE_ALGORITHMS: Final = {"spherical": 0, "vincenty": 1, "thomas": 2, "andoyer": 3, "karney": 4}

Value = tuple[int, Any]
"""A Thrift value with its type; a struct is a dict of field id to Value, a list (type, items)."""

_Repair = Callable[[list[dict[int, Value]]], bool]
"""Changes the elements of a schema; whether it did."""


@dataclass(frozen=True, slots=True)
class _Node:
    """One element of the schema with its children."""

    element: dict[int, Value]
    children: tuple[_Node, ...]

    @property
    def name(self) -> str:
        return str(self.element[_NAME][1].decode("utf-8"))


def read_metadata(stream: BinaryIO) -> pq.FileMetaData:
    """Return what the footer of an open Parquet file says, by which Arrow can read the file.

    Logical types that no group can have are overlooked, as Spark does, and so are types of Arrow
    that its writer kept beside Parquet's and no table has.
    Raises pyarrow.ArrowException or OSError where the footer is damaged, or its schema makes no
    sense.
    """
    return _read_metadata(stream, _sound_groups)


def read_description(stream: BinaryIO) -> pq.FileMetaData:
    """Return what the footer of an open Parquet file says, not to read the file by.

    As `read_metadata`, and the keys of maps are required, as Spark reads them; Arrow refuses files
    where they are optional.
    Raises as `read_metadata`.
    """
    return _read_metadata(stream, lambda each: _sound_groups(each) | _required_keys(each))


def _read_metadata(stream: BinaryIO, repair: _Repair) -> pq.FileMetaData:
    try:
        found = pq.read_metadata(stream)
    except FrazilError:
        raise
    except (pa.ArrowException, OSError):
        whole = _repair_footer(stream, repair)
        if whole is None:
            raise
        stream = pa.BufferReader(whole)
        found = pq.read_metadata(stream)
    if not needs_parquet_types(found):
        return found
    return with_parquet_types(read_footer(stream, "")[1]) or found


def patch_file(path: str, schema: I.StructType) -> int:
    """Give a local file the field ids and logical types of a schema, in place.

    Columns are found by name, at every level.
    `schema`: the columns that the file holds, in any order; unknown columns may be missing.
    Returns the new length of the file in bytes.
    """
    with open(path, "r+b") as file:
        start, end = patched_end(file, schema, path)
        if end is not None:
            file.seek(start)
            file.write(end)
            file.truncate()
        return os.fstat(file.fileno()).st_size if end is None else start + len(end)


def patched_end(file: Any, schema: I.StructType, path: str) -> tuple[int, bytes | None]:
    """What an open file is to end with, to have the field ids and logical types of a schema.

    Returns where its footer begins, and the bytes from there on; None where it has them already.
    """
    start, footer = read_footer(file, path)
    patched = patch_footer(footer, schema, file=path)
    if patched == footer:
        return start, None
    return start, patched + struct.pack("<I", len(patched)) + MAGIC


def patch_footer(footer: bytes, schema: I.StructType, *, file: str | None = None) -> bytes:
    """A footer with the field ids and logical types of a schema."""
    try:
        version, elements, rest = _split(footer)
        root = _tree(iter(elements), file)
        _label_struct(root.children, schema, "", file)
        return _join(version, elements, rest)
    except InvalidDataFileError:
        raise
    except Exception as error:  # damaged bytes make Thrift fail in many ways
        raise InvalidDataFileError(
            f"the Parquet footer is damaged: {error!r}", file=file
        ) from error


def _repair_footer(stream: BinaryIO, repair: _Repair) -> bytes | None:
    """A file of the footer alone with a repaired schema; None where nothing was to be repaired."""
    try:
        _, footer = read_footer(stream, "")
        version, elements, rest = _split(footer)
        if not repair(elements):
            return None
        sound = _join(version, elements, rest)
    except Exception:  # damaged bytes make Thrift fail in many ways; Arrow told what is wrong
        return None
    return MAGIC + sound + struct.pack("<I", len(sound)) + MAGIC


def _sound_groups(elements: list[dict[int, Value]]) -> bool:
    """Take away the logical types that no group has; whether there were any."""
    wrong = [each for each in elements if _NUM_CHILDREN in each and _logical(each) - _GROUPS]
    for element in wrong:
        del element[_LOGICAL_TYPE]
    return bool(wrong)


def _required_keys(elements: list[dict[int, Value]]) -> bool:
    """Mark the keys of maps as required; whether any was not."""
    found = False
    for index, element in enumerate(elements[:-2]):
        converted = element.get(_CONVERTED_TYPE, (TType.I32, None))[1]
        if _MAP in _logical(element) or converted == _CONVERTED_MAP:
            key = elements[index + 2]
            found |= key.get(_REPETITION, (TType.I32, 0))[1] != 0
            key[_REPETITION] = (TType.I32, 0)
    return found


def _logical(element: dict[int, Value]) -> set[int]:
    kind, value = element.get(_LOGICAL_TYPE, (TType.STRUCT, {}))
    return set(value) if kind == TType.STRUCT else set()


def read_footer(file: Any, path: str) -> tuple[int, bytes]:
    """Return where the footer of an open Parquet file begins, and its bytes."""
    size = file.seek(0, os.SEEK_END)
    if size < len(MAGIC) + _TAIL:
        raise InvalidDataFileError(f"{size} bytes are no Parquet file", file=path)
    file.seek(size - _TAIL)
    tail = file.read(_TAIL)
    length = int(struct.unpack("<I", tail[:4])[0])
    start = size - _TAIL - length
    if tail[4:] != MAGIC or start < len(MAGIC):
        raise InvalidDataFileError("the file does not end as a Parquet file does", file=path)
    file.seek(start)
    return start, file.read(length)


def is_whole(file: Any) -> bool:
    """Whether an open file ends as a Parquet file does."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - len(MAGIC)))
    return bool(file.read(len(MAGIC)) == MAGIC)


def _split(footer: bytes) -> tuple[Value, list[dict[int, Value]], bytes]:
    """The version, the schema's elements and the bytes after them."""
    buffer = TMemoryBuffer(footer)
    protocol = TCompactProtocol(buffer)
    protocol.readStructBegin()
    _, kind, field = protocol.readFieldBegin()
    if field != _VERSION:
        raise TProtocolException(message=f"the first field is {field}, not the version")
    version = (kind, read_value(protocol, kind))
    protocol.readFieldEnd()
    _, kind, field = protocol.readFieldBegin()
    if field != _SCHEMA or kind != TType.LIST:
        raise TProtocolException(message=f"the second field is {field}, not the schema")
    item_type, items = read_value(protocol, kind)
    if item_type != TType.STRUCT:
        raise TProtocolException(message="the schema is no list of elements")
    protocol.readFieldEnd()
    return version, items, footer[buffer.cstringio_buf.tell() :]


def _join(version: Value, elements: list[dict[int, Value]], rest: bytes) -> bytes:
    buffer = TMemoryBuffer()
    protocol = TCompactProtocol(buffer)
    protocol.writeStructBegin("")
    for field, (kind, value) in (
        (_VERSION, version),
        (_SCHEMA, (TType.LIST, (TType.STRUCT, elements))),
    ):
        protocol.writeFieldBegin("", kind, field)
        write_value(protocol, kind, value)
        protocol.writeFieldEnd()
    # The rest starts with the header of the field after the schema, relative to the schema's id.
    return bytes(buffer.getvalue()) + rest


def read_value(protocol: TCompactProtocol, kind: int) -> Any:
    """Return the next value of a Thrift type, as `Value` has it."""
    match kind:
        case _ if kind in _READ:
            return _READ[kind](protocol)
        case TType.LIST | TType.SET:
            item_type, size = protocol.readListBegin()
            items = [read_value(protocol, item_type) for _ in range(size)]
            protocol.readListEnd()
            return item_type, items
        case TType.STRUCT:
            fields: dict[int, Value] = {}
            protocol.readStructBegin()
            while True:
                _, field_kind, field = protocol.readFieldBegin()
                if field_kind == TType.STOP:
                    break
                fields[field] = (field_kind, read_value(protocol, field_kind))
                protocol.readFieldEnd()
            protocol.readStructEnd()
            return fields
        case _:
            raise TProtocolException(message=f"Thrift type {kind} has no place in a schema")


def write_value(protocol: TCompactProtocol, kind: int, value: Any) -> None:
    """Write what `read_value` gave."""
    match kind:
        case _ if kind in _WRITE:
            _WRITE[kind](protocol, value)
        case TType.LIST | TType.SET:
            item_type, items = value
            protocol.writeListBegin(item_type, len(items))
            for item in items:
                write_value(protocol, item_type, item)
            protocol.writeListEnd()
        case _:
            protocol.writeStructBegin("")
            for field, (field_kind, field_value) in sorted(value.items()):
                protocol.writeFieldBegin("", field_kind, field)
                write_value(protocol, field_kind, field_value)
                protocol.writeFieldEnd()
            protocol.writeFieldStop()
            protocol.writeStructEnd()


def _tree(elements: Iterator[dict[int, Value]], file: str | None) -> _Node:
    element = next(elements, None)
    if element is None or _NAME not in element:
        raise InvalidDataFileError("the Parquet schema ends before its last column", file=file)
    count = element.get(_NUM_CHILDREN, (TType.I32, 0))[1]
    return _Node(element, tuple(_tree(elements, file) for _ in range(count)))


def _label_struct(
    nodes: tuple[_Node, ...], struct_type: I.StructType, path: str, file: str | None
) -> None:
    fields = {field.name: field for field in struct_type.fields}
    for node in nodes:
        field = fields.pop(node.name, None)
        column = f"{path}{node.name}"
        if field is None:
            raise InvalidDataFileError(
                f"the file holds the unexpected column {column!r}", file=file
            )
        _label(node, field, column, file)
    missing = [
        path + name
        for name, field in fields.items()
        if not isinstance(field.field_type, I.UnknownType)
    ]
    if missing:
        raise InvalidDataFileError(f"the file lacks the columns {missing}", file=file)


def _label(node: _Node, field: I.NestedField, path: str, file: str | None) -> None:
    node.element[_FIELD_ID] = (TType.I32, field.field_id)
    match field.field_type:
        case I.StructType():
            _label_struct(node.children, field.field_type, f"{path}.", file)
        case I.ListType():
            (element,) = _entries(node, 1, path, file)
            _label(element, field.field_type.element_field, f"{path}.element", file)
        case I.MapType():
            key, value = _entries(node, 2, path, file)
            _label(key, field.field_type.key_field, f"{path}.key", file)
            _label(value, field.field_type.value_field, f"{path}.value", file)
        case _:
            _annotate(node.element, field.field_type)


def _entries(node: _Node, count: int, path: str, file: str | None) -> tuple[_Node, ...]:
    """The element, or the key and value, of a three-level list or map (SPEC rule 256)."""
    if len(node.children) != 1 or len(node.children[0].children) != count:
        raise InvalidDataFileError(f"{path!r} is no three-level list or map", file=file)
    return node.children[0].children


def _annotate(element: dict[int, Value], iceberg_type: I.IcebergType) -> None:
    """Say what a plain long or binary column means."""
    form = form_of(iceberg_type)
    match iceberg_type:
        case _ if form.meaning == "time":
            logical = (_TIME, _unit(_MICROS, is_utc=False))
            element[_CONVERTED_TYPE] = (TType.I32, _CONVERTED_TIME_MICROS)
        case _ if form.meaning == "timestamp" and form.labelled:
            logical = (_TIMESTAMP, _unit(_NANOS, is_utc=form.zoned))
        case I.VariantType():
            logical = (_VARIANT, {1: (TType.BYTE, _VARIANT_VERSION)})
        case I.GeometryType(crs=crs):
            logical = (_GEOMETRY, {1: (TType.STRING, crs.encode())})
        case I.GeographyType(crs=crs, algorithm=algorithm):
            edges = (TType.I32, _EDGE_ALGORITHMS[algorithm])
            logical = (_GEOGRAPHY, {1: (TType.STRING, crs.encode()), 2: edges})
        case _:
            return
    kind, parameters = logical
    element[_LOGICAL_TYPE] = (TType.STRUCT, {kind: (TType.STRUCT, parameters)})


def _unit(unit: int, *, is_utc: bool) -> dict[int, Value]:
    units: dict[int, Value] = {unit: (TType.STRUCT, {})}
    return {1: (TType.BOOL, is_utc), 2: (TType.STRUCT, units)}


# -- types of Arrow in a footer --------------------------------------------------------------------

# delta-rs, Polars, DataFusion and others keep the Arrow schema that they wrote, so that Arrow
# gives the same types back: views in place of strings, lists of one length, durations. The columns
# themselves are plain, and a table's types are those of Parquet.


_KEY: Final = b"ARROW:schema"
# A key of the key-value metadata in Thrift: field 1, 12 bytes, and the value's field behind it.
_BEFORE: Final = b"\x18\x0c"
_WRITTEN_KEY: Final = _BEFORE + _KEY + b"\x18"
_OTHER_KEY: Final = b"arrow;schema"

_AS_STORED: Final = ("arrow.uuid", "arrow.parquet.variant", "geoarrow.")
"""Extensions that say what Parquet's own types say."""


def needs_parquet_types(footer: pq.FileMetaData) -> bool:
    """Whether Arrow would give a column back in a type that stands for none of a table's."""
    if _KEY not in (footer.metadata or {}):
        return False
    return any(_is_of_arrow_alone(field.type) for field in footer.schema.to_arrow_schema())


def with_parquet_types(footer: bytes) -> pq.FileMetaData | None:
    """Return what a footer says in Parquet's types alone; None where that cannot be told.

    The Arrow schema in it gets another name, of the same length.
    """
    # Statistics stand before the key-value metadata: the last place is that of the key.
    offset = footer.rfind(_WRITTEN_KEY) + len(_BEFORE)
    if offset < len(_BEFORE):
        return None
    other = footer[:offset] + _OTHER_KEY + footer[offset + len(_KEY) :]
    whole = MAGIC + other + struct.pack("<I", len(other)) + MAGIC
    found = pq.read_metadata(pa.BufferReader(whole))
    return found if _KEY not in (found.metadata or {}) else None


def _is_of_arrow_alone(kind: Any) -> bool:
    t = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return not kind.extension_name.startswith(_AS_STORED)
    if t.is_dictionary(kind):
        return _is_of_arrow_alone(kind.value_type)
    if t.is_map(kind):
        return _is_of_arrow_alone(kind.key_type) or _is_of_arrow_alone(kind.item_type)
    if t.is_struct(kind) or t.is_list(kind) or t.is_large_list(kind):
        return any(_is_of_arrow_alone(kind.field(i).type) for i in range(kind.num_fields))
    return bool(
        t.is_string_view(kind)
        or t.is_binary_view(kind)
        or t.is_list_view(kind)
        or t.is_large_list_view(kind)
        or t.is_fixed_size_list(kind)
        or t.is_duration(kind)
        or t.is_run_end_encoded(kind)
    )
