"""Manifest entries and lists as values, and what they inherit (rules 101-127, 132-141, 161-170).

The Avro schemas that these values are written with are in `manifest_schemas` and importable from
here as well: `entry_schema(version, partition_type)` and `manifest_list_schema(version)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any, Final, Literal

from frazil.errors import InvalidManifestError
from frazil.format.manifests.schemas import entry_schema, manifest_list_schema

__all__ = [
    "DATA_FORMATS",
    "UNASSIGNED_SEQUENCE_NUMBER",
    "Content",
    "DataFile",
    "EntryStatus",
    "FieldSummary",
    "FileFormat",
    "ManifestContent",
    "ManifestEntry",
    "ManifestFile",
    "assign_first_row_ids",
    "assign_sequence_numbers",
    "entry_schema",
    "manifest_list_schema",
]

FileFormat = Literal["parquet", "orc", "avro", "puffin"]
DATA_FORMATS: Final[tuple[FileFormat, ...]] = ("parquet", "orc", "avro")
"""What rows lie in."""


class Content(IntEnum):
    """What a file holds: field 134 of `data_file` (rule 114)."""

    DATA = 0
    POSITION_DELETES = 1
    EQUALITY_DELETES = 2


class ManifestContent(IntEnum):
    """What a manifest tracks: field 517 of the manifest list (rules 102, 162)."""

    DATA = 0
    DELETES = 1


class EntryStatus(IntEnum):
    """What a manifest entry says of its file: field 0 of `manifest_entry` (rule 107)."""

    EXISTING = 0
    ADDED = 1
    DELETED = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """One data file, delete file or deletion vector (rule 114).

    `partition` holds internal values in the order of the fields of the spec `spec_id`; it is `()`
    where the spec is unpartitioned. Metrics map field ids to counts, sizes in bytes, or
    single-value bytes. For a deletion vector `record_count` is its cardinality (rule 123).
    """

    content: Content = Content.DATA
    file_path: str
    file_format: FileFormat = "parquet"
    spec_id: int = 0
    partition: tuple[Any, ...] = ()
    record_count: int
    file_size_in_bytes: int
    column_sizes: Mapping[int, int] | None = None
    value_counts: Mapping[int, int] | None = None
    null_value_counts: Mapping[int, int] | None = None
    nan_value_counts: Mapping[int, int] | None = None
    lower_bounds: Mapping[int, bytes] | None = None
    upper_bounds: Mapping[int, bytes] | None = None
    key_metadata: bytes | None = None
    split_offsets: tuple[int, ...] | None = None
    equality_ids: tuple[int, ...] | None = None
    sort_order_id: int | None = None
    first_row_id: int | None = None
    referenced_data_file: str | None = None
    content_offset: int | None = None
    content_size_in_bytes: int | None = None

    @property
    def is_data(self) -> bool:
        """Whether the file holds rows of the table."""
        return self.content is Content.DATA

    @property
    def is_deletion_vector(self) -> bool:
        """Whether this is a deletion vector: position deletes in a Puffin file (rules 123, 308)."""
        return self.content is Content.POSITION_DELETES and self.file_format == "puffin"

    @property
    def size_in_bytes(self) -> int:
        """The bytes that this entry stands for: a vector's blob, else the whole file."""
        if self.is_deletion_vector and self.content_size_in_bytes is not None:
            return self.content_size_in_bytes
        return self.file_size_in_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestEntry:
    """One row of a manifest (rule 107).

    `sequence_number` is the data sequence number. Ids and numbers are None only in entries that no
    manifest list has numbered yet.
    """

    status: EntryStatus
    snapshot_id: int | None = None
    sequence_number: int | None = None
    file_sequence_number: int | None = None
    data_file: DataFile

    @property
    def is_live(self) -> bool:
        """Whether the file is part of the snapshot (rule 110)."""
        return self.status is not EntryStatus.DELETED


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldSummary:
    """What a manifest's files hold of one partition field (rule 163).

    Bounds are single-value bytes in the partition field's type.
    """

    contains_null: bool
    contains_nan: bool | None = None
    lower_bound: bytes | None = None
    upper_bound: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestFile:
    """One row of a manifest list, by the specified names (rule 162).

    Counts are None where the list does not state them (v1): assume that they are not zero.
    """

    manifest_path: str
    manifest_length: int
    partition_spec_id: int = 0
    content: ManifestContent = ManifestContent.DATA
    sequence_number: int = 0
    min_sequence_number: int = 0
    added_snapshot_id: int | None = None
    added_files_count: int | None = None
    existing_files_count: int | None = None
    deleted_files_count: int | None = None
    added_rows_count: int | None = None
    existing_rows_count: int | None = None
    deleted_rows_count: int | None = None
    partitions: tuple[FieldSummary, ...] | None = None
    key_metadata: bytes | None = None
    first_row_id: int | None = None
    # Every commit lists every manifest again: its record by format version, once it was made.
    list_records: dict[int, bytes] = field(
        default_factory=dict, init=False, repr=False, compare=False, hash=False
    )

    @property
    def has_added_files(self) -> bool:
        """Whether entries of status ADDED are possible (null counts: rule 162)."""
        return self.added_files_count is None or self.added_files_count > 0

    @property
    def has_existing_files(self) -> bool:
        """Whether entries of status EXISTING are possible (null counts: rule 162)."""
        return self.existing_files_count is None or self.existing_files_count > 0

    @property
    def has_deleted_files(self) -> bool:
        """Whether entries of status DELETED are possible (null counts: rule 162)."""
        return self.deleted_files_count is None or self.deleted_files_count > 0

    @property
    def has_live_files(self) -> bool:
        """Whether the manifest may hold files that belong to the snapshot (rule 171)."""
        return self.has_added_files or self.has_existing_files


UNASSIGNED_SEQUENCE_NUMBER = -1
"""The number of a manifest that this commit wrote, until the manifest list is (rule 136)."""


def assign_sequence_numbers(
    manifests: Iterable[ManifestFile], *, sequence_number: int
) -> tuple[ManifestFile, ...]:
    """The manifests for a manifest list, with the numbers that this commit's own ones take.

    Unassigned numbers are `UNASSIGNED_SEQUENCE_NUMBER`; an unassigned minimum means that every live
    file is new (rules 132, 136, 166).
    """

    def assign(number: int) -> int:
        return sequence_number if number == UNASSIGNED_SEQUENCE_NUMBER else number

    return tuple(
        replace(
            manifest,
            sequence_number=assign(manifest.sequence_number),
            min_sequence_number=assign(manifest.min_sequence_number),
        )
        if UNASSIGNED_SEQUENCE_NUMBER in (manifest.sequence_number, manifest.min_sequence_number)
        else manifest
        for manifest in manifests
    )


def assign_first_row_ids(
    manifests: Iterable[ManifestFile], *, next_row_id: int
) -> tuple[tuple[ManifestFile, ...], int]:
    """The manifests of a v3 manifest list with first row ids, and the table's next row id.

    Ids that are there are kept; data manifests without one take the next free range of added plus
    existing rows; delete manifests have none (rules 151, 153, 156, 168).
    """
    numbered: list[ManifestFile] = []
    for manifest in manifests:
        if manifest.content is ManifestContent.DELETES:
            numbered.append(replace(manifest, first_row_id=None))
        elif manifest.first_row_id is not None:
            numbered.append(manifest)
        elif manifest.added_rows_count is None or manifest.existing_rows_count is None:
            raise InvalidManifestError(
                "row ids cannot be assigned: the manifest list does not state the manifest's row"
                " counts; rewrite the manifest first",
                file=manifest.manifest_path,
                field="added_rows_count",
            )
        else:
            numbered.append(replace(manifest, first_row_id=next_row_id))
            next_row_id += manifest.added_rows_count + manifest.existing_rows_count
    return tuple(numbered), next_row_id
