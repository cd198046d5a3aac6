"""Which statistics of a column go into manifests: ``write.metadata.metrics.*`` (SPEC rule 311)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import Final

from frazil.format.properties.metrics_mode import FULL, NONE, TRUNCATE_16, MetricsMode
from frazil.format.properties.table import METRICS_DEFAULT, METRICS_LIMIT, METRICS_OF_COLUMN
from frazil.format.schema import Schema
from frazil.format.types import NestedField, StructType
from frazil.format.types.inside import fields_inside

_MAX_CODE_POINT: Final = 0x10FFFF
_SURROGATES: Final = range(0xD800, 0xE000)


def metrics_modes(
    schema: Schema, properties: Mapping[str, str], *, sorted_ids: Collection[int] = ()
) -> dict[int, MetricsMode]:
    """The mode of every field, by id.

    Without an explicit default the first 100 columns get ``truncate(16)`` and the others none.
    Columns that the table is sorted by keep bounds even where the default would drop them.
    """
    if METRICS_DEFAULT.name in properties:
        modes = dict.fromkeys(schema.fields_by_id, METRICS_DEFAULT.of(properties))
    else:
        limit = METRICS_LIMIT.of(properties)
        first = set(islice(_in_priority(schema.as_struct()), limit))
        modes = {i: TRUNCATE_16 if i in first else NONE for i in schema.fields_by_id}
    for field_id in sorted_ids:
        if not modes.get(field_id, FULL).has_bounds:
            modes[field_id] = TRUNCATE_16
    for name, mode in METRICS_OF_COLUMN.by_column(properties).items():
        field = schema.field_or_none(name)
        if field is not None:
            modes[field.field_id] = mode
    return modes


def _in_priority(struct: StructType) -> Iterator[int]:
    """Leaves of this struct first, then those of each nested field in turn."""
    nested: list[NestedField] = []
    for field in struct.fields:
        if field.field_type.is_nested:
            nested.append(field)
        else:
            yield field.field_id
    for field in nested:
        yield from _in_priority(StructType(fields_inside(field.field_type)))


def truncate_string_down(value: str, length: int) -> str:
    """At most ``length`` code points that sort no later than the value."""
    return value[:length]


def truncate_string_up(value: str, length: int) -> str | None:
    """At most ``length`` code points that sort no earlier than the value, or None."""
    if len(value) <= length:
        return value
    for end in range(length, 0, -1):
        code = ord(value[end - 1]) + 1
        if code in _SURROGATES:
            code = _SURROGATES.stop
        if code <= _MAX_CODE_POINT:
            return value[: end - 1] + chr(code)
    return None


def truncate_bytes_up(value: bytes, length: int) -> bytes | None:
    """At most ``length`` bytes that sort no earlier than the value, or None."""
    if len(value) <= length:
        return value
    for end in range(length, 0, -1):
        if value[end - 1] < 0xFF:
            return value[: end - 1] + bytes([value[end - 1] + 1])
    return None
