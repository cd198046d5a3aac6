"""Metadata files: their bytes, compressed or not (SPEC rule 191)."""

from __future__ import annotations

import zlib

from frazil.errors import InvalidMetadataError
from frazil.format.metadata import (
    TableMetadata,
    metadata_to_bytes,
    metadata_to_gzip_bytes,
    parse_metadata,
)
from frazil.storage.files import FileIO

_GZIP_MAGIC = b"\x1f\x8b"
_LARGEST_METADATA = 1 << 30


def read_metadata(io: FileIO, location: str) -> TableMetadata:
    """Read a metadata file; gzip is recognized by its first bytes, whatever the name.

    Raises:
        MissingFileError: there is no such file.
        InvalidMetadataError: it is not metadata of a supported version.
        UnsupportedVersionError: its format version is not adopted.
    """
    return parse_metadata(_plain_bytes(io, location), file=location)


def names_uuid(io: FileIO, location: str, table_uuid: str) -> bool:
    """Whether a metadata file is of the table of that UUID; it is not parsed.

    Raises:
        MissingFileError: there is no such file.
    """
    return table_uuid.lower().encode() in _plain_bytes(io, location).lower()


def metadata_bytes(metadata: TableMetadata, *, path: str) -> bytes:
    """The content of the metadata file of that name: gzip if the name says so."""
    if path.endswith((".gz.metadata.json", ".metadata.json.gz")):
        return metadata_to_gzip_bytes(metadata)
    return metadata_to_bytes(metadata)


def _plain_bytes(io: FileIO, location: str) -> bytes:
    data = io.read(location)
    return _decompress(data, location) if data.startswith(_GZIP_MAGIC) else data


def _decompress(data: bytes, location: str) -> bytes:
    decoder = zlib.decompressobj(wbits=31)
    try:
        plain = decoder.decompress(data, _LARGEST_METADATA)
    except zlib.error as error:
        raise InvalidMetadataError(f"not a gzip file: {error}", file=location) from None
    if decoder.unconsumed_tail:
        raise InvalidMetadataError(
            f"the file unpacks to more than {_LARGEST_METADATA} bytes", file=location
        )
    if not decoder.eof:
        raise InvalidMetadataError("the gzip file is cut short", file=location)
    return plain
