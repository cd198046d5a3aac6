"""The metadata of a table of 100 000 files of 20 columns with statistics, in 10 manifests.

Only metadata is written: the data files do not exist, and planning does not open them.

    python -m bench.planning_data FOLDER     write the table, then time planning it
"""

from __future__ import annotations

import random
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from pyiceberg.expressions import And, EqualTo, GreaterThanOrEqual
from pyiceberg.table import StaticTable

from frazil.format.changes.apply import apply_updates
from frazil.format.changes.updates import AddSnapshot, SetSnapshotRef
from frazil.format.manifests import DataFile, EntryStatus, ManifestContent, ManifestEntry
from frazil.format.metadata import metadata_to_bytes
from frazil.format.new_table import new_table_metadata
from frazil.format.partitions.partitioning import PartitionField, PartitionSpec
from frazil.format.partitions.transforms import parse_transform
from frazil.format.schema import Schema
from frazil.format.snapshots import APPEND, MAIN_BRANCH, Snapshot, SnapshotRef
from frazil.format.types import DoubleType, IntegerType, LongType, NestedField, StringType
from frazil.planning.plan import plan_file
from frazil.storage.avro import write_manifest, write_manifest_list
from frazil.storage.files import FileIO

COLUMNS = 20
MANIFESTS = 10
FILES_PER_MANIFEST = 10_000
WHERE = "c1 >= 500000 and c2 = 17"
_TYPES = (LongType(), IntegerType(), DoubleType(), StringType())
_SNAPSHOT_ID = 1


def write_table(
    folder: Path, *, manifests: int = MANIFESTS, files_per_manifest: int = FILES_PER_MANIFEST
) -> str:
    """Write the table below a folder, unless it is there; the path of its metadata file.

    `c1`, `c5`, … are long and rise from file to file (`c1` by 10), `c2`, `c6`, … are int from 0 to
    999, `c3`, … double, `c4`, … string. The table is partitioned by `bucket(16, c1)`.
    """
    location = f"file://{folder.resolve()}"
    metadata_file = folder / "metadata" / "00001-planning.metadata.json"
    if metadata_file.exists():
        return str(metadata_file)
    fields = (NestedField(i, f"c{i}", _TYPES[(i - 1) % 4]) for i in range(1, COLUMNS + 1))
    spec = PartitionSpec(0, (PartitionField((1,), 1000, parse_transform("bucket[16]"), "bucket"),))
    metadata = new_table_metadata(Schema(tuple(fields)), spec, location=location)
    io = FileIO()
    written = [
        write_manifest(
            io,
            f"{location}/metadata/planning-m{index}.avro",
            list(_entries(location, index * files_per_manifest, files_per_manifest)),
            spec=metadata.spec,
            schema=metadata.schema,
            format_version=2,
            content=ManifestContent.DATA,
            snapshot_id=_SNAPSHOT_ID,
        )
        for index in range(manifests)
    ]
    manifest_list = f"{location}/metadata/snap-{_SNAPSHOT_ID}-0-planning.avro"
    write_manifest_list(
        io,
        manifest_list,
        written,
        format_version=2,
        snapshot_id=_SNAPSHOT_ID,
        parent_snapshot_id=None,
        sequence_number=1,
    )
    snapshot = Snapshot(
        snapshot_id=_SNAPSHOT_ID,
        sequence_number=1,
        timestamp_ms=metadata.last_updated_ms,
        manifest_list=manifest_list,
        summary={"operation": APPEND},
        schema_id=metadata.current_schema_id,
    )
    ref = SnapshotRef(snapshot_id=_SNAPSHOT_ID, type="branch")
    metadata = apply_updates(metadata, [AddSnapshot(snapshot), SetSnapshotRef(MAIN_BRANCH, ref)])
    metadata_file.write_bytes(metadata_to_bytes(metadata))
    return str(metadata_file)


def _entries(location: str, first: int, count: int) -> Iterator[ManifestEntry]:
    chance = random.Random(first)
    for number in range(first, first + count):
        lower, upper = _bounds(number, chance)
        rows = chance.randrange(50_000, 200_000)
        name = f"{number:05d}-{number}-{chance.getrandbits(128):032x}-00001.parquet"
        file = DataFile(
            file_path=f"{location}/data/bucket={number % 16}/{name}",
            partition=(number % 16,),
            record_count=rows,
            file_size_in_bytes=rows * 100,
            column_sizes={i: chance.randrange(10**5, 10**6) for i in range(1, COLUMNS + 1)},
            value_counts=dict.fromkeys(range(1, COLUMNS + 1), rows),
            null_value_counts={i: chance.randrange(10) for i in range(1, COLUMNS + 1)},
            lower_bounds=lower,
            upper_bounds=upper,
            split_offsets=(4,),
            sort_order_id=0,
        )
        yield ManifestEntry(status=EntryStatus.ADDED, data_file=file)


def _bounds(number: int, chance: random.Random) -> tuple[dict[int, bytes], dict[int, bytes]]:
    lower: dict[int, bytes] = {}
    upper: dict[int, bytes] = {}
    for column in range(1, COLUMNS + 1):
        match column % 4:
            case 1:
                low, high = number * 10, number * 10 + 9
                lower[column], upper[column] = struct.pack("<q", low), struct.pack("<q", high)
            case 2:
                low = chance.randrange(1000)
                lower[column] = struct.pack("<i", low)
                upper[column] = struct.pack("<i", low + chance.randrange(10))
            case 3:
                lower[column] = struct.pack("<d", chance.random())
                upper[column] = struct.pack("<d", 1 + chance.random())
            case _:
                lower[column] = b"name-%011d" % chance.randrange(10**9)
                upper[column] = b"name-%011d" % (10**9 + chance.randrange(10**9))
    return lower, upper


def main(folder: Path) -> None:
    """Write the table and print how long planning takes, ours and PyIceberg's."""
    metadata_file = write_table(folder)
    scan = StaticTable.from_metadata(metadata_file).scan(
        row_filter=And(GreaterThanOrEqual("c1", 500000), EqualTo("c2", 17))
    )
    started = time.perf_counter()
    theirs = len(list(scan.plan_files()))
    print(f"PyIceberg {time.perf_counter() - started:.2f} s, {theirs} files")
    io = FileIO()
    cold, warm = [], []
    for _ in range(5):
        io.caches.clear()
        for times in (cold, warm):
            started = time.perf_counter()
            ours = plan_file(metadata_file, where=WHERE, io=io).file_count
            times.append(time.perf_counter() - started)
    print(f"Frazil cold {min(cold):.3f} s (median {sorted(cold)[2]:.3f}), {ours} files")
    print(f"Frazil warm {min(warm):.3f} s (median {sorted(warm)[2]:.3f})")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
