"""64-bit Roaring bitmaps in the portable format of deletion vectors (rules 235, 247, 248).

The bits themselves are pyroaring's work; here is what the bytes have to look like: a count, then
for each key (the high 32 bits) in ascending order a 32-bit bitmap of containers.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pyroaring import BitMap64

_NO_RUNS = 12346
_SOME_RUNS = 12347
_OFFSETS_FROM = 4
_ARRAY_MAX = 4096
_BITMAP_BYTES = 8192
_MAX_KEY = 2**31 - 1


def bitmap_to_bytes(positions: Iterable[int]) -> bytes:
    """The bytes of a set of positions of 0 to 2^63-1, with containers chosen as Java does."""
    bitmap = BitMap64(positions)
    bitmap.run_optimize()
    vector: bytes = bitmap.serialize()
    return b"".join(_as_java(vector))


def bitmap_from_bytes(vector: bytes) -> BitMap64:
    """The positions in the bytes of a bitmap; ValueError says what is wrong with them."""
    cardinality = 0
    end = 8
    for bitmap in _bitmaps(vector):
        end = bitmap.end
        for container in bitmap.containers:
            container.check(vector)
            cardinality += container.cardinality
    if end != len(vector):
        raise ValueError(f"{len(vector) - end} bytes follow the last bitmap")
    positions = BitMap64.deserialize(vector)
    if len(positions) != cardinality:
        raise ValueError(f"{cardinality} positions are announced, {len(positions)} are there")
    return positions


@dataclass(slots=True)
class _Container:
    """65 536 positions: where their bytes are, and how they are kept."""

    key: int
    cardinality: int
    is_run: bool
    start: int
    end: int

    def check(self, data: bytes) -> None:
        payload = data[self.start : self.end]
        if self.is_run:
            self._check_runs(_shorts(payload[2:]))
        elif self.cardinality <= _ARRAY_MAX:
            values = _shorts(payload)
            if tuple(sorted(set(values))) != values:
                raise ValueError(f"the positions of container {self.key} are not in order")
        else:
            found = int.from_bytes(payload, "little").bit_count()
            if found != self.cardinality:
                raise ValueError(
                    f"container {self.key} announces {self.cardinality} positions and has {found}"
                )

    def _check_runs(self, numbers: tuple[int, ...]) -> None:
        last, total = -1, 0
        for start, more in zip(numbers[::2], numbers[1::2], strict=True):
            if start <= last or start + more > 0xFFFF:
                raise ValueError(f"the runs of container {self.key} are not in order")
            last = start + more
            total += more + 1
        if total != self.cardinality:
            raise ValueError(
                f"container {self.key} announces {self.cardinality} positions and has {total}"
            )


@dataclass(slots=True)
class _Bitmap:
    key: int
    containers: list[_Container]
    start: int
    end: int


def _bitmaps(data: bytes) -> Iterator[_Bitmap]:
    """The 32-bit bitmaps of a vector; every byte that is looked at is known to be there."""
    (count,) = _unpack("<Q", data, 0)
    at, last_key = 8, -1
    for _ in range(count):
        (key,) = _unpack("<I", data, at)
        if key <= last_key:
            raise ValueError(f"the key {key} follows {last_key}; keys must ascend")
        if key > _MAX_KEY:
            raise ValueError(f"the key {key} makes positions of more than 63 bits")
        containers, end = _containers(data, at + 4)
        yield _Bitmap(key, containers, at, end)
        at, last_key = end, key


def _containers(data: bytes, at: int) -> tuple[list[_Container], int]:
    (cookie,) = _unpack("<I", data, at)
    at += 4
    if cookie == _NO_RUNS:
        (count,) = _unpack("<I", data, at)
        at += 4
        if count > 1 << 16:
            raise ValueError(f"a bitmap has at most 65536 containers, found {count}")
        flags, has_offsets = b"", True
    elif cookie & 0xFFFF == _SOME_RUNS:
        count = (cookie >> 16) + 1
        width = (count + 7) // 8
        _need(data, at, width)
        flags, has_offsets = data[at : at + width], count >= _OFFSETS_FROM
        at += width
    else:
        raise ValueError(f"the bitmap starts with the unknown cookie {cookie}")
    _need(data, at, 4 * count)
    heads = _shorts(data[at : at + 4 * count])
    at += 4 * count + (4 * count if has_offsets else 0)
    containers = []
    last_key = -1
    for position, (key, more) in enumerate(zip(heads[::2], heads[1::2], strict=True)):
        if key <= last_key:
            raise ValueError(f"the container {key} follows {last_key}; containers must ascend")
        last_key = key
        is_run = bool(flags) and bool(flags[position // 8] >> position % 8 & 1)
        if is_run:
            (runs,) = _unpack("<H", data, at)
            size = 2 + 4 * runs
        else:
            size = 2 * (more + 1) if more < _ARRAY_MAX else _BITMAP_BYTES
        _need(data, at, size)
        containers.append(_Container(key, more + 1, is_run, at, at + size))
        at += size
    return containers, at


def _as_java(vector: bytes) -> Iterator[bytes]:
    """The vector with runs made into arrays where both take the same bytes, as Java has it."""
    yield vector[:8]
    for bitmap in _bitmaps(vector):
        if any(map(_is_tie, bitmap.containers)):
            yield struct.pack("<I", bitmap.key)
            yield from _with_arrays(vector, bitmap.containers)
        else:
            yield vector[bitmap.start : bitmap.end]


def _is_tie(container: _Container) -> bool:
    return container.is_run and container.end - container.start == 2 * container.cardinality


def _with_arrays(data: bytes, containers: list[_Container]) -> Iterator[bytes]:
    runs = [container.is_run and not _is_tie(container) for container in containers]
    count = len(containers)
    payloads = [
        _run_as_array(data[one.start : one.end]) if _is_tie(one) else data[one.start : one.end]
        for one in containers
    ]
    header = b""
    if any(runs):
        flags = sum(1 << position for position, is_run in enumerate(runs) if is_run)
        header += struct.pack("<I", _SOME_RUNS | (count - 1) << 16)
        header += flags.to_bytes((count + 7) // 8, "little")
    else:
        header += struct.pack("<II", _NO_RUNS, count)
    header += b"".join(struct.pack("<HH", one.key, one.cardinality - 1) for one in containers)
    if not any(runs) or count >= _OFFSETS_FROM:
        at = len(header) + 4 * count
        for payload in payloads:
            header += struct.pack("<I", at)
            at += len(payload)
    yield header
    yield from payloads


def _run_as_array(payload: bytes) -> bytes:
    numbers = _shorts(payload[2:])
    values = [
        value
        for start, more in zip(numbers[::2], numbers[1::2], strict=True)
        for value in range(start, start + more + 1)
    ]
    return struct.pack(f"<{len(values)}H", *values)


def _shorts(data: bytes) -> tuple[int, ...]:
    return struct.unpack(f"<{len(data) // 2}H", data)


def _unpack(layout: str, data: bytes, at: int) -> tuple[int, ...]:
    _need(data, at, struct.calcsize(layout))
    return struct.unpack_from(layout, data, at)


def _need(data: bytes, at: int, size: int) -> None:
    if at + size > len(data):
        raise ValueError(f"the bitmap ends at byte {len(data)}, {at + size} were announced")
