"""A file whose size is known, opened for its footer."""

from __future__ import annotations

from typing import BinaryIO, Final

from frazil.errors import StorageError
from frazil.storage.files import FileIO
from frazil.storage.stores.range_input import range_input

_TAIL_BYTES: Final = 128 << 10
"""So much of a file's end is asked for at once: its footer is mostly there, of a small file all."""


def footer_input(io: FileIO, path: str, size: int, *, tail_bytes: int = _TAIL_BYTES) -> BinaryIO:
    """Open a file of a store; one request brings its footer.

    Args:
        tail_bytes: so much of its end that request asks for.

    Raises:
        StorageError: its end cannot be read, or is not there.
    """
    start = max(0, size - tail_bytes)
    tail = io.read_range(path, offset=start, length=size - start)
    if len(tail) != size - start:
        raise StorageError(f"{path} ends at {start + len(tail)} bytes, and not at {size}")

    def read_range(offset: int, length: int) -> bytes:
        if offset >= start:
            return tail[offset - start : offset - start + length]
        return io.read_range(path, offset=offset, length=length)

    return range_input(size, read_range)
