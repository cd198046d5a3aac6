"""Matching deletes at planning: 100 000 data files with 10 000 delete files of every kind."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import polars as pl

import frazil
from bench.context import Context
from bench.figures import Bar, Figure, compare, interleaved, report
from bench.planning_data import write_table
from frazil.format.changes.apply import apply_updates
from frazil.format.changes.updates import AddSnapshot, SetSnapshotRef
from frazil.format.manifests import Content, DataFile, EntryStatus, ManifestContent, ManifestEntry
from frazil.format.metadata import metadata_to_bytes, parse_metadata
from frazil.format.snapshots import DELETE, MAIN_BRANCH, Snapshot, SnapshotRef
from frazil.planning.plan import plan_file
from frazil.storage.avro import read_manifest_list, write_manifest, write_manifest_list
from frazil.storage.files import FileIO

PATH_ID = 2147483546
OF_ONE_FILE, OF_PARTITION, BY_KEY = 5_000, 2_500, 2_500
"""Position deletes of one data file each, position deletes of a partition, equality deletes."""
_SNAPSHOT_ID = 2


def run(context: Context) -> Iterator[Figure]:
    """Planning all files, cold and warm, against the Java runtime."""
    metadata_file = write_deletes(context.folder / "matching")
    table = frazil.open_table(metadata_file, spark=context.spark)

    def cold() -> None:
        table.io.caches.clear()
        table.scan().plan()

    sides: dict[str, Callable[[], object]] = {"cold": cold, "warm": lambda: table.scan().plan()}
    if context.has_java:
        sides["java"] = _java_planner(context, metadata_file)
    took = interleaved(sides, rounds=5, warm=2)
    title = "matching 100k data with 10k delete files"
    if not context.has_java:
        yield report(f"{title}, cold", took["cold"], unit="s")
        return
    for kind in ("cold", "warm"):
        yield compare(f"{title}, {kind}", "Java runtime", took[kind], took["java"], Bar(at_least=1))


def write_deletes(folder: Path) -> str:
    """The table of `bench.planning_data` with a snapshot of deletes; its metadata file."""
    target = folder / "metadata" / "00002-matching.metadata.json"
    if target.exists():
        return str(target)
    first = Path(write_table(folder))
    metadata = parse_metadata(first.read_bytes(), file=str(first))
    io, location = FileIO(), metadata.location
    data = plan_file(str(first)).files
    manifest = write_manifest(
        io,
        f"{location}/metadata/matching-deletes.avro",
        list(_deletes(location, data)),
        spec=metadata.spec,
        schema=metadata.schema,
        format_version=2,
        content=ManifestContent.DELETES,
        snapshot_id=_SNAPSHOT_ID,
    )
    parent = metadata.current_snapshot
    assert parent is not None
    manifest_list = f"{location}/metadata/snap-{_SNAPSHOT_ID}-0-matching.avro"
    write_manifest_list(
        io,
        manifest_list,
        [*read_manifest_list(io, str(parent.manifest_list)), manifest],
        format_version=2,
        snapshot_id=_SNAPSHOT_ID,
        parent_snapshot_id=parent.snapshot_id,
        sequence_number=2,
    )
    snapshot = Snapshot(
        snapshot_id=_SNAPSHOT_ID,
        parent_snapshot_id=parent.snapshot_id,
        sequence_number=2,
        timestamp_ms=parent.timestamp_ms + 1,
        manifest_list=manifest_list,
        summary={"operation": DELETE},
        schema_id=metadata.current_schema_id,
    )
    ref = SnapshotRef(snapshot_id=_SNAPSHOT_ID, type="branch")
    metadata = apply_updates(metadata, [AddSnapshot(snapshot), SetSnapshotRef(MAIN_BRANCH, ref)])
    target.write_bytes(metadata_to_bytes(metadata))
    return str(target)


def _deletes(location: str, data: pl.DataFrame) -> Iterator[ManifestEntry]:
    paths = data["file_path"]
    total = OF_ONE_FILE + OF_PARTITION + BY_KEY
    for number in range(total):
        place = number * (len(paths) // total)
        path = paths[place]
        partition = (int(path.split("/bucket=")[1].split("/")[0]),)
        target = f"{location}/data/bucket={partition[0]}/{number:05d}-deletes.parquet"
        if number < OF_ONE_FILE + OF_PARTITION:
            file = _positions(target, partition, path, of_one=number < OF_ONE_FILE)
        else:
            file = _keys(target, partition, place * 10)
        yield ManifestEntry(status=EntryStatus.ADDED, data_file=file)


def _positions(target: str, partition: Sequence[int], path: str, *, of_one: bool) -> DataFile:
    """Position deletes of one file, or of those from it to the end of the alphabet of names."""
    upper = path if of_one else path.rsplit("/", 1)[0] + "/99999"
    return DataFile(
        content=Content.POSITION_DELETES,
        file_path=target,
        partition=tuple(partition),
        record_count=100,
        file_size_in_bytes=2_000,
        lower_bounds={PATH_ID: path.encode()},
        upper_bounds={PATH_ID: upper.encode()},
        referenced_data_file=path if of_one else None,
    )


def _keys(target: str, partition: Sequence[int], low: int) -> DataFile:
    """Equality deletes on `c1` of some hundred files' keys."""
    return DataFile(
        content=Content.EQUALITY_DELETES,
        file_path=target,
        partition=tuple(partition),
        record_count=100,
        file_size_in_bytes=2_000,
        value_counts={1: 100},
        null_value_counts={1: 0},
        lower_bounds={1: struct.pack("<q", low)},
        upper_bounds={1: struct.pack("<q", low + 2_000)},
        equality_ids=(1,),
    )


def _java_planner(context: Context, metadata_file: str) -> Callable[[], object]:
    """Java's plan with the deletes of every file."""
    jvm = context.spark.sparkContext._jvm
    core = jvm.org.apache.iceberg
    context.lake.register_table("bench.matching", metadata_file)
    table = core.spark.Spark3Util.loadIcebergTable(
        context.spark._jsparkSession, "java.bench.matching"
    )
    count = jvm.org.apache.iceberg.relocated.com.google.common.collect.Iterables.size
    return lambda: count(table.newScan().planFiles())
