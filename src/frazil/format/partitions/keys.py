"""What tells partitions apart (rule 180)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

_CANONICAL_NAN = struct.pack(">Q", 0x7FF8000000000000)


def partition_key(values: Sequence[Any]) -> tuple[Any, ...]:
    """A partition tuple as a key that is equal where the partitions are (rule 180).

    Floats compare by their bits with one NaN: `-0.0` and `0.0` are two partitions, NaN is one.
    """
    return tuple(_float_bits(value) if isinstance(value, float) else value for value in values)


def _float_bits(value: float) -> bytes:
    return _CANONICAL_NAN if value != value else struct.pack(">d", value)
