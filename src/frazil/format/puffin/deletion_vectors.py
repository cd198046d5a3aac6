"""Deletion vectors: bytes of a `deletion-vector-v1` blob, and its positions (rules 245-250)."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable

from pyroaring import BitMap64

from frazil.errors import InvalidDataFileError, ValidationError

MAGIC = b"\xd1\xd3\x39\x64"
_FRAME = 4 + len(MAGIC) + 4
MAX_POSITION = 2**63 - 1


def deletion_vector_to_bytes(positions: Iterable[int]) -> bytes:
    """The blob of a set of row positions: length, magic, bitmap, CRC-32 (rules 246-248).

    As large as Java's: where a run and an array take the same bytes, Java chooses the array.
    """
    try:
        bitmap = BitMap64(positions)
    except (OverflowError, ValueError) as cause:
        raise ValidationError(f"a row position is not within 0 to 2^63-1: {cause}") from cause
    if bitmap and bitmap.max() > MAX_POSITION:
        raise ValidationError(f"the row position {bitmap.max()} is above 2^63-1")
    bitmap.run_optimize()
    body = MAGIC + bitmap.serialize()
    return struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))


def deletion_vector_from_bytes(
    data: bytes, *, file: str | None = None, cardinality: int | None = None
) -> BitMap64:
    """The row positions in the bytes of a blob, as an ordered set of integers (rules 246-250).

    `cardinality` is the number of positions that the manifest states, to be checked.
    """

    def damage(reason: str) -> InvalidDataFileError:
        return InvalidDataFileError(f"the deletion vector is broken: {reason}", file=file)

    if len(data) < _FRAME:
        raise damage(f"it has {len(data)} bytes, at least {_FRAME} are needed")
    (length,) = struct.unpack_from(">I", data)
    if length != len(data) - 8:
        raise damage(f"it announces {length} bytes and has {len(data) - 8}")
    body = data[4:-4]
    if not body.startswith(MAGIC):
        raise damage(f"its magic is {body[:4].hex()}, expected {MAGIC.hex()}")
    (checksum,) = struct.unpack(">I", data[-4:])
    if checksum != zlib.crc32(body):
        raise damage(f"its checksum is {zlib.crc32(body):08x}, it states {checksum:08x}")
    try:
        positions = BitMap64.deserialize(body[len(MAGIC) :])
    except (ValueError, IndexError) as cause:
        raise damage(str(cause)) from cause
    if positions and positions.max() > MAX_POSITION:
        raise damage(f"its position {positions.max()} has more than 63 bits")
    if cardinality is not None and len(positions) != cardinality:
        raise damage(f"it has {len(positions)} positions, the manifest states {cardinality}")
    return positions
