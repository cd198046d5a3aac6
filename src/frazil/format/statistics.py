"""Statistics files that table metadata registers (SPEC 2.T)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsBlob:
    """What a statistics file holds: a copy of a Puffin blob's metadata (rule 203)."""

    type: str
    snapshot_id: int
    sequence_number: int
    fields: tuple[int, ...]
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsFile:
    """A Puffin file of column statistics; informational (rules 203-204)."""

    snapshot_id: int
    statistics_path: str
    file_size_in_bytes: int
    file_footer_size_in_bytes: int
    key_metadata: str | None = None
    blob_metadata: tuple[StatisticsBlob, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStatisticsFile:
    """A file of counts per partition, at most one a snapshot (rule 205)."""

    snapshot_id: int
    statistics_path: str
    file_size_in_bytes: int
