"""Entries to Avro records, and manifests to and from those of lists (SPEC rules 107-123, 162)."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from frazil.errors import InvalidManifestError
from frazil.format.manifests import (
    EntryStatus,
    FieldSummary,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from frazil.format.manifests.schemas import DEFAULT_BLOCK_SIZE_IN_BYTES
from frazil.storage.avro.records import Level

_SUMMARY_LEVEL = Level(
    {509: "contains_null", 518: "contains_nan", 510: "lower_bound", 511: "upper_bound"}
)
LIST_LEVEL = Level(
    {
        500: "manifest_path",
        501: "manifest_length",
        502: "partition_spec_id",
        517: "content",
        515: "sequence_number",
        516: "min_sequence_number",
        503: "added_snapshot_id",
        504: "added_files_count",
        505: "existing_files_count",
        506: "deleted_files_count",
        512: "added_rows_count",
        513: "existing_rows_count",
        514: "deleted_rows_count",
        507: "partitions",
        519: "key_metadata",
        520: "first_row_id",
    },
    {"partitions": _SUMMARY_LEVEL},
)
_MAX_INT = 2**31 - 1

T = TypeVar("T")


def entry_record(entry: ManifestEntry, columns: tuple[str, ...]) -> dict[str, Any]:
    """An entry as a record of `entry_schema`; `columns` are its partition's names."""
    file = entry.data_file
    values = (each.bytes if isinstance(each, uuid.UUID) else each for each in file.partition)
    added = entry.status is EntryStatus.ADDED
    return {
        "status": int(entry.status),
        "snapshot_id": entry.snapshot_id,
        "sequence_number": entry.sequence_number,
        # A new file's own number is always the commit's (rule 133).
        "file_sequence_number": None if added else entry.file_sequence_number,
        "data_file": {
            "content": int(file.content),
            "file_path": file.file_path,
            # Java's spelling, which older readers match case-sensitively.
            "file_format": file.file_format.upper(),
            "partition": dict(zip(columns, values, strict=True)),
            "record_count": file.record_count,
            "file_size_in_bytes": file.file_size_in_bytes,
            "block_size_in_bytes": DEFAULT_BLOCK_SIZE_IN_BYTES,
            "column_sizes": _pairs(file.column_sizes),
            "value_counts": _pairs(file.value_counts),
            "null_value_counts": _pairs(file.null_value_counts),
            "nan_value_counts": _pairs(file.nan_value_counts),
            "lower_bounds": _pairs(file.lower_bounds),
            "upper_bounds": _pairs(file.upper_bounds),
            "key_metadata": file.key_metadata,
            "split_offsets": None if file.split_offsets is None else list(file.split_offsets),
            "equality_ids": None if file.equality_ids is None else list(file.equality_ids),
            "sort_order_id": file.sort_order_id,
            "first_row_id": file.first_row_id,
            "referenced_data_file": file.referenced_data_file,
            "content_offset": file.content_offset,
            "content_size_in_bytes": file.content_size_in_bytes,
        },
    }


def manifest_of(row: Mapping[str, Any], *, file: str) -> ManifestFile:
    """A record of a manifest list (rule 162)."""
    get = _Getter(row, file)
    return ManifestFile(
        manifest_path=get.text("manifest_path"),
        manifest_length=get.count("manifest_length"),
        partition_spec_id=get.of_kind("partition_spec_id", int) or 0,
        content=get.member("content", ManifestContent, default=0),
        sequence_number=get.of_kind("sequence_number", int) or 0,
        min_sequence_number=get.of_kind("min_sequence_number", int) or 0,
        added_snapshot_id=get.of_kind("added_snapshot_id", int),
        added_files_count=get.small_count_or_none("added_files_count"),
        existing_files_count=get.small_count_or_none("existing_files_count"),
        deleted_files_count=get.small_count_or_none("deleted_files_count"),
        added_rows_count=get.of_kind("added_rows_count", int),
        existing_rows_count=get.of_kind("existing_rows_count", int),
        deleted_rows_count=get.of_kind("deleted_rows_count", int),
        partitions=_summaries(row.get("partitions"), file),
        key_metadata=get.of_kind("key_metadata", bytes),
        first_row_id=get.of_kind("first_row_id", int),
    )


def manifest_record(manifest: ManifestFile) -> dict[str, Any]:
    """A manifest as a record of `manifest_list_schema`."""
    told = manifest.partitions
    return {
        **_values(manifest, LIST_LEVEL),
        "content": int(manifest.content),
        "partitions": None if told is None else [_values(each, _SUMMARY_LEVEL) for each in told],
    }


def _values(found: ManifestFile | FieldSummary, level: Level) -> dict[str, Any]:
    return {name: getattr(found, name) for name in level.names.values()}


def _summaries(rows: Any, file: str) -> tuple[FieldSummary, ...] | None:
    if rows is None:
        return None
    if not isinstance(rows, list):
        raise InvalidManifestError("partitions is not a list", file=file)
    return tuple(_summary(row, file) for row in rows)


def _summary(row: Any, file: str) -> FieldSummary:
    get = _Getter(row if isinstance(row, dict) else {}, file)
    return FieldSummary(
        # A summary that does not say so may hide nulls.
        contains_null=get.of_kind("contains_null", bool) is not False,
        contains_nan=get.of_kind("contains_nan", bool),
        lower_bound=get.of_kind("lower_bound", bytes),
        upper_bound=get.of_kind("upper_bound", bytes),
    )


@dataclass(frozen=True, slots=True)
class _Getter:
    """Fields of a record, checked for their types."""

    row: Mapping[str, Any]
    file: str

    def text(self, name: str) -> str:
        value = self.of_kind(name, str)
        if not value:
            raise self._value_error(name, self.row.get(name), "text")
        return value

    def count(self, name: str) -> int:
        value = self.of_kind(name, int)
        if value is None or value < 0:
            raise self._value_error(name, self.row.get(name), "a count")
        return value

    def small_count_or_none(self, name: str) -> int | None:
        value = self.of_kind(name, int)
        if value is not None and not 0 <= value <= _MAX_INT:
            raise self._value_error(name, value, "a count of 31 bits")
        return value

    def member(self, name: str, kind: type[T], *, default: int | None = None) -> T:
        value = self.of_kind(name, int)
        value = default if value is None else value
        try:
            return kind(value)  # type: ignore[call-arg]
        except ValueError:
            raise self._value_error(name, value, f"one of {[int(m) for m in kind]}") from None  # type: ignore[attr-defined]

    def of_kind(self, name: str, kind: type[T]) -> T | None:
        value = self.row.get(name)
        if value is None or (
            isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
        ):
            return value
        raise self._value_error(name, value, kind.__name__)

    def _value_error(self, name: str, value: Any, wanted: str) -> InvalidManifestError:
        return InvalidManifestError(f"{value!r} is not {wanted}", file=self.file, field=name)


def _pairs(values: Mapping[int, Any] | None) -> list[dict[str, Any]] | None:
    return None if values is None else [{"key": k, "value": values[k]} for k in sorted(values)]
