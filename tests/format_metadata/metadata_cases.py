"""Tables, snapshots and commits made up for the tests of metadata and its changes."""

from __future__ import annotations

from typing import Any

from frazil.format.changes import (
    AddSnapshot,
    SetSnapshotRef,
    apply_updates,
)
from frazil.format.metadata import TableMetadata
from frazil.format.metadata.statistics import (
    PartitionStatisticsFile,
    StatisticsBlob,
    StatisticsFile,
)
from frazil.format.new_table import new_table_metadata
from frazil.format.partitions.partitioning import spec_for
from frazil.format.schema import Schema
from frazil.format.snapshots import Snapshot, SnapshotRef
from frazil.format.sorting import order_for
from frazil.format.types import (
    LongType,
    NestedField,
    StringType,
    TimestampType,
)

ID = NestedField(1, "id", LongType(), required=True)
TS = NestedField(2, "ts", TimestampType())
NAME = NestedField(3, "name", StringType())
SCHEMA = Schema((ID, TS))
WIDER = Schema((ID, TS, NAME))
SPEC = spec_for(SCHEMA, ["day(ts)"])
ORDER = order_for(SCHEMA, ["ts desc"])
UUID = "9c12d441-03fe-4693-9a96-a0705ddf69c1"
STATISTICS = StatisticsFile(
    snapshot_id=1,
    statistics_path="s.puffin",
    file_size_in_bytes=10,
    file_footer_size_in_bytes=5,
    blob_metadata=(
        StatisticsBlob(
            type="apache-datasketches-theta-v1", snapshot_id=1, sequence_number=1, fields=(1,)
        ),
    ),
)
PARTITION_STATISTICS = PartitionStatisticsFile(
    snapshot_id=1, statistics_path="p.parquet", file_size_in_bytes=10
)


def table(version: int = 2, **options: Any) -> TableMetadata:
    return new_table_metadata(
        SCHEMA,
        SPEC,
        location="s3://b/t",
        format_version=version,
        table_uuid=UUID,
        now_ms=100,
        **options,
    )


def snapshot(number: int, **fields: Any) -> Snapshot:
    """The snapshot `number`: id and sequence number are it, the time is it in seconds."""
    values: dict[str, Any] = {
        "snapshot_id": number,
        "parent_snapshot_id": number - 1 or None,
        "sequence_number": number,
        "timestamp_ms": number * 1000,
        "manifest_list": f"s3://b/t/metadata/snap-{number}.avro",
        "summary": {"operation": "append"},
        "schema_id": 0,
    }
    return Snapshot(**{**values, **fields})


def branch(snapshot_id: int) -> SnapshotRef:
    return SnapshotRef(snapshot_id=snapshot_id, type="branch")


def commit(metadata: TableMetadata, one: Snapshot) -> TableMetadata:
    return apply_updates(
        metadata, [AddSnapshot(one), SetSnapshotRef("main", branch(one.snapshot_id))], now_ms=1
    )


def history(count: int, version: int = 2) -> TableMetadata:
    metadata = table(version)
    for number in range(1, count + 1):
        metadata = commit(metadata, snapshot(number))
    return metadata
