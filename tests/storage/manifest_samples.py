"""Manifests to write and to read: a file, its entry, its manifest and a list of those."""

from __future__ import annotations

import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

from frazil.format import types as T
from frazil.format.manifests import (
    DataFile,
    EntryStatus,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from frazil.format.partitions.partitioning import PartitionField, PartitionSpec
from frazil.format.partitions.transforms import parse_transform
from frazil.format.schema import Schema
from frazil.storage import avro
from frazil.storage.files import FileIO

COLUMNS: list[tuple[str, T.IcebergType, Any, Any]] = [
    ("long", T.LongType(), -5, 7),
    ("date", T.DateType(), -1, 17486),
    ("time", T.TimeType(), 0, 86_399_999_999),
    ("ts", T.TimestampType(), -1, 1_510_871_468_000_001),
    ("tstz", T.TimestamptzType(), -1, 1_510_871_468_000_001),
    (
        "dec",
        T.DecimalType(38, 3),
        Decimal("-99999999999999999999999999999999999.999"),
        Decimal("0.001"),
    ),
    ("uuid", T.UUIDType(), uuid.UUID(int=1), uuid.UUID(int=2**128 - 1)),
    ("str", T.StringType(), "a", "ü\U0001f600"),
    ("dbl", T.DoubleType(), -0.0, 0.0),
    ("bin", T.BinaryType(), b"", b"\xff\x00"),
    ("fix", T.FixedType(3), b"abc", b"abd"),
    ("bool", T.BooleanType(), False, True),
]
SCHEMA = Schema(
    tuple(T.NestedField(i, name, kind) for i, (name, kind, _, _) in enumerate(COLUMNS, 1))
)
SPEC = PartitionSpec(
    3,
    tuple(
        PartitionField((i,), 999 + i, parse_transform("identity"), f"p.{name}")
        for i, (name, *_) in enumerate(COLUMNS, 1)
    ),
)
LOW, HIGH = tuple(c[2] for c in COLUMNS), tuple(c[3] for c in COLUMNS)
NULLS = (None,) * len(COLUMNS)
CODECS = ["gzip", "deflate", "snappy", "zstd", "none"]


def data_file(name: str = "a%20b [1].parquet", **changes: Any) -> DataFile:
    fields = {
        "file_path": f"s3://b/t/{name}",
        "spec_id": 3,
        "partition": LOW,
        "record_count": 10,
        "file_size_in_bytes": 1 << 40,
        "column_sizes": {1: 4, 2: 5},
        "value_counts": {1: 10},
        "null_value_counts": {1: 0},
        "nan_value_counts": {9: 1},
        "lower_bounds": {1: b"\x01" + b"\x00" * 7},
        "upper_bounds": {1: b"\x02" + b"\x00" * 7},
        "key_metadata": b"k",
        "split_offsets": (4, 1 << 33),
        "sort_order_id": 0,
        **changes,
    }
    return DataFile(**fields)


def added(file: DataFile, **changes: Any) -> ManifestEntry:
    return ManifestEntry(status=EntryStatus.ADDED, data_file=file, **changes)


def written(
    path: str | Path, entries: list[ManifestEntry], *, version: int = 2, **changes: Any
) -> ManifestFile:
    arguments: dict[str, Any] = {
        "spec": SPEC,
        "schema": SCHEMA,
        "format_version": version,
        "content": ManifestContent.DATA,
        "snapshot_id": 77,
        **changes,
    }
    return avro.write_manifest(FileIO(), str(path), entries, **arguments)


def listed(path: str | Path, manifests: list[ManifestFile], *, version: int = 2) -> ManifestFile:
    avro.write_manifest_list(
        FileIO(),
        str(path),
        manifests,
        format_version=version,
        snapshot_id=77,
        parent_snapshot_id=None,
        sequence_number=0 if version == 1 else 9,
        first_row_id=0 if version == 3 else None,
    )
    return avro.read_manifest_list(FileIO(), str(path))[0]


def read(manifest: ManifestFile) -> list[ManifestEntry]:
    return avro.read_manifest(FileIO(), manifest, specs={3: SPEC}, schema=SCHEMA)
