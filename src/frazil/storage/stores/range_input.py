"""A file of a store that answers ranges, as a seekable stream."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from typing import BinaryIO, Final, cast

_AHEAD: Final = 64 << 10
"""So many bytes are asked for at least: a footer is mostly shorter."""
_FORWARD: Final = 16 << 20
"""So many are read ahead of a stream whose end is known."""


class RangeInput(io.RawIOBase):
    """Reads by offset and length.

    Args:
        size: of the file in bytes; it does not change.
        read_range: takes offset and length; it returns fewer bytes only at the end.
    """

    def __init__(self, size: int, read_range: Callable[[int, int], bytes]) -> None:
        super().__init__()
        self._size = size
        self._read_range = read_range
        self._place = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise OSError(f"cannot seek to {base + offset}, before the beginning of the file")
        self._place = base + offset
        return self._place

    def tell(self) -> int:
        return self._place

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        length = min(len(buffer), max(0, self._size - self._place))
        data = self._read_range(self._place, length) if length else b""
        buffer[: len(data)] = data
        self._place += len(data)
        return len(data)


def tail_input(size: int, tail: bytes, read_range: Callable[[int, int], bytes]) -> BinaryIO:
    """Return a buffered stream over a file whose last bytes are known.

    What lies before them is read ahead, since each request takes longer than many bytes do.
    """
    ahead: tuple[int, bytes] = (0, b"")

    def read(offset: int, length: int) -> bytes:
        nonlocal ahead
        start, kept = ahead
        if not start <= offset < start + len(kept):
            wanted = min(max(length, _FORWARD), size - len(tail) - offset)
            ahead = start, kept = offset, read_range(offset, wanted)
        return kept[offset - start : offset - start + length]

    return input_of_known_end(size, tail, read)


def input_of_known_end(size: int, end: bytes, read_range: Callable[[int, int], bytes]) -> BinaryIO:
    """Return a buffered stream over a file whose last bytes are known: those before are read."""
    known_from = size - len(end)

    def read(offset: int, length: int) -> bytes:
        if offset >= known_from:
            return end[offset - known_from : offset - known_from + length]
        # Fewer bytes than were asked for are asked for again by the stream.
        return read_range(offset, min(length, known_from - offset))

    return range_input(size, read)


def range_input(size: int, read_range: Callable[[int, int], bytes]) -> BinaryIO:
    """Return a buffered stream over a file that is read by ranges."""
    return cast(BinaryIO, io.BufferedReader(RangeInput(size, read_range), _AHEAD))
