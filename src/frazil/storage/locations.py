"""Where a table's files go and what they are called (SPEC rules 304-307)."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from hashlib import sha256

import mmh3

from frazil.format.metadata import TableMetadata
from frazil.format.properties.table import (
    DATA_PATH,
    FOLDER_STORAGE_PATH,
    METADATA_CODEC,
    METADATA_PATH,
    OBJECT_STORAGE,
    OBJECT_STORAGE_PATH,
    PARTITIONED_PATHS,
)
from frazil.format.views import ViewMetadata
from frazil.format.views.properties import VIEW_METADATA_CODEC
from frazil.storage.paths import join, name_of, normalize_location, parent_of

_LONGEST_NAME = 255
_DIGEST_LENGTH = 32
_CUT_ESCAPE = re.compile("%.?$")
_HASH_BITS = 20
_ENTROPY_FOLDERS = 3
_ENTROPY_LENGTH = 4
_VERSION = re.compile(r"v?(\d+)(?:-[^/]*)?(?:\.gz)?\.metadata\.json(?:\.gz)?")


def data_location(metadata: TableMetadata) -> str:
    """The folder that data files go to (write.data.path, else ``<location>/data``)."""
    paths = [DATA_PATH, FOLDER_STORAGE_PATH]
    if OBJECT_STORAGE.of(metadata.properties):
        paths.insert(1, OBJECT_STORAGE_PATH)
    for path in paths:
        if value := path.of(metadata.properties):
            # Other engines take no plain path.
            return normalize_location(value)
    return f"{metadata.location.rstrip('/')}/data"


def metadata_location(metadata: TableMetadata | ViewMetadata) -> str:
    """The folder that metadata, manifest lists and manifests go to (write.metadata.path)."""
    if configured := METADATA_PATH.of(metadata.properties):
        return normalize_location(configured)
    return f"{metadata.location.rstrip('/')}/metadata"


def data_file_path(metadata: TableMetadata, file_name: str, *, partition_path: str = "") -> str:
    """The full path of a data file, in Java's layout (SPEC rules 305, 306).

    `partition_path`: ``name=value/…``, already encoded; empty in an unpartitioned table.
    """
    base = data_location(metadata)
    if not OBJECT_STORAGE.of(metadata.properties):
        return join(base, partition_path, file_name) if partition_path else join(base, file_name)
    partitioned = PARTITIONED_PATHS.of(metadata.properties)
    name = f"{partition_path}/{file_name}" if partition_path and partitioned else file_name
    folders = entropy_folders(name)
    context = _context(base, metadata.location)
    if context is not None:
        return join(base, folders, context, name)
    return join(base, folders, name) if partitioned else f"{base}/{folders}-{name}"


def partition_folders(partition_path: str) -> str:
    """A partition path whose every part can be the name of a folder.

    A part that is longer than file systems take becomes its beginning and a hash of the whole. What
    partition a file is of says its entry in a manifest, never its path.
    """
    return "/".join(map(_short_name, partition_path.split("/")))


def _short_name(name: str) -> str:
    if len(name.encode()) <= _LONGEST_NAME:
        return name
    digest = f"-{sha256(name.encode()).hexdigest()[:_DIGEST_LENGTH]}"
    # Without a letter's escape that is cut in two.
    return _CUT_ESCAPE.sub("", name[: _LONGEST_NAME - len(digest)]) + digest


def new_data_folder(metadata: TableMetadata, operation_id: str) -> str:
    """A folder that one write alone fills.

    With write.object-storage.enabled the folder lies below the entropy folders of its name.
    """
    base = data_location(metadata)
    if not OBJECT_STORAGE.of(metadata.properties):
        return join(base, operation_id)
    context = _context(base, metadata.location)
    parts = [entropy_folders(operation_id), *([context] if context else []), operation_id]
    return join(base, *parts)


def manifest_path(metadata: TableMetadata, commit_id: str, number: int) -> str:
    """``<metadata>/<commit>-m<n>.avro`` (SPEC rule 305)."""
    return join(metadata_location(metadata), f"{commit_id}-m{number}.avro")


def manifest_list_path(
    metadata: TableMetadata, snapshot_id: int, *, attempt: int, commit_id: str
) -> str:
    """``<metadata>/snap-<snapshot>-<attempt>-<commit>.avro`` (SPEC rule 305)."""
    return join(metadata_location(metadata), f"snap-{snapshot_id}-{attempt}-{commit_id}.avro")


def statistics_path(metadata: TableMetadata, snapshot_id: int) -> str:
    """A fresh ``<metadata>/<snapshot>-<uuid>.stats`` for a Puffin file."""
    return join(metadata_location(metadata), f"{snapshot_id}-{uuid.uuid4()}.stats")


def new_metadata_file_path(metadata: TableMetadata, *, version: int) -> str:
    """A fresh ``<metadata>/00003-<uuid>.metadata.json`` (SPEC rules 214, 305)."""
    name = f"{version:05d}-{uuid.uuid4()}{metadata_extension(metadata.properties)}"
    return join(metadata_location(metadata), name)


def new_view_metadata_file_path(metadata: ViewMetadata, *, version: int) -> str:
    """A fresh ``<metadata>/00003-<uuid>.gz.metadata.json`` of a view (SPEC rule 285)."""
    zipped = VIEW_METADATA_CODEC.of(metadata.properties) == "gzip"
    name = f"{version:05d}-{uuid.uuid4()}{'.gz' if zipped else ''}.metadata.json"
    return join(metadata_location(metadata), name)


def metadata_extension(properties: Mapping[str, str]) -> str:
    """``.metadata.json`` or ``.gz.metadata.json`` by write.metadata.compression-codec."""
    return ".gz.metadata.json" if METADATA_CODEC.of(properties) == "gzip" else ".metadata.json"


def metadata_version(path: str) -> int | None:
    """The version in a metadata file's name, ``v3.…`` or ``00003-….…``; None for other names."""
    match = _VERSION.fullmatch(name_of(path))
    return int(match.group(1)) if match else None


def entropy_folders(name: str) -> str:
    """20 bits of the name's murmur3 hash as folders of 4, 4, 4 and 8 digits (SPEC rule 306)."""
    bits = format(mmh3.hash(name, signed=False) & ((1 << _HASH_BITS) - 1), f"0{_HASH_BITS}b")
    length = _ENTROPY_LENGTH
    heads = [bits[start * length : (start + 1) * length] for start in range(_ENTROPY_FOLDERS)]
    return "/".join([*heads, bits[_ENTROPY_FOLDERS * length :]])


def _context(base: str, location: str) -> str | None:
    # Tables that share a data path are kept apart by `<db>/<table>` (SPEC rule 306).
    location = location.rstrip("/")
    if base.startswith(location):
        return None
    return "/".join(part for part in (name_of(parent_of(location)), name_of(location)) if part)
