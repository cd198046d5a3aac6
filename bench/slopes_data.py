"""The metadata of a table of many files under position deletes of whole partitions.

Only metadata is written: neither data files nor delete files exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from frazil.format.changes.apply import apply_updates
from frazil.format.changes.updates import AddSnapshot, SetSnapshotRef
from frazil.format.manifests import (
    Content,
    DataFile,
    EntryStatus,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from frazil.format.metadata import metadata_to_bytes
from frazil.format.new_table import new_table_metadata
from frazil.format.partitions.partitioning import PartitionField, PartitionSpec
from frazil.format.partitions.transforms import parse_transform
from frazil.format.schema import Schema
from frazil.format.snapshots import MAIN_BRANCH, OVERWRITE, Snapshot, SnapshotRef
from frazil.format.types import LongType, NestedField
from frazil.storage.avro import write_manifest, write_manifest_list
from frazil.storage.files import FileIO

PARTITIONS = 16
_PER_MANIFEST = 10_000


def write_table_with_deletes(folder: Path, *, files: int) -> str:
    """Write a table of so many files and a tenth as many deletes; the path of its metadata file.

    The files are of 16 partitions; each delete is newer than every file and applies to all of its
    partition.
    """
    location = f"file://{folder.resolve()}"
    spec = PartitionSpec(0, (PartitionField((1,), 1000, parse_transform("bucket[16]"), "bucket"),))
    schema = Schema((NestedField(1, "id", LongType()),))
    metadata = new_table_metadata(schema, spec, location=location)
    io = FileIO()
    metadata_file = folder / "metadata" / "00001-slopes.metadata.json"
    written: list[ManifestFile] = []
    for content, count in ((Content.DATA, files), (Content.POSITION_DELETES, files // 10)):
        for first in range(0, count, _PER_MANIFEST):
            entries = _entries(location, content, range(first, min(first + _PER_MANIFEST, count)))
            made = write_manifest(
                io,
                f"{location}/metadata/slopes-{content.name}-{first}.avro",
                entries,
                spec=metadata.spec,
                schema=metadata.schema,
                format_version=2,
                content=ManifestContent.DATA
                if content is Content.DATA
                else ManifestContent.DELETES,
                snapshot_id=1,
            )
            number = 1 if content is Content.DATA else 2
            written.append(replace(made, sequence_number=number, min_sequence_number=number))
    manifest_list = f"{location}/metadata/snap-1-0-slopes.avro"
    write_manifest_list(
        io,
        manifest_list,
        written,
        format_version=2,
        snapshot_id=1,
        parent_snapshot_id=None,
        sequence_number=2,
    )
    snapshot = Snapshot(
        snapshot_id=1,
        sequence_number=2,
        timestamp_ms=metadata.last_updated_ms,
        manifest_list=manifest_list,
        summary={"operation": OVERWRITE},
        schema_id=metadata.current_schema_id,
    )
    ref = SnapshotRef(snapshot_id=1, type="branch")
    metadata = apply_updates(metadata, [AddSnapshot(snapshot), SetSnapshotRef(MAIN_BRANCH, ref)])
    metadata_file.write_bytes(metadata_to_bytes(metadata))
    return str(metadata_file)


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
                file_size_in_bytes=10_000_000,
            ),
        )
        for number in numbers
    ]
