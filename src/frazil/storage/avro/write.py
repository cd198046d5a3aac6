"""Avro containers written: records encoded by fastavro, blocks compressed here (SPEC rule 105)."""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Callable, Iterable, Mapping
from io import BytesIO
from typing import Any, TypeAlias

import fastavro
import pyarrow as pa

from frazil.errors import ConfigurationError, ValidationError
from frazil.storage.avro.container import MAGIC, SYNC_SIZE, zigzag

Buffer: TypeAlias = "bytes | memoryview"

_BLOCK_BYTES = 256 * 1024
_CODECS = {
    "gzip": "deflate",
    "deflate": "deflate",
    "zlib": "deflate",
    "snappy": "snappy",
    "zstd": "zstandard",
    "zstandard": "zstandard",
    "none": "null",
    "null": "null",
    "uncompressed": "null",
}


def container_bytes(
    schema: Mapping[str, Any],
    records: Iterable[Mapping[str, Any]],
    *,
    metadata: Mapping[str, str],
    codec: str,
) -> bytes:
    """A container file of the records.

    The codec is one of ``write.manifest.compression-codec``; the schema is stored with its field
    ids.
    """
    encode = record_encoder(schema)
    writer = ContainerWriter(schema, metadata=metadata, codec=codec)
    for record in records:
        writer.add(1, encode(record))
    return writer.finish()


def record_encoder(schema: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], bytes]:
    """Return what encodes a record of that Avro schema.

    It raises ValidationError for a record that does not fit.
    """
    parsed = fastavro.parse_schema(dict(schema))

    def encode(record: Mapping[str, Any]) -> bytes:
        encoded = BytesIO()
        try:
            fastavro.schemaless_writer(encoded, parsed, record)
        except Exception as error:
            # fastavro answers a value that does not fit with whatever error it runs into.
            raise ValidationError(
                f"a manifest record does not fit its schema: {type(error).__name__}: {error}"
            ) from error
        return encoded.getvalue()

    return encode


class ContainerWriter:
    """Writes encoded records into a container, block by block.

    Args:
        schema: the Avro schema, stored as it is with its field ids.
        metadata: further key-value pairs of the header.
        codec: gzip, deflate, snappy, zstd or none (``write.manifest.compression-codec``).
        sync: what stands between the blocks; by chance unless given.

    Raises:
        ConfigurationError: the codec is not known.
    """

    def __init__(
        self,
        schema: Mapping[str, Any],
        *,
        metadata: Mapping[str, str],
        codec: str,
        sync: bytes | None = None,
    ) -> None:
        self.avro_codec = avro_codec_of(codec)
        self._sync = os.urandom(SYNC_SIZE) if sync is None else sync
        self._parts: list[Buffer] = []
        self._size = self._count = 0
        self._out = BytesIO()
        self._out.write(MAGIC)
        header = {
            "avro.schema": json.dumps(schema, separators=(",", ":")),
            "avro.codec": self.avro_codec,
            **metadata,
        }
        fastavro.schemaless_writer(
            self._out,
            {"type": "map", "values": "bytes"},
            {key: value.encode() for key, value in header.items()},
        )
        self._out.write(self._sync)

    def add(self, count: int, *parts: Buffer) -> None:
        """Add records, whose bytes are these parts one after the other."""
        self._parts += parts
        self._size += sum(map(len, parts))
        self._count += count
        if self._size >= _BLOCK_BYTES:
            self._end_block()

    def add_block(self, count: int, packed: Buffer) -> None:
        """Add a block that is compressed by this container's codec already."""
        self._end_block()
        self._write_block(count, packed)

    def finish(self) -> bytes:
        """The whole container."""
        self._end_block()
        return self._out.getvalue()

    def _end_block(self) -> None:
        if self._count:
            self._write_block(self._count, _compress(b"".join(self._parts), self.avro_codec))
            self._parts, self._size, self._count = [], 0, 0

    def _write_block(self, count: int, packed: Buffer) -> None:
        self._out.writelines((zigzag(count), zigzag(len(packed)), packed, self._sync))


def sync_of(path: str) -> bytes:
    """Return a marker for the blocks of a file whose name no other file has.

    A task that is tried again writes the same bytes, which its name then may have already.
    """
    return hashlib.md5(path.encode(), usedforsecurity=False).digest()


def avro_codec_of(codec: str) -> str:
    """Avro's name of a codec; ConfigurationError for one that is not known."""
    found = _CODECS.get(codec.lower())
    if found is None:
        raise ConfigurationError(
            f"write.manifest.compression-codec is {codec!r}: use gzip, snappy, zstd or none"
        )
    return found


def _compress(body: bytes, codec: str) -> bytes:
    match codec:
        case "deflate":
            packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
            return packer.compress(body) + packer.flush()
        case "snappy":
            packed = pa.Codec("snappy").compress(body, asbytes=True)
            return bytes(packed) + zlib.crc32(body).to_bytes(4, "big")
        case "zstandard":
            return bytes(pa.Codec("zstd").compress(body, asbytes=True))
    return body
