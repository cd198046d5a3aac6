"""The metadata of tables of many columns, many partitions, or snapshots that tell much."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

from bench.slopes_data import metadata_file, only_snapshot
from frazil.format.manifests import DataFile, EntryStatus, ManifestContent, ManifestEntry
from frazil.format.new_table import new_table_metadata
from frazil.format.partitions.partitioning import PartitionField, PartitionSpec
from frazil.format.partitions.transforms import parse_transform
from frazil.format.schema import Schema
from frazil.format.types import LongType, NestedField
from frazil.storage.avro import write_manifest
from frazil.storage.files import FileIO

_PER_MANIFEST = 10_000


def write_table_of_columns(folder: Path, *, columns: int, files: int) -> str:
    """Write a table of so many columns, whose files have counts and bounds of each; its metadata.

    A manifest has as many files as have a hundred thousand columns together.
    """
    ids = range(1, columns + 1)
    schema = Schema(tuple(NestedField(i, f"c{i}", LongType()) for i in ids))
    metadata = new_table_metadata(schema, PartitionSpec(), location=f"file://{folder.resolve()}")
    io = FileIO()
    per = max(1, 100_000 // columns)
    counts, none = dict.fromkeys(ids, 1_000), dict.fromkeys(ids, 0)
    written = []
    for first in range(0, files, per):
        entries = []
        for number in range(first, min(first + per, files)):
            # Bounds of real columns are no more alike than these.
            lower, upper = (_drawn(2 * number + end, columns) for end in (0, 1))
            entries.append(
                _added(
                    DataFile(
                        file_path=f"{metadata.location}/data/{number:06d}.parquet",
                        record_count=1_000,
                        file_size_in_bytes=1_000_000,
                        value_counts=counts,
                        null_value_counts=none,
                        lower_bounds=lower,
                        upper_bounds=upper,
                    )
                )
            )
        path = f"{metadata.location}/metadata/wide-{first}.avro"
        written.append(_manifest(io, metadata, path, entries))
    return metadata_file(folder, metadata, [only_snapshot(io, metadata, written)])


def write_table_of_partitions(folder: Path, *, partitions: int) -> str:
    """Write a table of a file in each of so many partitions; its metadata."""
    schema = Schema((NestedField(1, "id", LongType()), NestedField(2, "part", LongType())))
    spec = PartitionSpec(0, (PartitionField((2,), 1000, parse_transform("identity"), "part"),))
    metadata = new_table_metadata(schema, spec, location=f"file://{folder.resolve()}")
    io = FileIO()
    written = []
    for first in range(0, partitions, _PER_MANIFEST):
        entries = [
            _added(
                DataFile(
                    file_path=f"{metadata.location}/data/part={number}/0.parquet",
                    partition=(number,),
                    record_count=1_000,
                    file_size_in_bytes=1_000_000,
                )
            )
            for number in range(first, min(first + _PER_MANIFEST, partitions))
        ]
        path = f"{metadata.location}/metadata/parts-{first}.avro"
        written.append(_manifest(io, metadata, path, entries))
    return metadata_file(folder, metadata, [only_snapshot(io, metadata, written)])


def lengthen(metadata_path: str, *, size: int) -> None:
    """Let the summaries of a metadata file's snapshots say so much that the file has that size."""
    path = Path(metadata_path)
    told: dict[str, Any] = json.loads(path.read_bytes())
    each = (size - path.stat().st_size) // len(told["snapshots"])
    for snapshot in told["snapshots"]:
        snapshot["summary"]["told-by-the-engine"] = "x" * each
    path.write_text(json.dumps(told))


def _drawn(seed: int, columns: int) -> dict[int, bytes]:
    drawn = Random(seed).randbytes(8 * columns)
    return {i: drawn[8 * i - 8 : 8 * i] for i in range(1, columns + 1)}


def _added(file: DataFile) -> ManifestEntry:
    return ManifestEntry(status=EntryStatus.ADDED, data_file=file)


def _manifest(io: FileIO, metadata: Any, path: str, entries: list[ManifestEntry]) -> Any:
    return write_manifest(
        io,
        path,
        entries,
        spec=metadata.spec,
        schema=metadata.schema,
        format_version=2,
        content=ManifestContent.DATA,
        snapshot_id=1,
    )
