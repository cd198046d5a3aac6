"""The Avro object container: header and blocks decompressed.

A manifest's blocks are decompressed here, outside of any decoder: the codecs of the interpreter are
faster than the decoders' own, they release the interpreter lock, and the records can be
handed to any decoder under a header of our own.
"""

from __future__ import annotations

import bz2
import json
import lzma
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from frazil.errors import InvalidManifestError, UnsupportedError

MAGIC = b"Obj\x01"
ENCRYPTED_MAGIC = b"AGS1"
SYNC_SIZE = 16
_SYNC = b"frazil-in-memory"
_MAX_VARINT_BYTES = 10
# A thousand columns with the same metrics in every file come to 42 times.
_ALWAYS_ALLOWED = 1 << 26
_LARGEST_RATIO = 100
_STEP = 1 << 20
_UNPACKERS: Mapping[str, Callable[[], Any]] = {
    "deflate": partial(zlib.decompressobj, wbits=-zlib.MAX_WBITS),
    "bzip2": bz2.BZ2Decompressor,
    "xz": partial(lzma.LZMADecompressor, memlimit=_ALWAYS_ALLOWED),
}


@dataclass(frozen=True, slots=True)
class AvroContainer:
    """A container file, decompressed.

    Attributes:
        metadata: the header's key-value pairs, `avro.schema` among them.
        count: the number of records in all blocks.
        blocks: the records, one after the other, in Avro's binary encoding.
        packed: each block as the file holds it, compressed.
        counts: the number of records in each block.
    """

    metadata: Mapping[str, bytes]
    count: int
    blocks: tuple[bytes, ...]
    packed: tuple[memoryview, ...] = ()
    counts: tuple[int, ...] = ()

    @property
    def codec(self) -> str:
        """Avro's name of the codec of the packed blocks."""
        return self.metadata.get("avro.codec", b"null").decode("ascii")


def read_container(data: bytes, *, file: str) -> AvroContainer:
    """Read a container file; `file` names it in errors."""
    if data[:4] == ENCRYPTED_MAGIC:
        raise UnsupportedError(
            f"the manifest {file} is encrypted (AES GCM stream), which this release cannot read"
        )
    if data[:4] != MAGIC:
        raise InvalidManifestError(
            f"not an Avro file: it starts with {data[:4]!r}, not {MAGIC!r}", file=file
        )
    try:
        metadata, position = _read_header(data)
        sync = data[position : position + SYNC_SIZE]
        codec = metadata.get("avro.codec", b"null").decode("ascii")
        bodies: list[bytes] = []
        packed: list[memoryview] = []
        counts: list[int] = []
        room = most = max(_ALWAYS_ALLOWED, _LARGEST_RATIO * len(data))
        for records, block in _blocks(data, position + SYNC_SIZE, sync):
            body = _decompress(codec, block, room)
            if len(body) > room:
                raise ValueError(f"its {len(data)} bytes unpack to more than {most} bytes")
            room -= len(body)
            if records > len(body):
                raise ValueError(f"a block of {len(body)} bytes states {records} records")
            bodies.append(body)
            packed.append(block)
            counts.append(records)
    except UnsupportedError as error:
        raise UnsupportedError(f"{error} ({file})") from None
    except (ValueError, OSError, EOFError, zlib.error, lzma.LZMAError, pa.ArrowException) as error:
        raise InvalidManifestError(f"damaged Avro container: {error}", file=file) from error
    return AvroContainer(metadata, sum(counts), tuple(bodies), tuple(packed), tuple(counts))


def joined_container(containers: Sequence[AvroContainer]) -> AvroContainer:
    """Containers of one schema as one; its blocks are packed only where all have one codec."""
    if len(containers) == 1:
        return containers[0]
    is_packed = len({container.codec for container in containers}) == 1
    return AvroContainer(
        containers[0].metadata,
        sum(container.count for container in containers),
        tuple(block for container in containers for block in container.blocks),
        tuple(block for container in containers for block in container.packed) if is_packed else (),
        tuple(count for container in containers for count in container.counts),
    )


def as_container(schema: Mapping[str, Any], count: int, blocks: Sequence[bytes]) -> bytes:
    """An uncompressed container of one block: records under another, byte-compatible schema."""
    block = [zigzag(count), zigzag(sum(map(len, blocks))), *blocks, _SYNC] if count else []
    return b"".join([*_header(schema), *block])


def as_container_of_blocks(schema: Mapping[str, Any], blocks: Sequence[tuple[int, bytes]]) -> bytes:
    """An uncompressed container of these blocks, each given as its count and its records."""
    parts = _header(schema)
    for count, body in blocks:
        if count:
            parts += [zigzag(count), zigzag(len(body)), body, _SYNC]
    return b"".join(parts)


def _header(schema: Mapping[str, Any]) -> list[bytes]:
    text = json.dumps(schema, separators=(",", ":")).encode()
    header = [MAGIC, zigzag(2)]
    for key, value in ((b"avro.schema", text), (b"avro.codec", b"null")):
        header += [zigzag(len(key)), key, zigzag(len(value)), value]
    return [*header, zigzag(0), _SYNC]


def zigzag(value: int) -> bytes:
    """A number of at most 64 bits as Avro writes it."""
    raw = (value << 1) ^ (value >> 63)
    out = bytearray()
    while raw > 0x7F:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)
    return bytes(out)


def _read_header(data: bytes) -> tuple[dict[str, bytes], int]:
    metadata: dict[str, bytes] = {}
    position = len(MAGIC)
    while True:
        pairs, position = _read_long(data, position)
        if pairs == 0:
            break
        if pairs < 0:
            pairs = -pairs
            _, position = _read_long(data, position)
        for _ in range(pairs):
            key, position = _read_bytes(data, position)
            metadata[key.decode("utf-8")], position = _read_bytes(data, position)
    if "avro.schema" not in metadata:
        raise ValueError("the header has no avro.schema")
    if position + SYNC_SIZE > len(data):
        raise ValueError("the header is cut short")
    return metadata, position


def _blocks(data: bytes, position: int, sync: bytes) -> Iterator[tuple[int, memoryview]]:
    view = memoryview(data)
    while position < len(data):
        count, position = _read_long(data, position)
        size, position = _read_long(data, position)
        end = position + size
        if count < 0 or size < 0 or end + SYNC_SIZE > len(data):
            raise ValueError(f"a block at byte {position} is cut short")
        if data[end : end + SYNC_SIZE] != sync:
            raise ValueError(f"the sync marker at byte {end} does not match the header's")
        yield count, view[position:end]
        position = end + SYNC_SIZE


def _decompress(codec: str, block: memoryview, room: int) -> bytes:
    """The bytes of a block, or the first `room` and one more of them."""
    match codec:
        case "deflate" | "bzip2" | "xz":
            unpacker = _UNPACKERS[codec]()
            unpacked: bytes = unpacker.decompress(block, room + 1)
            if not unpacker.eof and len(unpacked) <= room:
                raise ValueError("a compressed block is cut short")
            return unpacked
        case "null":
            return bytes(block)
        case "snappy":
            checked = block[:-4]
            size, _ = _read_unsigned(checked, 0)
            if size > room:
                raise ValueError(f"a snappy block of {len(block)} bytes states {size} bytes")
            body = pa.Codec("snappy").decompress(checked, size, asbytes=True)
            if zlib.crc32(body) != int.from_bytes(block[-4:], "big"):
                raise ValueError("the checksum of a snappy block does not match")
            return bytes(body)
        case "zstandard":
            return _read_zstandard(block, room)
    raise UnsupportedError(f"the Avro codec {codec!r} is not known")


def _read_zstandard(block: memoryview, room: int) -> bytes:
    parts: list[bytes] = []
    left = room + 1
    with pa.CompressedInputStream(pa.BufferReader(block), "zstd") as stream:
        while left and (part := stream.read(min(_STEP, left))):
            parts.append(part)
            left -= len(part)
    return b"".join(parts)


def _read_long(data: bytes | memoryview, position: int) -> tuple[int, int]:
    raw, position = _read_unsigned(data, position)
    return (raw >> 1) ^ -(raw & 1), position


def _read_unsigned(data: bytes | memoryview, position: int) -> tuple[int, int]:
    value = 0
    for index, byte in enumerate(data[position : position + _MAX_VARINT_BYTES]):
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, position + index + 1
    raise ValueError(f"no number ends at byte {position}")


def _read_bytes(data: bytes, position: int) -> tuple[bytes, int]:
    size, position = _read_long(data, position)
    end = position + size
    if size < 0 or end > len(data):
        raise ValueError(f"{size} bytes at byte {position} reach beyond the end")
    return data[position:end], end
