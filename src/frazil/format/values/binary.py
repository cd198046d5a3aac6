"""Single values as bytes (SPEC rules 46, 275, 277, 278): bounds of files and of partitions."""

from __future__ import annotations

import struct
import uuid
from typing import Any

from frazil.errors import InvalidFormatError, UnsupportedError, ValidationError
from frazil.format.types import DecimalType, FixedType, IcebergType, UnknownType
from frazil.format.types.forms import form_of
from frazil.format.values.decimals import decimal_from_unscaled, unscaled_value
from frazil.format.values.hashing import minimal_bytes

_LENGTHS = {"boolean": 1, "int": 4, "long": 8, "float": 4, "double": 8, "uuid": 16}
_LAYOUTS = {"int": "<i", "long": "<q", "float": "<f", "double": "<d"}


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
    form = form_of(value_type)
    if form.carrier in _LENGTHS:
        length = _LENGTHS[form.carrier]
        _check_length(value_type, raw, *((length, 4) if form.promoted_from else (length,)))
    match value_type, form.carrier:
        case _, "boolean":
            return raw != b"\x00"
        case _, "int" | "long":
            number = int.from_bytes(raw, "little", signed=True)
            is_day = len(raw) == 4 and form.promoted_from == "date"
            return number * form.units_per_day if is_day else number
        case _, "float" | "double":
            return struct.unpack("<d" if len(raw) == 8 else "<f", raw)[0]
        case _, "string":
            try:
                return raw.decode("utf-8")
            except UnicodeDecodeError as error:
                raise InvalidFormatError(f"the bytes {raw.hex()} are not UTF-8") from error
        case _, "uuid":
            return uuid.UUID(bytes=bytes(raw))
        case FixedType(length), _:
            _check_length(value_type, raw, length)
            return bytes(raw)
        case _, "binary" | "wkb":
            return bytes(raw)
        case DecimalType(_, scale), _:
            if not raw:
                raise InvalidFormatError(f"no bytes are not a value of type {value_type}")
            return decimal_from_unscaled(int.from_bytes(raw, "big", signed=True), scale)
        case UnknownType(), _:
            return None
    raise UnsupportedError(f"a value of type {value_type} has no single-value bytes")


def _to_bytes(value_type: IcebergType, value: Any) -> bytes:
    match value_type, form_of(value_type).carrier:
        case _, "boolean":
            return b"\x01" if value else b"\x00"
        case _, ("int" | "long" | "float" | "double") as carrier:
            return struct.pack(_LAYOUTS[carrier], value)
        case _, "string":
            return str(value).encode("utf-8")
        case _, "uuid":
            return bytes(value.bytes)
        case FixedType(length), _:
            if len(value) != length:
                raise ValueError(f"it has {len(value)} bytes")
            return bytes(value)
        case _, "binary" | "wkb":
            return bytes(value)
        case DecimalType(_, scale), _:
            if value.as_tuple().exponent != -scale:
                raise ValueError("it has another scale")
            return minimal_bytes(unscaled_value(value))
    raise UnsupportedError(f"a value of type {value_type} has no single-value bytes")


def _check_length(value_type: IcebergType, raw: bytes, *lengths: int) -> None:
    if len(raw) not in lengths:
        expected = " or ".join(str(length) for length in lengths)
        raise InvalidFormatError(
            f"{len(raw)} bytes ({bytes(raw[:32]).hex()}) are not a value of type {value_type}: "
            f"it takes {expected}"
        )
