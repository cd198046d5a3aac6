"""Avro containers written: records encoded by fastavro, blocks compressed here (SPEC rule 105)."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable, Mapping
from io import BytesIO
from typing import Any

import fastavro
import pyarrow as pa

from frazil.errors import ConfigurationError, ValidationError
from frazil.storage.avro.container import MAGIC, SYNC_SIZE

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

    Args:
        schema: the Avro schema, stored as it is with its field ids.
        records: by the schema's names.
        metadata: further key-value pairs of the header.
        codec: gzip, deflate, snappy, zstd or none (``write.manifest.compression-codec``).

    Raises:
        ConfigurationError: the codec is not known.
        ValidationError: a record does not fit the schema.
    """
    avro_codec = avro_codec_of(codec)
    parsed = fastavro.parse_schema(dict(schema))
    sync = os.urandom(SYNC_SIZE)
    out = BytesIO()
    out.write(MAGIC)
    header = {
        "avro.schema": json.dumps(schema, separators=(",", ":")),
        "avro.codec": avro_codec,
        **metadata,
    }
    fastavro.schemaless_writer(
        out,
        {"type": "map", "values": "bytes"},
        {key: value.encode() for key, value in header.items()},
    )
    out.write(sync)
    block, count = BytesIO(), 0
    for record in records:
        try:
            fastavro.schemaless_writer(block, parsed, record)
        except Exception as error:
            # fastavro answers a value that does not fit with whatever error it runs into.
            raise ValidationError(
                f"a manifest record does not fit its schema: {type(error).__name__}: {error}"
            ) from error
        count += 1
        if block.tell() >= _BLOCK_BYTES:
            _write_block(out, count, block.getvalue(), avro_codec, sync)
            block, count = BytesIO(), 0
    if count:
        _write_block(out, count, block.getvalue(), avro_codec, sync)
    return out.getvalue()


def avro_codec_of(codec: str) -> str:
    """Avro's name of a codec; ConfigurationError for one that is not known."""
    found = _CODECS.get(codec.lower())
    if found is None:
        raise ConfigurationError(
            f"write.manifest.compression-codec is {codec!r}: use gzip, snappy, zstd or none"
        )
    return found


def _write_block(out: BytesIO, count: int, body: bytes, codec: str, sync: bytes) -> None:
    fastavro.schemaless_writer(out, "long", count)
    fastavro.schemaless_writer(out, "bytes", _compressed(body, codec))
    out.write(sync)


def _compressed(body: bytes, codec: str) -> bytes:
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
