"""Metadata files: their bytes, compressed or not (SPEC rule 191), each parsed once.

What a file holds is kept by its bytes, since a dropped table's names may come again. So a commit
reads the metadata file that it starts from, and parses it only where this lake neither read nor
wrote it before. A file of a store whose name has a UUID is not even read again where a catalog's
pointer names it: nobody makes another of that name.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Hashable
from typing import Final, cast

from frazil.errors import MissingFileError
from frazil.format.metadata import (
    TableMetadata,
    metadata_to_bytes,
    metadata_to_gzip_bytes,
    parse_metadata,
    unpacked_metadata,
)
from frazil.format.views import ViewMetadata, parse_view_metadata, view_metadata_to_bytes
from frazil.storage.caches import BoundedCache, Sized
from frazil.storage.files import FileIO
from frazil.storage.moved import store_key, telling_of_moves
from frazil.storage.paths import is_local, name_of

_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_NAMES = (".gz.metadata.json", ".metadata.json.gz")
_BYTES_OF_KEY: Final = 256
_MEMORY_PER_BYTE: Final = 8
_UNIQUE: Final = re.compile(r".*[-_]([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})\..*")
_ONCE: Final = "once"
_MEMORY_PER_PACKED_BYTE: Final = 64
"""What parsed metadata takes, about, by the size of its file."""


def read_metadata(io: FileIO, location: str, *, mark: str | None = None) -> TableMetadata:
    """Read a metadata file; gzip is recognized by its first bytes, whatever the name.

    `mark` is what the store has told of its content before this call, as of `FileIO.marks`: what
    was read under it is not read again.
    """
    under_mark = (store_key(io), location, mark)
    known = None if mark is None else _kept_metadata(io, under_mark)
    if known is not None:
        return known
    with telling_of_moves(io, location):
        data = io.read(location)
    digest = _digest(data)
    found = _kept_metadata(io, digest)
    if found is None:
        found = parse_metadata(_json_bytes(data, location), file=location)
        _keep(io, digest, found, digest, data)
    if mark is not None:
        _keep(io, under_mark, found, digest, data)
    return found


def read_pointed_metadata(io: FileIO, location: str) -> TableMetadata:
    """Read the metadata file that a catalog's pointer names.

    A file of a store that nobody makes a second time is read once. What it raises is as of
    `read_metadata`.
    """
    return read_metadata(io, location, mark=_ONCE if _is_made_once(location) else None)


def read_view_metadata(io: FileIO, location: str) -> ViewMetadata:
    """Read a view's metadata file; what it raises is as of `read_metadata`."""
    return parse_view_metadata(_plain_bytes(io, location), file=location)


def view_metadata_file(metadata: ViewMetadata, *, path: str) -> bytes:
    """Return the content of a view's metadata file of that name: gzip if the name says so."""
    data = view_metadata_to_bytes(metadata)
    return gzip.compress(data, mtime=0) if path.endswith(_GZIP_NAMES) else data


def metadata_files_of(io: FileIO, metadata: TableMetadata, location: str) -> tuple[str, ...]:
    """Return the metadata files of a table, those too that only logs of older ones name."""
    known = {location: None}
    older: TableMetadata | None = metadata
    while older is not None and older.table_uuid == metadata.table_uuid:
        new = [log.metadata_file for log in older.metadata_log if log.metadata_file not in known]
        known.update(dict.fromkeys(new))
        # The log of the oldest one that is there leads back the furthest.
        older = next(
            (read for path in new if (read := _metadata_or_none(io, path)) is not None), None
        )
    return tuple(known)


def _metadata_or_none(io: FileIO, location: str) -> TableMetadata | None:
    try:
        return read_metadata(io, location)
    except MissingFileError:
        return None


def names_uuid(io: FileIO, location: str, table_uuid: str) -> bool:
    """Whether a metadata file is of the table of that UUID; it is not parsed."""
    sought, text = table_uuid.lower().encode(), _plain_bytes(io, location)
    return sought in text or sought in text.lower()


def metadata_bytes(io: FileIO, metadata: TableMetadata, *, path: str) -> bytes:
    """Return the content of the metadata file of that name: gzip if the name says so.

    It is the caller's to write; whoever reads it back through the same caches need not parse it,
    nor even read it where its name is nobody else's.
    """
    write = metadata_to_gzip_bytes if path.endswith(_GZIP_NAMES) else metadata_to_bytes
    data = write(metadata)
    digest = _digest(data)
    _keep(io, digest, metadata, digest, data)
    if _is_made_once(path):
        _keep(io, (store_key(io), path, _ONCE), metadata, digest, data)
    return data


def _is_made_once(location: str) -> bool:
    """Whether only one file ever has this name; those of a local disk are read at no cost."""
    return not is_local(location) and _UNIQUE.fullmatch(name_of(location)) is not None


def _keep(io: FileIO, key: Hashable, metadata: TableMetadata, digest: bytes, data: bytes) -> None:
    # Under whatever keys it is kept, its memory counts once.
    kept = Sized(metadata, _BYTES_OF_KEY, ((digest, _memory_of(data)),))
    _metadata_cache(io).change(key, lambda _: kept)
    io.caches.held_metadata[key] = metadata


def _kept_metadata(io: FileIO, key: Hashable) -> TableMetadata | None:
    found = _metadata_cache(io).get(key)
    return io.caches.held_metadata.get(key) if found is None else found


def _metadata_cache(io: FileIO) -> BoundedCache[TableMetadata]:
    return cast(BoundedCache[TableMetadata], io.caches["metadata"])


def _plain_bytes(io: FileIO, location: str) -> bytes:
    return _json_bytes(io.read(location), location)


def _json_bytes(data: bytes, location: str) -> bytes:
    return unpacked_metadata(data, file=location) if data.startswith(_GZIP_MAGIC) else data


def _memory_of(data: bytes) -> int:
    packed = data.startswith(_GZIP_MAGIC)
    return len(data) * (_MEMORY_PER_PACKED_BYTE if packed else _MEMORY_PER_BYTE)


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()
