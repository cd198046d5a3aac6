"""Arrow arrays of a file as arrays of the table's types: by id, promoted, defaults filled in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from frazil.errors import InvalidDataFileError, UnsupportedError
from frazil.format import types as I
from frazil.spark.files.layout.footers import OF_UNSIGNED_LONGS, FooterColumn


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
        case _ if type(field_type) in _ARROW_TYPES:
            return _ARROW_TYPES[type(field_type)]
        case _:
            raise UnsupportedError(
                f"a column of type {field_type} can be read from Parquet files with field ids only"
            )


def projected(array: pa.Array, column: FooterColumn, field_type: I.IcebergType) -> pa.Array:
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
            whole = _whole(array)
            values = projected(whole.values, column.children[0], field_type.element_type)
            return pa.ListArray.from_arrays(
                whole.offsets.cast(pa.int32()),
                values,
                type=arrow_type(field_type),
                mask=whole.is_null(),
            )
        case I.MapType():
            _check_kind(column, "map", field_type)
            whole = _whole(array)
            return pa.MapArray.from_arrays(
                whole.offsets,
                projected(whole.keys, column.children[0], field_type.key_type),
                projected(whole.items, column.children[1], field_type.value_type),
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
    if isinstance(field_type, I.UUIDType):
        return pa.scalar(value.bytes, target)
    if isinstance(field_type, I.DateType):
        return pa.scalar(value, pa.int32()).cast(target)
    if isinstance(field_type, I.TimestampType | I.TimestamptzType):
        return pa.scalar(value, pa.int64()).cast(target)
    return pa.scalar(value, target)


def _arrow_field(field: I.NestedField) -> pa.Field:
    return pa.field(field.name, arrow_type(field.field_type), nullable=not field.required)


def _struct(
    array: pa.StructArray, column: FooterColumn, fields: tuple[I.NestedField, ...]
) -> pa.StructArray:
    stored = array.flatten()
    places = {child.field_id: place for place, child in enumerate(column.children)}
    children = []
    for field in fields:
        place = places.get(field.field_id)
        if place is None or isinstance(field.field_type, I.UnknownType):
            children.append(constant(field.initial_default, field.field_type, len(array)))
        else:
            children.append(projected(stored[place], column.children[place], field.field_type))
    wanted = [pa.field(field.name, arrow_type(field.field_type), nullable=True) for field in fields]
    return pa.StructArray.from_arrays(children, fields=wanted, mask=array.is_null())


def _whole(array: pa.Array) -> pa.Array:
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
    if isinstance(field_type, I.TimestampNanoType | I.TimestamptzNanoType):
        zone = getattr(stored, "tz", None)
        moments = array if pa.types.is_integer(stored) else array.cast(pa.timestamp("ns", zone))
        return moments.cast(pa.int64())
    if isinstance(field_type, I.TimeType):
        return array if pa.types.is_integer(stored) else array.cast(pa.time64("us")).cast(target)
    if isinstance(field_type, I.TimestampType | I.TimestamptzType):
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
    match field_type:
        case I.BooleanType():
            return bool(t.is_boolean(stored))
        case I.IntegerType():
            return _is_integer(stored, 32)
        case I.LongType():
            return _is_integer(stored, 64)
        case I.FloatType():
            return bool(t.is_float32(stored))
        case I.DoubleType():
            return bool(t.is_float32(stored) or t.is_float64(stored))
        case I.DecimalType(precision=precision, scale=scale):
            if t.is_uint64(stored):
                return (precision, scale) == OF_UNSIGNED_LONGS
            return bool(
                t.is_decimal(stored) and stored.scale == scale and stored.precision <= precision
            )
        case I.DateType():
            return bool(t.is_date32(stored))
        case I.TimeType():
            return bool(t.is_time(stored) or t.is_int64(stored))
        case I.TimestampType() | I.TimestampNanoType():
            return bool(t.is_timestamp(stored) or t.is_date32(stored) or t.is_int64(stored))
        case I.TimestamptzType() | I.TimestamptzNanoType():
            return bool(t.is_timestamp(stored) or t.is_int64(stored))
        case I.StringType():
            return bool(t.is_string(stored) or t.is_large_string(stored) or _is_bytes(stored))
        case I.UUIDType():
            return _is_bytes(stored)
        case I.FixedType() | I.BinaryType() | I.GeometryType() | I.GeographyType():
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


_ARROW_TYPES: Final[Mapping[type[I.IcebergType], pa.DataType]] = {
    I.BooleanType: pa.bool_(),
    I.IntegerType: pa.int32(),
    I.LongType: pa.int64(),
    I.FloatType: pa.float32(),
    I.DoubleType: pa.float64(),
    I.DateType: pa.date32(),
    I.TimeType: pa.int64(),
    I.TimestampType: pa.timestamp("us"),
    I.TimestamptzType: pa.timestamp("us", tz="UTC"),
    I.TimestampNanoType: pa.int64(),
    I.TimestamptzNanoType: pa.int64(),
    I.StringType: pa.string(),
    I.UUIDType: pa.binary(),
    I.FixedType: pa.binary(),
    I.BinaryType: pa.binary(),
    I.GeometryType: pa.binary(),
    I.GeographyType: pa.binary(),
}
