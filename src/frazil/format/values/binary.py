"""Single values as bytes (SPEC rules 46, 275, 277, 278): bounds of files and of partitions."""

from __future__ import annotations

import struct
import uuid
from typing import Any

from frazil.errors import InvalidFormatError, UnsupportedError, ValidationError
from frazil.format.types.model import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
)
from frazil.format.values import civil
from frazil.format.values.decimals import decimal_from_unscaled, unscaled_value
from frazil.format.values.hashing import minimal_bytes


def to_bytes(value_type: IcebergType, value: Any) -> bytes:
    """The bytes of an internal value that is not null (rule 275).

    Geometry and geography values are given and returned as they are.
    """
    try:
        return _to_bytes(value_type, value)
    except (struct.error, OverflowError, ValueError, TypeError, AttributeError) as error:
        raise ValidationError(
            f"{value!r} is not an internal value of type {value_type}: {error}"
        ) from error


def from_bytes(value_type: IcebergType, raw: bytes) -> Any:
    """The internal value of bytes, also of those written before a promotion (rules 46, 277, 278).

    Four bytes are an int for long, a float for double, and a date for timestamp and timestamp_ns.
    """
    match value_type:
        case BooleanType():
            _check_length(value_type, raw, 1)
            return raw != b"\x00"
        case IntegerType() | DateType():
            _check_length(value_type, raw, 4)
            return _signed_integer(raw)
        case LongType():
            _check_length(value_type, raw, 8, 4)
            return _signed_integer(raw)
        case TimestampType() | TimestampNanoType():
            _check_length(value_type, raw, 8, 4)
            return (
                _signed_integer(raw)
                if len(raw) == 8
                else midnight(value_type, _signed_integer(raw))
            )
        case TimeType() | TimestamptzType() | TimestamptzNanoType():
            _check_length(value_type, raw, 8)
            return _signed_integer(raw)
        case FloatType():
            _check_length(value_type, raw, 4)
            return struct.unpack("<f", raw)[0]
        case DoubleType():
            _check_length(value_type, raw, 8, 4)
            return struct.unpack("<d" if len(raw) == 8 else "<f", raw)[0]
        case StringType():
            try:
                return raw.decode("utf-8")
            except UnicodeDecodeError as error:
                raise InvalidFormatError(f"the bytes {raw.hex()} are not UTF-8") from error
        case UUIDType():
            _check_length(value_type, raw, 16)
            return uuid.UUID(bytes=bytes(raw))
        case FixedType(length):
            _check_length(value_type, raw, length)
            return bytes(raw)
        case BinaryType() | GeometryType() | GeographyType():
            return bytes(raw)
        case DecimalType(_, scale):
            if not raw:
                raise InvalidFormatError(f"no bytes are not a value of type {value_type}")
            return decimal_from_unscaled(int.from_bytes(raw, "big", signed=True), scale)
        case UnknownType():
            return None
    raise UnsupportedError(f"a value of type {value_type} has no single-value bytes")


def midnight(value_type: IcebergType, days: int) -> int:
    """The start of a day since the epoch as a value of a timestamp type (rule 45)."""
    nanos = isinstance(value_type, TimestampNanoType | TimestamptzNanoType)
    return days * (civil.NANOS_PER_DAY if nanos else civil.MICROS_PER_DAY)


def _to_bytes(value_type: IcebergType, value: Any) -> bytes:
    match value_type:
        case BooleanType():
            return b"\x01" if value else b"\x00"
        case IntegerType() | DateType():
            return struct.pack("<i", value)
        case (
            LongType()
            | TimeType()
            | TimestampType()
            | TimestamptzType()
            | TimestampNanoType()
            | TimestamptzNanoType()
        ):
            return struct.pack("<q", value)
        case FloatType():
            return struct.pack("<f", value)
        case DoubleType():
            return struct.pack("<d", value)
        case StringType():
            return str(value).encode("utf-8")
        case UUIDType():
            return bytes(value.bytes)
        case FixedType(length):
            if len(value) != length:
                raise ValueError(f"it has {len(value)} bytes")
            return bytes(value)
        case BinaryType() | GeometryType() | GeographyType():
            return bytes(value)
        case DecimalType(_, scale):
            if value.as_tuple().exponent != -scale:
                raise ValueError("it has another scale")
            return minimal_bytes(unscaled_value(value))
    raise UnsupportedError(f"a value of type {value_type} has no single-value bytes")


def _signed_integer(raw: bytes) -> int:
    return int.from_bytes(raw, "little", signed=True)


def _check_length(value_type: IcebergType, raw: bytes, *lengths: int) -> None:
    if len(raw) not in lengths:
        expected = " or ".join(str(length) for length in lengths)
        raise InvalidFormatError(
            f"{len(raw)} bytes ({bytes(raw[:32]).hex()}) are not a value of type {value_type}: "
            f"it takes {expected}"
        )
