"""Statistics files that the metadata registers (rules 203-209)."""

from __future__ import annotations

from frazil.format.changes import (
    RemovePartitionStatistics,
    RemoveStatistics,
    SetPartitionStatistics,
    SetStatistics,
    Update,
)
from frazil.format.metadata import TableMetadata
from frazil.format.metadata.statistics import PartitionStatisticsFile, StatisticsFile
from frazil.table.commit.operation import MetadataOperation
from frazil.table.commit.requirements import updates_requiring


def set_statistics(file: StatisticsFile | PartitionStatisticsFile) -> MetadataOperation:
    """Register statistics of a snapshot, in place of those of its kind before (rules 203, 205)."""

    def updates(base: TableMetadata) -> list[Update]:
        base.snapshot_by_id(file.snapshot_id)
        if file in (*base.statistics, *base.partition_statistics):
            return []
        update = (
            SetStatistics(file)
            if isinstance(file, StatisticsFile)
            else SetPartitionStatistics(file)
        )
        return [*updates_requiring(base, file.snapshot_id), update]

    return MetadataOperation(updates)


def remove_statistics(snapshot_id: int) -> MetadataOperation:
    """Forget the statistics file of a snapshot; the file stays."""

    def updates(base: TableMetadata) -> list[Update]:
        held = any(file.snapshot_id == snapshot_id for file in base.statistics)
        return [RemoveStatistics(snapshot_id)] if held else []

    return MetadataOperation(updates)


def remove_partition_statistics(snapshot_id: int) -> MetadataOperation:
    """Forget the partition statistics of a snapshot; the file stays."""

    def updates(base: TableMetadata) -> list[Update]:
        held = any(file.snapshot_id == snapshot_id for file in base.partition_statistics)
        return [RemovePartitionStatistics(snapshot_id)] if held else []

    return MetadataOperation(updates)
