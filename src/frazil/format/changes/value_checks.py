"""What a change brings, held against the specification's types: others read what is stored.

Files are read more leniently, so ids that a table has already may be of any size.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Container, Iterable
from typing import Final

from frazil.errors import ValidationError
from frazil.format.json_fields import MAX_INT, MAX_LONG, MAX_MILLISECONDS, shown_value
from frazil.format.metadata.statistics import PartitionStatisticsFile, StatisticsFile
from frazil.format.metadata.table_metadata import EncryptedKey
from frazil.format.partitions.partitioning import PartitionSpec
from frazil.format.partitions.transforms import BucketTransform, Transform, TruncateTransform
from frazil.format.schema import Schema
from frazil.format.schema.schema import levels_of
from frazil.format.snapshots import OPERATIONS, Snapshot, SnapshotRef
from frazil.format.sorting import SortOrder
from frazil.format.types import FixedType

_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
DEEPEST_SCHEMA: Final = 100
"""Levels that one column may nest."""


def check_uuid(text: str, what: str) -> None:
    """Check that a text is a UUID; ValidationError where it is not."""
    if _UUID.fullmatch(text) is None:
        raise ValidationError(f"{what} is {shown_value(text)}, which is no UUID")


def check_int(number: int | None, what: str) -> None:
    """Check that a number has 32 bits at most; ValidationError where it has more."""
    if number is not None and not -MAX_INT - 1 <= number <= MAX_INT:
        raise ValidationError(f"{what} is {shown_value(number)}, which has more than 32 bits")


def check_long(number: int | None, what: str) -> None:
    """Check that a number has 64 bits at most; ValidationError where it has more."""
    if number is not None and not -MAX_LONG - 1 <= number <= MAX_LONG:
        raise ValidationError(f"{what} is {shown_value(number)}, which has more than 64 bits")


def check_moment(milliseconds: int, what: str) -> None:
    """Check that a time's microseconds have 64 bits; ValidationError where they have more."""
    if abs(milliseconds) > MAX_MILLISECONDS:
        raise ValidationError(f"{what} is {shown_value(milliseconds)} ms, which is out of range")


def check_snapshot_id(snapshot_id: int | None, what: str, known: Container[int]) -> None:
    """Check an id of a snapshot; one that the table has is what it is."""
    if snapshot_id not in known:
        check_long(snapshot_id, what)


def check_snapshot(snapshot: Snapshot, known: Container[int], *, format_version: int) -> None:
    """Check what a new snapshot says; `known` are the ids that the table has."""
    one = f"of the snapshot {shown_value(snapshot.snapshot_id)}"
    check_long(snapshot.snapshot_id, "the snapshot id")
    check_snapshot_id(snapshot.parent_snapshot_id, f"the parent {one}", known)
    check_long(snapshot.sequence_number, f"the sequence number {one}")
    check_moment(snapshot.timestamp_ms, f"the time {one}")
    check_int(snapshot.schema_id, f"the schema id {one}")
    check_long(snapshot.first_row_id, f"the first row id {one}")
    check_long(snapshot.added_rows, f"the number of added rows {one}")
    if snapshot.summary is None and format_version == 1:
        return
    if snapshot.operation not in OPERATIONS:
        raise ValidationError(
            f"the operation {one} is {shown_value(snapshot.operation)}; it must be one of "
            f"{', '.join(sorted(OPERATIONS))}"
        )


def check_ref(name: str, ref: SnapshotRef) -> None:
    """Check the numbers of a branch or tag; ValidationError where one is out of its range."""
    check_int(ref.min_snapshots_to_keep, f"min-snapshots-to-keep of {name!r}")
    check_long(ref.max_snapshot_age_ms, f"max-snapshot-age-ms of {name!r}")
    check_long(ref.max_ref_age_ms, f"max-ref-age-ms of {name!r}")


def check_schema(schema: Schema) -> None:
    """Check the ids, lengths and depth of a new schema."""
    check_int(schema.schema_id, "the schema id")
    for field in schema.fields_by_id.values():
        check_int(field.field_id, f"the id of the column {field.name!r}")
        if isinstance(field.field_type, FixedType):
            check_int(field.field_type.length, f"the length of the column {field.name!r}")
    deepest = levels_of(schema)
    if deepest > DEEPEST_SCHEMA:
        raise ValidationError(
            f"the schema nests {deepest} levels deep; it may at most {DEEPEST_SCHEMA}"
        )


def check_spec(spec: PartitionSpec) -> None:
    """Check the numbers of a new partition spec; ValidationError where one has over 32 bits."""
    for field in spec.fields:
        check_int(field.field_id, f"the id of the partition field {field.name!r}")
        _check_source(field.source_ids, field.transform, f"of the partition field {field.name!r}")


def check_sort_order(order: SortOrder) -> None:
    """Check the numbers of a new sort order; ValidationError where one has over 32 bits."""
    check_int(order.order_id, "the sort order id")
    for field in order.fields:
        _check_source(field.source_ids, field.transform, "of a sort field")


def check_statistics(file: StatisticsFile | PartitionStatisticsFile, known: Container[int]) -> None:
    """Check the numbers of a statistics file; `known` are the ids that the table has."""
    one = f"of the statistics file {shown_value(file.statistics_path)}"
    check_snapshot_id(file.snapshot_id, f"the snapshot id {one}", known)
    check_long(file.file_size_in_bytes, f"the size {one}")
    if isinstance(file, PartitionStatisticsFile):
        return
    check_long(file.file_footer_size_in_bytes, f"the size of the footer {one}")
    for blob in file.blob_metadata:
        check_snapshot_id(blob.snapshot_id, f"the snapshot id of a blob {one}", known)
        check_long(blob.sequence_number, f"the sequence number of a blob {one}")
        for field_id in blob.fields:
            check_int(field_id, f"the column id of a blob {one}")


def check_encryption_key(key: EncryptedKey) -> None:
    """Check that the metadata of a key is base64; ValidationError where it is not."""
    try:
        base64.b64decode(key.encrypted_key_metadata, validate=True)
    except (binascii.Error, ValueError):
        raise ValidationError(
            f"the metadata of the encryption key {shown_value(key.key_id)} is no base64"
        ) from None


def _check_source(source_ids: Iterable[int], transform: Transform, one: str) -> None:
    for source_id in source_ids:
        check_int(source_id, f"the source id {one}")
    if isinstance(transform, BucketTransform):
        check_int(transform.buckets, f"the number of buckets {one}")
    if isinstance(transform, TruncateTransform):
        check_int(transform.width, f"the width {one}")
