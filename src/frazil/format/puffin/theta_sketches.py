"""Theta sketches as Puffin files hold them: how many distinct values a column has (rule 244).

A sketch is the smallest hashes of a set, below a limit (theta). The bytes are those of Apache
DataSketches, https://datasketches.apache.org/docs/Theta/ThetaSketches.html. They come plain
(serial version 3) or with packed differences (version 4), which older readers do not know.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from frazil.errors import InvalidDataFileError

_PLAIN, _PACKED = 3, 4
_FAMILY_COMPACT: Final = 3
_EMPTY, _COMPACT, _ORDERED, _SINGLE = 4, 8, 16, 32
_READ_ONLY: Final = 2
_MAX_THETA: Final = 2**63 - 1
_SEED_HASH: Final = 0x93CC
"""Of the default seed, 9001."""
_AT_ONCE: Final = 8


@dataclass(frozen=True, slots=True)
class ThetaSketch:
    """A compact, ordered sketch.

    Attributes:
        hashes: of values, ascending; all are below `theta`.
        theta: the limit; `2**63 - 1` where every value's hash is there.
        is_empty: whether no value was ever added.
    """

    hashes: tuple[int, ...]
    theta: int = _MAX_THETA
    is_empty: bool = False

    @property
    def estimate(self) -> float:
        """How many distinct values there are; exact where the limit was not lowered."""
        return len(self.hashes) * (_MAX_THETA / self.theta)

    def to_bytes(self) -> bytes:
        """Return the bytes of serial version 3, which every reader knows."""
        flags = _READ_ONLY | _COMPACT | _ORDERED
        is_exact = self.theta == _MAX_THETA
        if self.is_empty:
            return _head(1, flags | _EMPTY)
        if is_exact and len(self.hashes) == 1:
            return _head(1, flags | _SINGLE) + struct.pack("<Q", self.hashes[0])
        count = struct.pack("<if", len(self.hashes), 1.0)
        limit = b"" if is_exact else struct.pack("<Q", self.theta)
        body = struct.pack(f"<{len(self.hashes)}Q", *self.hashes)
        return _head(2 if is_exact else 3, flags) + count + limit + body


def parse_theta_sketch(data: bytes, *, file: str | None = None) -> ThetaSketch:
    """Return the sketch that bytes of serial version 3 or 4 hold."""
    try:
        return _parse(data)
    except (struct.error, IndexError, ValueError) as error:
        raise InvalidDataFileError(f"not a compact theta sketch: {error}", file=file) from error


def _parse(data: bytes) -> ThetaSketch:
    longs, version, family, bits, count_bytes, flags, seed = struct.unpack_from("<6BH", data)
    longs &= 0x3F
    if family != _FAMILY_COMPACT or version not in (_PLAIN, _PACKED):
        raise ValueError(f"family {family}, serial version {version}")
    if flags & _EMPTY:
        return ThetaSketch((), is_empty=True)
    if seed != _SEED_HASH:
        raise ValueError(f"the seed's hash is {seed:#06x}, that of the default is {_SEED_HASH:#x}")
    if version == _PACKED:
        theta, at = (_long(data, 8), 16) if longs > 1 else (_MAX_THETA, 8)
        count = int.from_bytes(data[at : at + count_bytes], "little")
        packed = data[at + count_bytes :]
        return ThetaSketch(tuple(accumulate(_unpack_numbers(packed, count, bits))), theta)
    if longs == 1:
        return ThetaSketch((_long(data, 8),))
    (count,) = struct.unpack_from("<i", data, 8)
    theta, at = (_long(data, 16), 24) if longs > 2 else (_MAX_THETA, 16)
    return ThetaSketch(tuple(sorted(struct.unpack_from(f"<{count}Q", data, at))), theta)


def _unpack_numbers(data: bytes, count: int, bits: int) -> Iterator[int]:
    """The numbers of `bits` bits each, the highest bit first."""
    mask = (1 << bits) - 1
    # Eight of them end with a byte.
    for start in range(0, count, _AT_ONCE):
        some = min(_AT_ONCE, count - start)
        length = -(-some * bits // 8)
        block = data[start * bits // 8 :][:length]
        if len(block) != length:
            raise ValueError(f"{count} hashes of {bits} bits are announced, the bytes end before")
        number = int.from_bytes(block, "big") >> (length * 8 - some * bits)
        yield from (number >> (bits * place) & mask for place in range(some - 1, -1, -1))


def _long(data: bytes, offset: int) -> int:
    (value,) = struct.unpack_from("<Q", data, offset)
    return int(value)


def _head(longs: int, flags: int) -> bytes:
    return struct.pack("<6BH", longs, _PLAIN, _FAMILY_COMPACT, 0, 0, flags, _SEED_HASH)
