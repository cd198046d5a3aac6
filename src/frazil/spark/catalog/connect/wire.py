"""Messages of protocol buffers as bytes: their fields, and some of them replaced.

Libraries refuse messages that are nested deeper than a hundred times, as plans are. Nothing is made
here of a message but what is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from frazil.errors import ValidationError

Data = bytes | memoryview

_NUMBER: Final = 0
_BYTES: Final = 2
_WIDTHS: Final = {1: 8, 5: 4}


@dataclass(frozen=True, slots=True)
class WireField:
    """A field of a message, which may come several times.

    Attributes:
        number: of the field.
        begin: where its tag is.
        start, stop: where its value is.
        is_bytes: its value is a text, bytes or another message.
    """

    number: int
    begin: int
    start: int
    stop: int
    is_bytes: bool


def fields_of(data: Data) -> Iterator[WireField]:
    """Yield the fields of a message.

    Raises:
        ValidationError: it is none.
    """
    at = 0
    while at < len(data):
        begin = at
        key, at = number_at(data, at)
        start, kind = at, key & 7
        if kind == _NUMBER:
            at = number_at(data, at)[1]
        elif kind == _BYTES:
            size, start = number_at(data, at)
            at = start + size
        elif kind in _WIDTHS:
            at += _WIDTHS[kind]
        else:
            raise ValidationError(f"a request has a field of the kind {kind}, which is none")
        if at > len(data):
            raise ValidationError("a request ends within a field")
        yield WireField(key >> 3, begin, start, at, kind == _BYTES)


def number_at(data: Data, at: int) -> tuple[int, int]:
    """Return the number that stands at a place, and what follows it."""
    found = shift = 0
    while True:
        if at >= len(data):
            raise ValidationError("a request ends within a number")
        byte = data[at]
        at += 1
        found |= (byte & 0x7F) << shift
        if byte < 0x80:
            return found, at
        shift += 7


def field_bytes(number: int, value: Data) -> bytes:
    """Return a field whose value is bytes."""
    return _number(number << 3 | _BYTES) + _number(len(value)) + bytes(value)


def values_of(data: Data, kind: Any) -> dict[str, list[Any]]:
    """Return the values of a message's fields by name: numbers, and bytes.

    Args:
        kind: the descriptor of the message.
    """
    found: dict[str, list[Any]] = {}
    for each in fields_of(data):
        known = kind.fields_by_number.get(each.number)
        if known is not None:
            value: Any = bytes(data[each.start : each.stop])
            if not each.is_bytes:
                value = number_at(data, each.start)[0]
            found.setdefault(known.name, []).append(value)
    return found


def _number(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
