"""The 32-bit murmur3 hash of a value, for the bucket transform (SPEC rules 84, 265-274)."""

from __future__ import annotations

import struct
from typing import Any

import mmh3

from frazil.errors import UnsupportedError
from frazil.format.types import IcebergType
from frazil.format.types.forms import form_of
from frazil.format.values.decimals import unscaled_value

_CANONICAL_NAN = (0x7FF8000000000000).to_bytes(8, "little")


def bucket_hash(value_type: IcebergType, value: Any) -> int:
    """The signed 32-bit murmur3 hash, seed 0, of an internal value that is not null.

    Integers, dates and booleans hash as 8-byte little-endian longs, whatever their width, so that a
    promotion keeps every value in its bucket (rule 268).
    """
    return int(mmh3.hash(_hashed_bytes(value_type, value), 0, signed=True))


def minimal_bytes(number: int) -> bytes:
    """Two's complement, big-endian, in the fewest bytes that keep the sign (rules 266, 275)."""
    bits = number.bit_length() if number >= 0 else (number + 1).bit_length()
    return number.to_bytes(bits // 8 + 1, "big", signed=True)


def _hashed_bytes(value_type: IcebergType, value: Any) -> bytes:
    form = form_of(value_type)
    match form.carrier:
        case "boolean" | "int" | "long":
            micros = value // 1000 if form.unit == 1 else value
            return int(micros).to_bytes(8, "little", signed=True)
        case "string":
            return str(value).encode("utf-8")
        case "uuid":
            return bytes(value.bytes)
        case "fixed" | "binary":
            return bytes(value)
        case "decimal":
            return minimal_bytes(unscaled_value(value))
        case "float" | "double":
            # Adding zero turns -0.0 into 0.0, which must hash alike (rule 274).
            return _CANONICAL_NAN if value != value else struct.pack("<d", value + 0.0)
    raise UnsupportedError(f"a value of type {value_type} has no hash")
