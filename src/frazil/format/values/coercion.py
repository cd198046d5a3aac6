"""From what users write to internal values, and back to what Python users expect."""

from __future__ import annotations

import math
import re
import struct
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal, DecimalException
from numbers import Integral, Real
from operator import index
from typing import Any, Final

from frazil.errors import UnsupportedError, ValidationError
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
from frazil.format.values.decimals import at_scale, decimal_from_text, with_positive_zero
from frazil.format.values.zones import PROCESS_ZONE, offset_at, zone_of

_EPOCH = datetime(1970, 1, 1)
_EPOCH_DATE = date(1970, 1, 1)
_WHOLE_NUMBER = re.compile(r"[+-]?\d+", re.ASCII)
_NUMBER = re.compile(
    r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|inf|infinity)", re.ASCII | re.IGNORECASE
)


def coerce(value_type: IcebergType, value: Any, *, zone: str | tzinfo = UTC) -> Any:
    """The internal value of what a user wrote for a column; None stays None.

    Accepted are the Python values of the type, its ISO text (``T`` or a space between date and
    time), numbers as text, a whole float or decimal for an integer, and internal values. Floats
    for a float column are rounded to 32 bits, as Spark does; nothing else is ever rounded.
    `zone`: the zone of text and dates for a timestamp with zone; a datetime without a zone is local
    time of the process, as in Python and PySpark.
    """
    if value is None:
        return None
    try:
        return _coerce(value_type, value, zone)
    except ValidationError:
        raise
    except (ValueError, TypeError, OverflowError, DecimalException, AttributeError) as error:
        raise _value_error(value_type, value, str(error)) from error


def to_python(value_type: IcebergType, value: Any) -> Any:
    """The Python object of an internal value: date, time, datetime (of zone UTC), dict, list.

    Nanosecond timestamps stay the integers they are, since datetime ends at microseconds. Structs
    and maps become dicts, lists lists.
    """
    if value is None:
        return None
    form = form_of(value_type)
    try:
        match form.meaning:
            case "date":
                return _EPOCH_DATE + timedelta(days=value)
            case "time":
                return (_EPOCH + timedelta(microseconds=value)).time()
            case "timestamp" if form.unit == civil.NANOS_PER_MICRO:
                moment = _EPOCH + timedelta(microseconds=value)
                return moment.replace(tzinfo=UTC) if form.zoned else moment
        match value_type:
            case StructType(fields):
                return {
                    field.name: to_python(field.field_type, item)
                    for field, item in zip(fields, value, strict=True)
                }
            case ListType():
                return [to_python(value_type.element_type, item) for item in value]
            case MapType():
                return {
                    _hashable(to_python(value_type.key_type, key)): to_python(
                        value_type.value_type, item
                    )
                    for key, item in value
                }
    except OverflowError as error:
        raise ValidationError(
            f"{value} as {value_type} lies outside of the years 1 to 9999 that Python's datetime "
            "holds"
        ) from error
    return value


def _coerce(value_type: IcebergType, value: Any, zone: str | tzinfo) -> Any:
    meaning = form_of(value_type).meaning
    if meaning == "timestamp":
        return _timestamp(value_type, value, zone)
    if meaning in _COERCED:
        return _COERCED[meaning](value_type, value)
    match value_type:
        case DecimalType():
            return _decimal(value_type, value)
        case StructType():
            return _struct(value_type, value, zone)
        case ListType():
            if isinstance(value, str | bytes) or not isinstance(value, Sequence):
                raise _value_error(value_type, value, "expected a list")
            return tuple(coerce(value_type.element_type, item, zone=zone) for item in value)
        case MapType():
            pairs = value.items() if isinstance(value, Mapping) else value
            return tuple(
                (
                    coerce(value_type.key_type, key, zone=zone),
                    coerce(value_type.value_type, item, zone=zone),
                )
                for key, item in pairs
            )
        case UnknownType():
            raise _value_error(value_type, value, "only null is possible")
    raise UnsupportedError(f"a Python value cannot be made into one of type {value_type}")


def _boolean(value_type: IcebergType, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    raise _value_error(value_type, value, "expected True or False")


def _integer(value_type: IcebergType, value: Any) -> int:
    if isinstance(value, bool):
        raise _value_error(value_type, value, "expected a whole number")
    if isinstance(value, str):
        if _WHOLE_NUMBER.fullmatch(value.strip()) is None:
            raise _value_error(value_type, value, "expected a whole number")
        number = int(value)
    elif isinstance(value, Integral):
        number = int(value)
    elif isinstance(value, Real | Decimal):
        if not math.isfinite(value) or value != math.trunc(value):
            raise _value_error(value_type, value, "it would lose its fraction")
        number = index(math.trunc(value))
    else:
        raise _value_error(value_type, value, "expected a whole number")
    form = form_of(value_type)
    if not form.holds(number):
        limit = 1 << (form.bits - 1)
        raise _value_error(value_type, value, f"the range is {-limit} to {limit - 1}")
    return number


def _float_value(value_type: IcebergType, value: Any) -> float:
    if isinstance(value, str):
        if _NUMBER.fullmatch(value.strip()) is None:
            raise _value_error(value_type, value, "expected a number")
    elif isinstance(value, bool) or not isinstance(value, Real | Decimal):
        raise _value_error(value_type, value, "expected a number")
    number = float(value)
    if form_of(value_type).carrier == "float" and math.isfinite(number):
        # struct raises OverflowError past the largest float.
        number = struct.unpack("<f", struct.pack("<f", number))[0]
    if math.isinf(number) and _is_finite(value):
        raise _value_error(value_type, value, "it is out of range")
    return number


def _is_finite(value: Any) -> bool:
    if isinstance(value, str):
        return "inf" not in value.lower()
    return isinstance(value, Integral) or math.isfinite(value)


def _decimal(value_type: DecimalType, value: Any) -> Decimal:
    if isinstance(value, bool):
        raise _value_error(value_type, value, "expected a number")
    if isinstance(value, str):
        if _NUMBER.fullmatch(value.strip()) is None:
            raise _value_error(value_type, value, "expected a number")
        number = decimal_from_text(value)
    elif isinstance(value, Decimal):
        number = value
    elif isinstance(value, Integral):
        number = Decimal(int(value))
    elif isinstance(value, Real):
        # The shortest text of a float is what the user wrote, its exact value is not.
        number = Decimal(repr(float(value)))
    else:
        raise _value_error(value_type, value, "expected a number")
    if not number.is_finite():
        raise _value_error(value_type, value, "it is not a finite number")
    if number and number.adjusted() >= value_type.precision - value_type.scale:
        raise _value_error(value_type, value, "it has too many digits before the point")
    return with_positive_zero(at_scale(number, value_type.scale))


def _date(value_type: IcebergType, value: Any) -> int:
    if isinstance(value, datetime):
        if value.tzinfo is not None or value != datetime(value.year, value.month, value.day):
            raise _value_error(value_type, value, "it would lose its time of day")
        return (value.date() - _EPOCH_DATE).days
    if isinstance(value, date):
        return (value - _EPOCH_DATE).days
    if isinstance(value, str):
        nanos, offset = civil.parse_timestamp(value)
        if nanos % civil.NANOS_PER_DAY or offset is not None:
            raise _value_error(value_type, value, "it would lose its time of day")
        return _in_range(value_type, nanos // civil.NANOS_PER_DAY, value)
    return _internal(value_type, value)


def _time(value_type: IcebergType, value: Any) -> int:
    if isinstance(value, time):
        if value.tzinfo is not None:
            raise _value_error(value_type, value, "the column has no zone")
        seconds = (value.hour * 60 + value.minute) * 60 + value.second
        return seconds * 1_000_000 + value.microsecond
    if isinstance(value, str):
        return _in_units(value_type, civil.parse_time(value), value)
    micros = _internal(value_type, value)
    if not 0 <= micros < civil.MICROS_PER_DAY:
        raise _value_error(value_type, value, "it is not within a day of microseconds")
    return micros


def _timestamp(value_type: IcebergType, value: Any, zone: str | tzinfo) -> int:
    if not isinstance(value, str | date):
        return _internal(value_type, value)
    zoned = form_of(value_type).zoned
    if isinstance(value, datetime):
        nanos, offset = _datetime_nanos(value)
    elif isinstance(value, date):
        nanos, offset = (value - _EPOCH_DATE).days * civil.NANOS_PER_DAY, None
    else:
        nanos, offset = civil.parse_timestamp(value)
    if not zoned and offset is not None:
        raise _value_error(
            value_type, value, "it has an offset from UTC, which the column does not; leave it out"
        )
    if zoned:
        if offset is None:
            wall_zone = PROCESS_ZONE if isinstance(value, datetime) else zone_of(zone)
            fold = getattr(value, "fold", 0)
            offset = offset_at(wall_zone, nanos // civil.NANOS_PER_SECOND, fold=fold)
        nanos -= offset * civil.NANOS_PER_SECOND
    return _in_range(value_type, _in_units(value_type, nanos, value), value)


def _datetime_nanos(value: datetime) -> tuple[int, int | None]:
    """Nanoseconds of the wall clock, and the offset in seconds where the value has one."""
    since = value.replace(tzinfo=None) - _EPOCH
    micros = (since.days * civil.SECONDS_PER_DAY + since.seconds) * 1_000_000 + since.microseconds
    # A pandas Timestamp is a datetime with three more digits.
    nanos = micros * civil.NANOS_PER_MICRO + getattr(value, "nanosecond", 0)
    offset = value.utcoffset()
    return nanos, None if offset is None else int(offset.total_seconds())


def _string(value_type: IcebergType, value: Any) -> str:
    if not isinstance(value, str):
        raise _value_error(value_type, value, "expected a string")
    value.encode("utf-8")
    return str(value)


def _uuid(value_type: IcebergType, value: Any) -> uuid.UUID:
    if isinstance(value, uuid.UUID):
        return value
    if isinstance(value, str):
        return uuid.UUID(value.strip())
    if isinstance(value, bytes | bytearray | memoryview) and len(bytes(value)) == 16:
        return uuid.UUID(bytes=bytes(value))
    raise _value_error(value_type, value, "expected a UUID, its text or its 16 bytes")


def _binary(value_type: IcebergType, value: Any) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise _value_error(value_type, value, "expected bytes")
    raw = bytes(value)
    if isinstance(value_type, FixedType) and len(raw) != value_type.length:
        raise _value_error(value_type, value, f"it has {len(raw)} bytes")
    return raw


def _struct(value_type: StructType, value: Any, zone: str | tzinfo) -> tuple[Any, ...]:
    if isinstance(value, Mapping):
        surplus = set(value) - {field.name for field in value_type.fields}
        if surplus:
            raise _value_error(
                value_type, value, f"there are no fields {sorted(map(str, surplus))}"
            )
        items = [value.get(field.name) for field in value_type.fields]
    elif isinstance(value, tuple | list) and len(value) == len(value_type.fields):
        items = list(value)
    else:
        raise _value_error(
            value_type, value, "expected a dict by field name or a tuple of all fields"
        )
    return tuple(
        coerce(field.field_type, item, zone=zone)
        for field, item in zip(value_type.fields, items, strict=True)
    )


def _internal(value_type: IcebergType, value: Any) -> int:
    """A date or time that is given as the integer it is kept as."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise _value_error(value_type, value, "expected its ISO text or Python's own type for it")
    return _in_range(value_type, int(value), value)


def _in_range(value_type: IcebergType, number: int, value: Any) -> int:
    if not form_of(value_type).holds(number):
        raise _value_error(value_type, value, "it is out of range")
    return number


def _in_units(value_type: IcebergType, nanos: int, value: Any) -> int:
    units, rest = divmod(nanos, form_of(value_type).unit)
    if rest:
        raise _value_error(value_type, value, "it is finer than a microsecond")
    return units


_COERCED: Final[Mapping[str, Callable[[IcebergType, Any], Any]]] = {
    "boolean": _boolean,
    "integer": _integer,
    "floating": _float_value,
    "date": _date,
    "time": _time,
    "string": _string,
    "uuid": _uuid,
    "fixed": _binary,
    "binary": _binary,
    "wkb": _binary,
}


def _hashable(key: Any) -> Any:
    if isinstance(key, dict):
        return tuple((name, _hashable(item)) for name, item in key.items())
    return tuple(_hashable(item) for item in key) if isinstance(key, list) else key


def _value_error(value_type: IcebergType, value: Any, why: str) -> ValidationError:
    return ValidationError(f"{value!r} is not possible as {value_type}: {why}")
