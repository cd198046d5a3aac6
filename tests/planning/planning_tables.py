"""The fixture tables, opened: their metadata and a FileIO that finds their files here."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from frazil.format.manifests import (
    DataFile,
    EntryStatus,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from frazil.format.metadata import TableMetadata, parse_metadata
from frazil.format.partitions.partitioning import PartitionSpec
from frazil.format.snapshots import Snapshot
from frazil.storage import avro
from frazil.storage.files import FileIO
from frazil.storage.moved import MovedFileIO

FIXTURES = Path(__file__).resolve().parents[3] / "shared" / "fixtures"
ENCRYPTED = "manifest-list-v3-encrypted.avro"


@dataclass(frozen=True)
class FixtureTable:
    """A fixture table; `expected` is its line of EXPECTED.jsonl."""

    name: str
    metadata: TableMetadata
    io: MovedFileIO
    expected: dict[str, Any]


def table_lines() -> list[dict[str, Any]]:
    """The lines of EXPECTED.jsonl, none where the fixtures are not beside this checkout."""
    file = FIXTURES / "EXPECTED.jsonl"
    if not file.is_file():
        return []
    return [json.loads(line) for line in file.read_text().splitlines()]


def open_table(line: dict[str, Any]) -> FixtureTable:
    """The table of one line, by its newest metadata file."""
    folder = FIXTURES / line["path"]
    names = sorted(path.name for path in (folder / "metadata").glob("*.metadata.json"))
    file = folder / "metadata" / line.get("metadata", names[-1] if names else "")
    metadata = parse_metadata(file.read_bytes(), file=str(file))
    location = metadata.location.removeprefix("./").rstrip("/")
    moved = {
        f"{location}/": f"{folder}/",
        "/test-warehouse/iceberg_test/": f"{FIXTURES}/impala/iceberg_test/",
        "/test-warehouse/": f"{FIXTURES}/impala/iceberg_test/",
        "hdfs://localhost:20500/test-warehouse/": f"{FIXTURES}/impala/iceberg_test/iceberg_v3/",
        "data/persistent/": f"{FIXTURES}/duckdb/",
        "file://data/persistent/": f"{FIXTURES}/duckdb/",
    }
    return FixtureTable(line["table"], metadata, MovedFileIO(moved), line)


def manifest_files() -> Iterator[Path]:
    """Every manifest among the fixtures."""
    for path in sorted(FIXTURES.rglob("*.avro")):
        if path.name != ENCRYPTED and b'"data_file"' in path.read_bytes()[:20_000]:
            yield path


def manifest_of(
    io: FileIO,
    metadata: TableMetadata,
    name: str,
    files: Sequence[DataFile | ManifestEntry],
    *,
    spec: PartitionSpec,
    content: ManifestContent = ManifestContent.DATA,
    snapshot_id: int = 1,
) -> ManifestFile:
    """A manifest of version 2 with entries, or with files that the snapshot adds."""
    return avro.write_manifest(
        io,
        f"{metadata.location}/metadata/{name}.avro",
        [
            each
            if isinstance(each, ManifestEntry)
            else ManifestEntry(status=EntryStatus.ADDED, data_file=each)
            for each in files
        ],
        spec=spec,
        schema=metadata.schema,
        format_version=2,
        content=content,
        snapshot_id=snapshot_id,
    )


def snapshot_of(
    io: FileIO,
    metadata: TableMetadata,
    manifests: Sequence[ManifestFile],
    *,
    sequence_number: int,
    snapshot_id: int = 1,
) -> Snapshot:
    """A snapshot whose list has these manifests; the one before it is its parent."""
    path = f"{metadata.location}/metadata/snap-{snapshot_id}.avro"
    avro.write_manifest_list(
        io,
        path,
        manifests,
        format_version=2,
        snapshot_id=snapshot_id,
        parent_snapshot_id=snapshot_id - 1 or None,
        sequence_number=sequence_number,
    )
    return Snapshot(
        snapshot_id=snapshot_id,
        parent_snapshot_id=snapshot_id - 1 or None,
        sequence_number=sequence_number,
        timestamp_ms=metadata.last_updated_ms + snapshot_id,
        manifest_list=path,
        summary={"operation": "append"},
        schema_id=0,
    )
