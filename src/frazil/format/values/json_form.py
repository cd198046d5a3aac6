"""Single values as JSON (SPEC rule 276), as the defaults of fields hold them."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping
from decimal import Decimal, DecimalException
from typing import Any, Final

from frazil.errors import InvalidFormatError, UnsupportedError
from frazil.format.types import (
    DecimalType,
    FixedType,
    IcebergType,
    ListType,
    MapType,
    StructType,
    UnknownType,
)
from frazil.format.types.forms import form_of
from frazil.format.values import civil
from frazil.format.values.decimals import at_scale, decimal_as_text, decimal_from_text, digits_of
from frazil.format.values.floats import word_unless_finite

_UUID_PATTERN = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_FLOAT_WORDS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


def to_json(value_type: IcebergType, value: Any) -> Any:
    """The JSON single value of an internal value; None for null.

    Times and timestamps always carry six digits of a second, nanoseconds nine.
    """
    if value is None:
        return None
    form = form_of(value_type)
    match form.meaning:
        case "boolean" | "integer" | "string":
            return value
        case "floating":
            # JSON has no numbers for some; Java's writer puts words in strings.
            return word_unless_finite(value) or value
        case "decimal":
            return decimal_as_text(value)
        case "date":
            return civil.format_date(value)
        case "time":
            return civil.format_time(value * form.unit, form.digits)
        case "timestamp":
            text = civil.format_timestamp(value * form.unit, form.digits)
            return text + "+00:00" if form.zoned else text
        case "uuid":
            return str(value)
        case "fixed" | "binary":
            return bytes(value).hex()
    match value_type:
        case StructType(fields):
            return {
                str(field.field_id): to_json(field.field_type, item)
                for field, item in zip(fields, value, strict=True)
            }
        case ListType():
            return [to_json(value_type.element_type, item) for item in value]
        case MapType():
            return {
                "keys": [to_json(value_type.key_type, key) for key, _ in value],
                "values": [to_json(value_type.value_type, item) for _, item in value],
            }
    raise UnsupportedError(f"a value of type {value_type} has no JSON form here")


def from_json(value_type: IcebergType, json_value: Any) -> Any:
    """The internal value of a JSON single value; None for null."""
    if json_value is None:
        return None
    try:
        return _from_json(value_type, json_value)
    except (ValueError, TypeError, OverflowError, DecimalException) as error:
        if isinstance(error, InvalidFormatError):
            raise
        raise _value_error(value_type, json_value, str(error)) from error


def _from_json(value_type: IcebergType, json_value: Any) -> Any:
    parse = _PARSED.get(form_of(value_type).meaning)
    if parse is not None:
        return parse(value_type, json_value)
    match value_type:
        case DecimalType():
            return _decimal_from_json(value_type, json_value)
        case FixedType(length):
            raw = bytes.fromhex(_text(value_type, json_value))
            if len(raw) != length:
                raise _value_error(value_type, json_value, f"it holds {len(raw)} bytes")
            return raw
        case StructType(fields):
            if not isinstance(json_value, dict):
                raise _value_error(value_type, json_value, "expected an object by field id")
            return tuple(
                from_json(field.field_type, json_value.get(str(field.field_id))) for field in fields
            )
        case ListType():
            if not isinstance(json_value, list):
                raise _value_error(value_type, json_value, "expected an array")
            return tuple(from_json(value_type.element_type, item) for item in json_value)
        case MapType():
            return _map_from_json(value_type, json_value)
        case UnknownType():
            raise _value_error(value_type, json_value, "only null is possible")
    raise UnsupportedError(f"a value of type {value_type} has no JSON form here")


def _boolean_from_json(value_type: IcebergType, json_value: Any) -> bool:
    if not isinstance(json_value, bool):
        raise _value_error(value_type, json_value, "expected true or false")
    return json_value


def _integer_from_json(value_type: IcebergType, json_value: Any) -> int:
    if isinstance(json_value, bool) or not isinstance(json_value, int):
        raise _value_error(value_type, json_value, "expected a whole number")
    if not form_of(value_type).holds(json_value):
        raise _value_error(value_type, json_value, "it is out of range")
    return json_value


def _float_from_json(value_type: IcebergType, json_value: Any) -> float:
    if isinstance(json_value, str) and json_value in _FLOAT_WORDS:
        return _FLOAT_WORDS[json_value]
    if isinstance(json_value, bool) or not isinstance(json_value, int | float):
        raise _value_error(value_type, json_value, "expected a number")
    return float(json_value)


def _decimal_from_json(value_type: DecimalType, json_value: Any) -> Decimal:
    number = decimal_from_text(_text(value_type, json_value))
    if not number.is_finite():
        raise _value_error(value_type, json_value, "it is not a finite number")
    scaled = at_scale(number, value_type.scale)
    if digits_of(scaled) > value_type.precision:
        raise _value_error(value_type, json_value, "it does not fit the precision and scale")
    return scaled


def _timestamp_from_json(value_type: IcebergType, json_value: Any) -> int:
    nanos, offset = civil.parse_timestamp(_text(value_type, json_value))
    zoned = form_of(value_type).zoned
    if zoned and offset is None:
        raise _value_error(value_type, json_value, "the offset +00:00 is missing")
    if not zoned and offset is not None:
        raise _value_error(
            value_type, json_value, "an offset is not possible in a type without a zone"
        )
    nanos -= (offset or 0) * civil.NANOS_PER_SECOND
    return _in_units(value_type, nanos, json_value)


def _in_units(value_type: IcebergType, nanos: int, json_value: Any) -> int:
    units, rest = divmod(nanos, form_of(value_type).unit)
    if rest:
        raise _value_error(value_type, json_value, "it is finer than a microsecond")
    return units


def _map_from_json(value_type: MapType, json_value: Any) -> tuple[tuple[Any, Any], ...]:
    if not isinstance(json_value, dict):
        raise _value_error(value_type, json_value, "expected an object with keys and values")
    keys, values = json_value.get("keys"), json_value.get("values")
    if not isinstance(keys, list) or not isinstance(values, list) or len(keys) != len(values):
        raise _value_error(
            value_type, json_value, "expected two arrays of one length, keys and values"
        )
    return tuple(
        (from_json(value_type.key_type, key), from_json(value_type.value_type, item))
        for key, item in zip(keys, values, strict=True)
    )


def _text(value_type: IcebergType, json_value: Any) -> str:
    if not isinstance(json_value, str):
        raise _value_error(value_type, json_value, "expected a string")
    return json_value


def _uuid_from_json(value_type: IcebergType, json_value: Any) -> uuid.UUID:
    text = _text(value_type, json_value)
    if _UUID_PATTERN.fullmatch(text) is None:
        raise _value_error(value_type, json_value, "expected 32 hex digits in five groups")
    return uuid.UUID(text)


_PARSED: Final[Mapping[str, Callable[[IcebergType, Any], Any]]] = {
    "boolean": _boolean_from_json,
    "integer": _integer_from_json,
    "floating": _float_from_json,
    "date": lambda kind, json_value: civil.parse_date(_text(kind, json_value)),
    "time": lambda kind, json_value: _in_units(
        kind, civil.parse_time(_text(kind, json_value)), json_value
    ),
    "timestamp": _timestamp_from_json,
    "string": _text,
    "uuid": _uuid_from_json,
    "binary": lambda kind, json_value: bytes.fromhex(_text(kind, json_value)),
}


def _value_error(value_type: IcebergType, json_value: Any, why: str) -> InvalidFormatError:
    return InvalidFormatError(f"{json_value!r} is not a JSON value of type {value_type}: {why}")
