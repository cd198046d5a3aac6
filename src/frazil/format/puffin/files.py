"""Puffin files: the footer, the blobs, and the deletion vectors in them (rules 237-250).

Compression is the caller's: `codecs` maps `lz4` (a frame) and `zstd` to functions from compressed
to plain bytes. Deletion vectors are never compressed.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from frazil.errors import InvalidDataFileError, UnsupportedError
from frazil.format.json_fields import JsonObject, load_json, without_nulls
from frazil.format.puffin.deletion_vectors import (
    deletion_vector_from_bytes,
    deletion_vector_to_bytes,
)

__all__ = [
    "DELETION_VECTOR",
    "PuffinBlob",
    "PuffinBuilder",
    "PuffinFooter",
    "blob_bytes",
    "deletion_vector_from_bytes",
    "deletion_vector_to_bytes",
    "parse_puffin_footer",
    "puffin_footer_size",
    "read_puffin_footer",
]

MAGIC = b"PFA1"
DELETION_VECTOR = "deletion-vector-v1"
THETA_SKETCH = "apache-datasketches-theta-v1"
ROW_POSITION_FIELD_ID = 2147483645

_TAIL = 12
_FRAME = len(MAGIC) + _TAIL
_COMPRESSED_FOOTER = 1

Codecs = Mapping[str, Callable[[bytes], bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PuffinBlob:
    """What the footer says of a blob (rule 241); `offset` and `length` are bytes of the file."""

    type: str
    fields: tuple[int, ...]
    snapshot_id: int
    sequence_number: int
    offset: int
    length: int
    compression_codec: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PuffinFooter:
    """The blobs of a Puffin file in its order, and the file's properties (rule 240)."""

    blobs: tuple[PuffinBlob, ...]
    properties: Mapping[str, str] = field(default_factory=dict)


class PuffinBuilder:
    """Puts blobs together into the bytes of a Puffin file."""

    def __init__(self, *, properties: Mapping[str, str] | None = None) -> None:
        self._properties = dict(properties or {})
        self._parts: list[bytes] = [MAGIC]
        self._size = len(MAGIC)
        self._blobs: list[PuffinBlob] = []

    def add(
        self,
        type: str,
        data: bytes,
        *,
        fields: Iterable[int],
        snapshot_id: int,
        sequence_number: int,
        compression_codec: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> PuffinBlob:
        """Add a blob whose bytes are compressed already where a codec is named."""
        blob = PuffinBlob(
            type=type,
            fields=tuple(fields),
            snapshot_id=snapshot_id,
            sequence_number=sequence_number,
            offset=self._size,
            length=len(data),
            compression_codec=compression_codec,
            properties=dict(properties or {}),
        )
        self._parts.append(data)
        self._size += len(data)
        self._blobs.append(blob)
        return blob

    def add_deletion_vector(
        self, data: bytes, *, referenced_data_file: str, cardinality: int
    ) -> PuffinBlob:
        """Add the bytes of a deletion vector (rules 245, 249); the manifest needs its offset."""
        return self.add(
            DELETION_VECTOR,
            data,
            fields=(ROW_POSITION_FIELD_ID,),
            snapshot_id=-1,
            sequence_number=-1,
            properties={
                "referenced-data-file": referenced_data_file,
                "cardinality": str(cardinality),
            },
        )

    def to_bytes(self) -> bytes:
        """The whole file."""
        footer = without_nulls(
            {
                "blobs": [_blob_to_json(blob) for blob in self._blobs],
                "properties": self._properties or None,
            }
        )
        payload = json.dumps(footer, separators=(",", ":"), ensure_ascii=False).encode()
        tail = struct.pack("<iI", len(payload), 0)
        return b"".join((*self._parts, MAGIC, payload, tail, MAGIC))


def puffin_footer_size(tail: bytes, *, file: str | None = None) -> int:
    """The bytes of the footer with both magics, from the last 12 bytes of the file or more."""
    if len(tail) < _TAIL or not tail.endswith(MAGIC):
        raise InvalidDataFileError(
            f"not a Puffin file: it ends with {tail[-4:].hex() or 'nothing'}, expected"
            f" {MAGIC.hex()}",
            file=file,
        )
    (size,) = struct.unpack("<i", tail[-_TAIL:-8])
    if size < 0:
        raise InvalidDataFileError(f"the footer's payload size is negative: {size}", file=file)
    return int(size) + _FRAME


def parse_puffin_footer(
    footer: bytes, *, codecs: Codecs | None = None, file: str | None = None
) -> PuffinFooter:
    """The footer in exactly its bytes, from its first magic to the end of the file."""
    size = puffin_footer_size(footer, file=file)
    if len(footer) != size:
        raise InvalidDataFileError(
            f"the footer announces {size} bytes, {len(footer)} are there", file=file
        )
    if not footer.startswith(MAGIC):
        raise InvalidDataFileError(
            f"the footer starts with {footer[:4].hex()}, expected {MAGIC.hex()}", file=file
        )
    (flags,) = struct.unpack("<I", footer[-8:-4])
    if flags & ~_COMPRESSED_FOOTER:
        raise InvalidDataFileError(f"the footer has unknown flags: {flags:#010x}", file=file)
    payload = footer[len(MAGIC) : -_TAIL]
    if flags & _COMPRESSED_FOOTER:
        payload = _decompress(payload, "lz4", codecs or {}, file)
    value = load_json(payload, what="the footer", file=file, error=InvalidDataFileError)
    fields = JsonObject(value, file=file, error=InvalidDataFileError)
    fields.array("blobs")
    return PuffinFooter(
        blobs=tuple(_blob_from_json(blob) for blob in fields.objects("blobs")),
        properties=fields.string_map("properties"),
    )


def read_puffin_footer(
    data: bytes, *, codecs: Codecs | None = None, file: str | None = None
) -> PuffinFooter:
    """The footer of a whole file; every blob is checked to lie before it."""
    size = puffin_footer_size(data, file=file)
    blobs_end = len(data) - size
    if blobs_end < len(MAGIC) or not data.startswith(MAGIC):
        raise InvalidDataFileError(
            f"not a Puffin file: it starts with {data[:4].hex()}, expected {MAGIC.hex()}, and"
            f" announces a footer of {size} of its {len(data)} bytes",
            file=file,
        )
    footer = parse_puffin_footer(data[blobs_end:], codecs=codecs, file=file)
    for position, blob in enumerate(footer.blobs):
        if blob.offset < len(MAGIC) or blob.offset + blob.length > blobs_end:
            raise InvalidDataFileError(
                f"the blob lies at bytes {blob.offset} to {blob.offset + blob.length}, outside of"
                f" {len(MAGIC)} to {blobs_end}",
                file=file,
                field=f"blobs[{position}]",
            )
    return footer


def blob_bytes(
    data: bytes, blob: PuffinBlob, *, codecs: Codecs | None = None, file: str | None = None
) -> bytes:
    """The plain bytes of a blob.

    `data` are the blob's own bytes, `length` of them from `offset` on.
    """
    if len(data) != blob.length:
        raise InvalidDataFileError(
            f"the blob has {blob.length} bytes, {len(data)} were read", file=file
        )
    if blob.compression_codec is None:
        return data
    return _decompress(data, blob.compression_codec, codecs or {}, file)


def _decompress(data: bytes, codec: str, codecs: Codecs, file: str | None) -> bytes:
    decompress = codecs.get(codec)
    if decompress is None:
        raise UnsupportedError(
            f"the Puffin file {file or ''} is compressed with {codec!r}; supported here are"
            f" {sorted(codecs)}"
        )
    try:
        return decompress(data)
    except (ValueError, OSError, RuntimeError) as cause:
        raise InvalidDataFileError(
            f"the {codec} bytes cannot be decompressed: {cause}", file=file
        ) from cause


def _blob_from_json(fields: JsonObject) -> PuffinBlob:
    offset, length = fields.long("offset"), fields.long("length")
    if offset < 0 or length < 0:
        raise fields.error_of("offset", f"offset {offset} and length {length} must not be negative")
    return PuffinBlob(
        type=fields.string("type"),
        fields=fields.integers("fields"),
        snapshot_id=fields.snapshot_id("snapshot-id"),
        sequence_number=fields.long("sequence-number"),
        offset=offset,
        length=length,
        compression_codec=fields.optional_string("compression-codec"),
        properties=fields.string_map("properties"),
    )


def _blob_to_json(blob: PuffinBlob) -> dict[str, Any]:
    return without_nulls(
        {
            "type": blob.type,
            "fields": list(blob.fields),
            "snapshot-id": blob.snapshot_id,
            "sequence-number": blob.sequence_number,
            "offset": blob.offset,
            "length": blob.length,
            "compression-codec": blob.compression_codec,
            "properties": dict(blob.properties) or None,
        }
    )
