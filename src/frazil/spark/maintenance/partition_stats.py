"""Statistics of partitions: a Parquet file of counts, a row a partition (rules 205-209)."""

from __future__ import annotations

import io as byte_streams
import uuid
from dataclasses import dataclass
from typing import Final

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from frazil.errors import ValidationError
from frazil.format.arguments import SnapshotId
from frazil.format.metadata import TableMetadata
from frazil.format.metadata.statistics import PartitionStatisticsFile
from frazil.format.schema import Schema
from frazil.format.snapshots import Snapshot
from frazil.format.types import IntegerType, LongType, NestedField, StructType, UnknownType
from frazil.planning.load import listed_manifests
from frazil.spark.maintenance.stats_results import PartitionStatsResult
from frazil.spark.maintenance.table_stats import chosen_snapshot, register_file
from frazil.spark.port import SparkHandlePort
from frazil.spark.write.arrow import arrow_schema, to_storage
from frazil.storage.files import FileIO
from frazil.storage.locations import metadata_location
from frazil.storage.paths import join
from frazil.table.inspect.schemas import partition_struct_type
from frazil.table.maintenance.partition_counts import COUNTS, partition_counts
from frazil.table.maintenance.table_maintenance import StatisticsChanges

_IDS: Final = {
    "data_record_count": 3,
    "data_file_count": 4,
    "total_data_file_size_in_bytes": 5,
    "position_delete_record_count": 6,
    "position_delete_file_count": 7,
    "equality_delete_record_count": 8,
    "equality_delete_file_count": 9,
    "total_record_count": 10,
    "last_updated_at": 11,
    "last_updated_snapshot_id": 12,
    "dv_count": 13,
}
_REQUIRED: Final = ("data_record_count", "data_file_count", "total_data_file_size_in_bytes")
_REQUIRED_SINCE_3: Final = (
    "position_delete_record_count",
    "position_delete_file_count",
    "dv_count",
    "equality_delete_record_count",
    "equality_delete_file_count",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputePartitionStats:
    """Count rows, files and deletes by partition, in a file that planners read.

    Attributes:
        snapshot_id: of which snapshot; the current one unless given.
    """

    snapshot_id: SnapshotId | None = None

    def run(self, port: SparkHandlePort) -> PartitionStatsResult:
        """Run it; see `TableMaintenance.compute_partition_stats`."""
        metadata = port.refresh().metadata
        if all(spec.is_unpartitioned for spec in metadata.partition_specs):
            raise ValidationError(
                f"{port.name} is not partitioned: there are no partitions to count"
            )
        snapshot = chosen_snapshot(metadata, self.snapshot_id)
        if snapshot is None:
            return PartitionStatsResult()
        fields = partition_struct_type(metadata).fields
        if all(isinstance(field.field_type, UnknownType) for field in fields):
            raise ValidationError(
                f"the partitions of {port.name} cannot be counted: no schema of the table holds "
                "the columns that they are made of any more, so their values have no type"
            )
        counts = partition_counts(metadata, listed_manifests(port.io, snapshot), port.io)
        file = _write(port.io, metadata, snapshot, counts)
        register_file(
            port.io, file.statistics_path, lambda: StatisticsChanges(port).set_statistics(file)
        )
        return PartitionStatsResult(
            partition_statistics_file=file.statistics_path, file=file, partitions_count=len(counts)
        )


def stats_schema(partition: StructType, *, format_version: int) -> Schema:
    """Return the columns of a statistics file; from version 3 on vectors are counted apart."""
    kinds = {name: IntegerType() if kind == pl.Int32 else LongType() for name, kind in COUNTS}
    names = [name for name in _IDS if format_version > 2 or name != "dv_count"]
    required = (*_REQUIRED, *(_REQUIRED_SINCE_3 if format_version > 2 else ()))
    return Schema(
        (
            NestedField(1, "partition", partition, required=True),
            NestedField(2, "spec_id", IntegerType(), required=True),
            *(
                NestedField(_IDS[name], name, kinds[name], required=name in required)
                for name in names
            ),
        )
    )


def _write(
    io: FileIO, metadata: TableMetadata, snapshot: Snapshot, counts: pl.DataFrame
) -> PartitionStatisticsFile:
    partition = partition_struct_type(metadata)
    schema = stats_schema(partition, format_version=metadata.format_version)
    target = arrow_schema(schema)
    table = counts.to_arrow(compat_level=pl.CompatLevel.oldest())
    columns = []
    for field, wanted in zip(schema.fields, target, strict=True):
        column = table[field.name].combine_chunks()
        if isinstance(field.field_type, StructType):
            column = to_storage(column, field.field_type)
        columns.append(column.cast(wanted.type))
    stream = byte_streams.BytesIO()
    pq.write_table(pa.Table.from_arrays(columns, schema=target), stream, compression="zstd")
    name = f"partition-stats-{snapshot.snapshot_id}-{uuid.uuid4()}.parquet"
    path = join(metadata_location(metadata), name)
    data = stream.getvalue()
    io.create_unique(path, data)
    return PartitionStatisticsFile(
        snapshot_id=snapshot.snapshot_id, statistics_path=path, file_size_in_bytes=len(data)
    )
