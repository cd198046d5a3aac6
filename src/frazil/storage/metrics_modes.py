"""Which statistics of a column go into manifests: ``write.metadata.metrics.*`` (SPEC rule 311)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final, Literal

from frazil.errors import ConfigurationError
from frazil.format.schema import Schema
from frazil.format.types import NestedField, StructType

DEFAULT_KEY: Final = "write.metadata.metrics.default"
COLUMN_PREFIX: Final = "write.metadata.metrics.column."
LIMIT_KEY: Final = "write.metadata.metrics.max-inferred-column-defaults"

_TRUNCATE = re.compile(r"truncate\((\d+)\)")
_MAX_CODE_POINT: Final = 0x10FFFF
_SURROGATES: Final = range(0xD800, 0xE000)


@dataclass(frozen=True, slots=True)
class MetricsMode:
    """What is kept of a column: nothing, counts, or counts and bounds.

    Attributes:
        kind: ``none``, ``counts``, ``truncate`` or ``full``.
        length: of truncated bounds, in code points or bytes; 0 for the other kinds.
    """

    kind: Literal["none", "counts", "truncate", "full"]
    length: int = 0

    @property
    def has_bounds(self) -> bool:
        """Whether lower and upper bounds are kept."""
        return self.kind in ("truncate", "full")


NONE: Final = MetricsMode("none")
FULL: Final = MetricsMode("full")
TRUNCATE_16: Final = MetricsMode("truncate", 16)


def parse_metrics_mode(text: str, *, key: str) -> MetricsMode:
    """The mode of a property's value.

    Raises:
        ConfigurationError: the value is no mode.
    """
    lowered = text.strip().lower()
    match = _TRUNCATE.fullmatch(lowered)
    if match and int(match.group(1)) > 0:
        return MetricsMode("truncate", int(match.group(1)))
    match lowered:
        case "none":
            return NONE
        case "counts":
            return MetricsMode("counts")
        case "full":
            return FULL
        case _:
            raise ConfigurationError(
                f"{key} is {text!r}: it must be none, counts, truncate(length) or full"
            )


def metrics_modes(
    schema: Schema, properties: Mapping[str, str], *, sorted_ids: Collection[int] = ()
) -> dict[int, MetricsMode]:
    """The mode of every field, by id.

    Without an explicit default the first 100 columns get ``truncate(16)`` and the others none.
    Columns that the table is sorted by keep bounds even where the default would drop them.

    Raises:
        ConfigurationError: a property is no mode or no number.
    """
    chosen = properties.get(DEFAULT_KEY)
    if chosen is not None:
        default = parse_metrics_mode(chosen, key=DEFAULT_KEY)
        modes = dict.fromkeys(schema.fields_by_id, default)
    else:
        first = set(islice(_in_priority(schema.as_struct()), _limit(properties)))
        modes = {i: TRUNCATE_16 if i in first else NONE for i in schema.fields_by_id}
    for field_id in sorted_ids:
        if not modes.get(field_id, FULL).has_bounds:
            modes[field_id] = TRUNCATE_16
    for key, value in properties.items():
        if key.startswith(COLUMN_PREFIX):
            field = schema.field_or_none(key.removeprefix(COLUMN_PREFIX))
            if field is not None:
                modes[field.field_id] = parse_metrics_mode(value, key=key)
    return modes


def _limit(properties: Mapping[str, str]) -> int:
    text = properties.get(LIMIT_KEY, "100")
    if not text.isdigit():
        raise ConfigurationError(f"{LIMIT_KEY} is {text!r}: it must be a number of columns")
    return int(text)


def _in_priority(struct: StructType) -> Iterator[int]:
    """Leaves of this struct first, then those of each nested field in turn."""
    nested: list[NestedField] = []
    for field in struct.fields:
        if field.field_type.is_nested:
            nested.append(field)
        else:
            yield field.field_id
    for field in nested:
        yield from _in_priority(StructType(getattr(field.field_type, "fields", ())))


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
