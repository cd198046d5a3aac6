"""Statistics files that table metadata registers (rules 203-209)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from frazil.format.json_fields import JsonObject, without_nulls


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


def statistics_file_from_json(fields: JsonObject) -> StatisticsFile:
    """One entry of `statistics` (rule 203)."""
    return StatisticsFile(
        snapshot_id=fields.snapshot_id("snapshot-id"),
        statistics_path=fields.string("statistics-path"),
        file_size_in_bytes=fields.long("file-size-in-bytes"),
        file_footer_size_in_bytes=fields.long("file-footer-size-in-bytes"),
        key_metadata=fields.optional_string("key-metadata"),
        blob_metadata=tuple(_blob_from_json(blob) for blob in fields.objects("blob-metadata")),
    )


def statistics_file_to_json(statistics: StatisticsFile) -> dict[str, Any]:
    """The JSON object of one entry of `statistics` (rule 203)."""
    return without_nulls(
        {
            "snapshot-id": statistics.snapshot_id,
            "statistics-path": statistics.statistics_path,
            "file-size-in-bytes": statistics.file_size_in_bytes,
            "file-footer-size-in-bytes": statistics.file_footer_size_in_bytes,
            "key-metadata": statistics.key_metadata,
            "blob-metadata": [_blob_to_json(blob) for blob in statistics.blob_metadata],
        }
    )


def partition_statistics_file_from_json(fields: JsonObject) -> PartitionStatisticsFile:
    """One entry of `partition-statistics` (rule 205)."""
    return PartitionStatisticsFile(
        snapshot_id=fields.snapshot_id("snapshot-id"),
        statistics_path=fields.string("statistics-path"),
        file_size_in_bytes=fields.long("file-size-in-bytes"),
    )


def partition_statistics_file_to_json(statistics: PartitionStatisticsFile) -> dict[str, Any]:
    """The JSON object of one entry of `partition-statistics` (rule 205)."""
    return {
        "snapshot-id": statistics.snapshot_id,
        "statistics-path": statistics.statistics_path,
        "file-size-in-bytes": statistics.file_size_in_bytes,
    }


def _blob_from_json(fields: JsonObject) -> StatisticsBlob:
    return StatisticsBlob(
        type=fields.string("type"),
        snapshot_id=fields.snapshot_id("snapshot-id"),
        sequence_number=fields.long("sequence-number"),
        fields=fields.integers("fields"),
        properties=fields.string_map("properties"),
    )


def _blob_to_json(blob: StatisticsBlob) -> dict[str, Any]:
    # An empty object of properties is left out, as Java does.
    return without_nulls(
        {
            "type": blob.type,
            "snapshot-id": blob.snapshot_id,
            "sequence-number": blob.sequence_number,
            "fields": list(blob.fields),
            "properties": dict(blob.properties) or None,
        }
    )
