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


def set_statistics(file: StatisticsFile) -> MetadataOperation:
    """Register the statistics file of a snapshot, in place of the one before (rule 203)."""

    def updates(base: TableMetadata) -> list[Update]:
        base.snapshot_by_id(file.snapshot_id)
        if file in base.statistics:
            return []
        return [*updates_requiring(base, file.snapshot_id), SetStatistics(file)]

    return MetadataOperation(updates)


def remove_statistics(snapshot_id: int) -> MetadataOperation:
    """Forget the statistics file of a snapshot; the file stays."""

    def updates(base: TableMetadata) -> list[Update]:
        held = any(file.snapshot_id == snapshot_id for file in base.statistics)
        return [RemoveStatistics(snapshot_id)] if held else []

    return MetadataOperation(updates)


def set_partition_statistics(file: PartitionStatisticsFile) -> MetadataOperation:
    """Register the partition statistics of a snapshot, in place of those before (rule 205)."""

    def updates(base: TableMetadata) -> list[Update]:
        base.snapshot_by_id(file.snapshot_id)
        if file in base.partition_statistics:
            return []
        return [*updates_requiring(base, file.snapshot_id), SetPartitionStatistics(file)]

    return MetadataOperation(updates)


def remove_partition_statistics(snapshot_id: int) -> MetadataOperation:
    """Forget the partition statistics of a snapshot; the file stays."""

    def updates(base: TableMetadata) -> list[Update]:
        held = any(file.snapshot_id == snapshot_id for file in base.partition_statistics)
        return [RemovePartitionStatistics(snapshot_id)] if held else []

    return MetadataOperation(updates)
