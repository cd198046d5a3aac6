"""What computations of statistics made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from frazil.format.html_text import ShownInNotebooks
from frazil.format.metadata.statistics import PartitionStatisticsFile, StatisticsFile


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStatsResult(ShownInNotebooks):
    """What `compute_table_stats` made.

    Attributes:
        statistics_file: the path of the Puffin file, the column of Java's procedure; None for a
            table without rows to count.
        file: as the metadata registers it.
        distinct_counts: the number of distinct values of each column, NULL aside; exact up to 4096.
    """

    statistics_file: str | None = None
    file: StatisticsFile | None = None
    distinct_counts: Mapping[str, int] = field(default_factory=dict)

    def __repr__(self) -> str:
        if self.file is None:
            return "Table statistics: the table has no snapshot"
        width = max((len(name) for name in self.distinct_counts), default=0)
        lines = ["Table statistics", f"  {'file':<{width}}  {self.statistics_file}"]
        lines += [
            f"  {name:<{width}}  {count:,} distinct values"
            for name, count in self.distinct_counts.items()
        ]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStatsResult(ShownInNotebooks):
    """What `compute_partition_stats` made.

    Attributes:
        partition_statistics_file: the path of the file, the column of Java's procedure; None for a
            table without a snapshot.
        file: as the metadata registers it.
        partitions_count: rows of the file.
    """

    partition_statistics_file: str | None = None
    file: PartitionStatisticsFile | None = None
    partitions_count: int = 0

    def __repr__(self) -> str:
        if self.file is None:
            return "Partition statistics: the table has no snapshot"
        return (
            f"Partition statistics\n  file        {self.partition_statistics_file}\n"
            f"  partitions  {self.partitions_count:,}"
        )
