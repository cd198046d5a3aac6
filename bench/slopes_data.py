"""The metadata of large tables: many files, deletes of whole partitions, many snapshots.

Only metadata is written: no data file and no delete file exists, but one that has many names.
"""

from __future__ import annotations

import json
import os
import struct
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from frazil.format.manifests import (
    Content,
    DataFile,
    EntryStatus,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from frazil.format.metadata import TableMetadata, metadata_to_bytes
from frazil.format.new_table import new_table_metadata
from frazil.format.partitions.partitioning import PartitionField, PartitionSpec
from frazil.format.partitions.transforms import parse_transform
from frazil.format.schema import Schema
from frazil.format.types import LongType, NestedField
from frazil.storage.avro import write_manifest, write_manifest_list
from frazil.storage.files import FileIO

PARTITIONS = 16
PER_MANIFEST = 10_000
FILE_SIZE = 10_000_000

_IDS = Schema((NestedField(1, "id", LongType()),))
_LINKED_FILES = 500_000
_LINKED_PARTITIONS = 1_000
_PER_LINK = 5_000


class CountingIO(FileIO):
    """Files that count what is read of them, by kind: list, manifest or other."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: Counter[str] = Counter()

    def read(self, path: str) -> bytes:
        """Count and read."""
        name = path.rsplit("/", 1)[-1]
        kind = "list" if name.startswith("snap-") else "manifest"
        self.opened[kind if name.endswith(".avro") else "other"] += 1
        return super().read(path)


def write_table_of_files(
    folder: Path, *, files: int, deletes: int = 0, per_manifest: int = PER_MANIFEST
) -> str:
    """Write a table of so many files and position deletes; the path of its metadata file.

    The files are of 16 partitions; each delete is newer than every file and applies to all of its
    partition.
    """
    metadata = _empty(folder)
    io = FileIO()
    written: list[ManifestFile] = []
    for content, count in ((Content.DATA, files), (Content.POSITION_DELETES, deletes)):
        for first in range(0, count, per_manifest):
            numbers = range(first, min(first + per_manifest, count))
            made = _manifest(io, metadata, content, numbers, snapshot_id=1)
            number = 1 if content is Content.DATA else 2
            written.append(replace(made, sequence_number=number, min_sequence_number=number))
    path = _list(io, metadata, written, snapshot_id=2, parent=None, sequence_number=2)
    return metadata_file(folder, metadata, [told_snapshot(2, None, metadata.last_updated_ms, path)])


def write_table_of_one_file(folder: Path, *, files: int, file: DataFile) -> str:
    """Write a table of so many names of one file that is really there; its metadata file.

    Args:
        file: of a table that has one column, `id`, and no partitions.
    """
    metadata = new_table_metadata(_IDS, PartitionSpec(), location=f"file://{folder.resolve()}")
    io, per = FileIO(), 1_000
    # A file system lets a file have some ten thousand names, so that folders have several, too.
    (folder / "named").mkdir(parents=True)
    (folder / "data").mkdir()
    for number in range(per):
        os.link(file.file_path.removeprefix("file://"), folder / "named" / f"{number:03d}.parquet")
    for number in range(-(-files // per)):
        (folder / "data" / f"{number:05d}").symlink_to("../named")

    def named(number: int) -> ManifestEntry:
        path = f"{metadata.location}/data/{number // per:05d}/{number % per:03d}.parquet"
        here = DataFile(
            file_path=path,
            record_count=file.record_count,
            file_size_in_bytes=file.file_size_in_bytes,
        )
        return ManifestEntry(status=EntryStatus.ADDED, data_file=here)

    made = [
        write_manifest(
            io,
            f"{metadata.location}/metadata/slopes-{first}.avro",
            [named(number) for number in range(first, min(first + PER_MANIFEST, files))],
            spec=metadata.spec,
            schema=metadata.schema,
            format_version=2,
            content=ManifestContent.DATA,
            snapshot_id=1,
        )
        for first in range(0, files, PER_MANIFEST)
    ]
    return metadata_file(folder, metadata, [only_snapshot(io, metadata, made)])


def write_table_of_links(folder: Path, *, files: int) -> str:
    """Write a table of so many files, a multiple of half a million; the path of its metadata file.

    Its manifests are links to those of half a million files beside it, which are made once, so that
    each of those is there several times. They hold 5 000 files each, of 5 of 1 000 partitions.
    """

    def link(manifest: Path, path: Path, number: int) -> None:
        os.link(manifest, path)

    manifests = _linked_manifests(folder.parent / "slopes-linked")
    return _table_of_manifests(folder, manifests, files, link)


def write_table_of_copies(folder: Path, *, files: int) -> str:
    """Write a table as `write_table_of_links` does, each of whose files has a name of its own.

    The names are below ``file:///lake``, where no file is.
    """

    def copy(manifest: Path, path: Path, number: int) -> None:
        path.write_bytes(manifest.read_bytes().replace(b"/lake/linked/", b"/lake/%06d/" % number))

    manifests = _linked_manifests(folder.parent / "slopes-copied", codec="none")
    return _table_of_manifests(folder, manifests, files, copy)


def _table_of_manifests(
    folder: Path,
    manifests: Sequence[ManifestFile],
    files: int,
    make: Callable[[Path, Path, int], None],
) -> str:
    """Write a table whose manifests are made of those of half a million files."""
    metadata = _linked_table(folder)
    (folder / "metadata").mkdir(parents=True, exist_ok=True)
    made: list[ManifestFile] = []
    for number, manifest in enumerate(manifests):
        for link in range(files // _LINKED_FILES):
            path = folder / "metadata" / f"{number}-{link}.avro"
            make(Path(manifest.manifest_path.removeprefix("file://")), path, link)
            made.append(
                replace(
                    manifest,
                    manifest_path=f"file://{path.resolve()}",
                    sequence_number=1,
                    min_sequence_number=1,
                )
            )
    path_of_list = _list(FileIO(), metadata, made, snapshot_id=1, parent=None, sequence_number=1)
    snapshot = told_snapshot(1, None, metadata.last_updated_ms, path_of_list)
    return metadata_file(folder, metadata, [snapshot])


def write_table_of_snapshots(
    folder: Path, *, snapshots: int, shared: bool, replaces_files: bool = True
) -> str:
    """Write a table of so many snapshots; the path of its metadata file.

    Args:
        shared: whether all of them have one manifest list; else each replaced all of the one
            before, and has a list and a manifest of its own.
        replaces_files: whether each has a data file of its own, too; else all have one.
    """
    metadata = _empty(folder)
    io = FileIO()
    # None is so old that an expiry takes it unasked.
    first_ms = int(time.time() * 1000) - snapshots
    told: list[dict[str, Any]] = []
    path = ""
    for number in range(1, snapshots + 1):
        parent = number - 1 or None
        if not shared or number == 1:
            file = number if replaces_files else 1
            made = _manifest(io, metadata, Content.DATA, [file], snapshot_id=number)
            made = replace(made, sequence_number=number, min_sequence_number=number)
            path = _list(
                io, metadata, [made], snapshot_id=number, parent=parent, sequence_number=number
            )
        told.append(told_snapshot(number, parent, first_ms + number, path))
    return metadata_file(folder, metadata, told)


def data_file(location: str, number: int | str) -> DataFile:
    """A file of the first partition that nobody opens."""
    return DataFile(
        file_path=f"{location}/data/bucket=0/new-{number}.parquet",
        partition=(0,),
        record_count=1,
        file_size_in_bytes=1000,
    )


def _empty(folder: Path) -> TableMetadata:
    spec = PartitionSpec(0, (PartitionField((1,), 1000, parse_transform("bucket[16]"), "bucket"),))
    return new_table_metadata(_IDS, spec, location=f"file://{folder.resolve()}")


def _manifest(
    io: FileIO,
    metadata: TableMetadata,
    content: Content,
    numbers: Sequence[int],
    *,
    snapshot_id: int,
) -> ManifestFile:
    is_data = content is Content.DATA
    return write_manifest(
        io,
        f"{metadata.location}/metadata/slopes-{content.name}-{snapshot_id}-{numbers[0]}.avro",
        _entries(metadata.location, content, numbers),
        spec=metadata.spec,
        schema=metadata.schema,
        format_version=2,
        content=ManifestContent.DATA if is_data else ManifestContent.DELETES,
        snapshot_id=snapshot_id,
    )


def _entries(location: str, content: Content, numbers: Sequence[int]) -> list[ManifestEntry]:
    kind = "data" if content is Content.DATA else "deletes"
    name = location + "/data/bucket={partition}/{kind}-{number:06d}.parquet"
    return [
        ManifestEntry(
            status=EntryStatus.ADDED,
            data_file=DataFile(
                content=content,
                file_path=name.format(partition=number % PARTITIONS, kind=kind, number=number),
                partition=(number % PARTITIONS,),
                record_count=100_000,
                file_size_in_bytes=FILE_SIZE,
            ),
        )
        for number in numbers
    ]


def _linked_table(folder: Path) -> TableMetadata:
    schema = Schema((NestedField(1, "id", LongType()), NestedField(2, "part", LongType())))
    spec = PartitionSpec(0, (PartitionField((2,), 1000, parse_transform("identity"), "part"),))
    return new_table_metadata(schema, spec, location=f"file://{folder.resolve()}")


@lru_cache(maxsize=2)
def _linked_manifests(folder: Path, codec: str = "gzip") -> tuple[ManifestFile, ...]:
    """The manifests that tables link or copy."""
    metadata, io = _linked_table(folder), FileIO()
    return tuple(
        write_manifest(
            io,
            f"{metadata.location}/{first}.avro",
            _entries_by_partition(range(first, first + _PER_LINK)),
            spec=metadata.spec,
            schema=metadata.schema,
            format_version=2,
            content=ManifestContent.DATA,
            snapshot_id=1,
            codec=codec,
        )
        for first in range(0, _LINKED_FILES, _PER_LINK)
    )


def _entries_by_partition(numbers: Sequence[int]) -> list[ManifestEntry]:
    """Entries whose neighbours share a partition, with bounds."""
    entries = []
    for number in numbers:
        part = number * _LINKED_PARTITIONS // _LINKED_FILES
        low, high = struct.pack("<q", number * 10), struct.pack("<q", number * 10 + 9)
        of_part = struct.pack("<q", part)
        file = DataFile(
            file_path=f"file:///lake/linked/data/part={part}/{number:07d}-00001.parquet",
            partition=(part,),
            record_count=100_000,
            file_size_in_bytes=FILE_SIZE,
            value_counts={1: 100_000, 2: 100_000},
            null_value_counts={1: 0, 2: 0},
            lower_bounds={1: low, 2: of_part},
            upper_bounds={1: high, 2: of_part},
            split_offsets=(4,),
        )
        entries.append(ManifestEntry(status=EntryStatus.ADDED, data_file=file))
    return entries


def _list(
    io: FileIO,
    metadata: TableMetadata,
    manifests: Sequence[ManifestFile],
    *,
    snapshot_id: int,
    parent: int | None,
    sequence_number: int,
) -> str:
    path = f"{metadata.location}/metadata/snap-{snapshot_id}-0-slopes.avro"
    write_manifest_list(
        io,
        path,
        manifests,
        format_version=2,
        snapshot_id=snapshot_id,
        parent_snapshot_id=parent,
        sequence_number=sequence_number,
    )
    return path


def only_snapshot(
    io: FileIO, metadata: TableMetadata, manifests: Sequence[ManifestFile]
) -> dict[str, Any]:
    """A first snapshot that has these manifests, as metadata tells it."""
    told = [replace(each, sequence_number=1, min_sequence_number=1) for each in manifests]
    path = _list(io, metadata, told, snapshot_id=1, parent=None, sequence_number=1)
    return told_snapshot(1, None, metadata.last_updated_ms, path)


def told_snapshot(number: int, parent: int | None, at_ms: int, path: str) -> dict[str, Any]:
    """A snapshot as metadata tells it."""
    told: dict[str, Any] = {
        "snapshot-id": number,
        "sequence-number": number,
        "timestamp-ms": at_ms,
        "manifest-list": path,
        "summary": {"operation": "overwrite"},
        "schema-id": 0,
    }
    return told if parent is None else {**told, "parent-snapshot-id": parent}


def metadata_file(
    folder: Path, metadata: TableMetadata, snapshots: Sequence[dict[str, Any]]
) -> str:
    """Write metadata with these snapshots, of which the last is the current one; its path."""
    last = snapshots[-1]
    told = json.loads(metadata_to_bytes(metadata))
    told |= {
        "last-sequence-number": last["sequence-number"],
        "last-updated-ms": last["timestamp-ms"],
        "current-snapshot-id": last["snapshot-id"],
        "snapshots": list(snapshots),
        "snapshot-log": [
            {"snapshot-id": one["snapshot-id"], "timestamp-ms": one["timestamp-ms"]}
            for one in snapshots
        ],
        "refs": {"main": {"snapshot-id": last["snapshot-id"], "type": "branch"}},
    }
    path = folder / "metadata" / "00001-slopes.metadata.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(told))
    return str(path)
