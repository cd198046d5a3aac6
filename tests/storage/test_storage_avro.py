"""Manifests and manifest lists: ids, versions, and other engines' files."""

from __future__ import annotations

import dataclasses
import json
import uuid
from pathlib import Path
from typing import Any

import fastavro
import pytest
from manifest_samples import (
    CODECS,
    COLUMNS,
    HIGH,
    LOW,
    NULLS,
    SCHEMA,
    SPEC,
    added,
    data_file,
    listed,
    read,
    written,
)
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import ManifestEntryStatus
from pyiceberg.manifest import read_manifest_list as pyiceberg_read_manifest_list

from frazil.errors import (
    ConfigurationError,
    InvalidManifestError,
    MissingFileError,
    ValidationError,
)
from frazil.format.manifests import (
    Content,
    EntryStatus,
    FieldSummary,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from frazil.format.partitions.partitioning import PartitionSpec
from frazil.format.schema import Schema
from frazil.format.snapshots import Snapshot
from frazil.format.types import NestedField, TimestampType
from frazil.storage import avro
from frazil.storage.avro.container import read_container
from frazil.storage.files import FileIO


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("version", [1, 2, 3])
def test_what_is_written_is_read(tmp_path: Path, version: int, codec: str) -> None:
    files = [data_file("a"), data_file("b", partition=HIGH), data_file("c", partition=NULLS)]
    manifest = written(tmp_path / "m", [added(f) for f in files], version=version, codec=codec)
    manifest = listed(tmp_path / "l", [manifest], version=version)
    assert manifest.manifest_length == (tmp_path / "m").stat().st_size
    assert (manifest.added_files_count, manifest.added_rows_count) == (3, 30)
    assert (manifest.existing_files_count, manifest.deleted_rows_count) == (0, 0)
    number = 0 if version == 1 else 9
    assert (manifest.sequence_number, manifest.min_sequence_number) == (number, number)
    entries = read(manifest)
    assert [entry.data_file for entry in entries] == files
    assert {(e.snapshot_id, e.sequence_number, e.file_sequence_number) for e in entries} == {
        (77, number, number)
    }


def test_partition_summaries(tmp_path: Path) -> None:
    """Rules 163, 164: one a field, nulls and NaN aside, -0.0 before +0.0."""
    parts = [HIGH, LOW, NULLS, (*NULLS[:8], float("nan"), *NULLS[9:])]
    manifest = written(tmp_path / "m", [added(data_file(partition=p)) for p in parts])
    summaries = dict(zip((c[0] for c in COLUMNS), manifest.partitions or (), strict=True))
    assert summaries["long"] == FieldSummary(
        contains_null=True,
        contains_nan=False,
        lower_bound=(-5).to_bytes(8, "little", signed=True),
        upper_bound=(7).to_bytes(8, "little"),
    )
    assert summaries["dbl"] == FieldSummary(
        contains_null=True,
        contains_nan=True,
        lower_bound=bytes(7) + b"\x80",
        upper_bound=bytes(8),
    )
    assert summaries["str"].upper_bound == "ü\U0001f600".encode()
    assert summaries["uuid"].upper_bound == b"\xff" * 16
    assert summaries["dec"].upper_bound == b"\x01"


def test_the_schema_carries_every_id(tmp_path: Path) -> None:
    """Rules 104, 106."""
    written(tmp_path / "m", [added(data_file())])
    container = read_container((tmp_path / "m").read_bytes(), file="m")
    schema = json.loads(container.metadata["avro.schema"])
    ids = {each["name"]: each["field-id"] for each in schema["fields"]}
    assert ids == {
        "status": 0,
        "snapshot_id": 1,
        "sequence_number": 3,
        "file_sequence_number": 4,
        "data_file": 2,
    }
    fields = {f["name"]: f for f in schema["fields"][4]["type"]["fields"]}
    assert fields["file_path"]["field-id"] == 100
    assert fields["split_offsets"]["type"][1]["element-id"] == 133
    pair = fields["column_sizes"]["type"][1]["items"]["fields"]
    assert [each["field-id"] for each in pair] == [117, 118]
    assert [each["field-id"] for each in fields["partition"]["type"]["fields"]] == [
        field.field_id for field in SPEC.fields
    ]
    text = {key: value.decode() for key, value in container.metadata.items()}
    assert text["content"] == "data"
    assert text["format-version"] == "2"
    assert text["partition-spec-id"] == "3"
    assert json.loads(text["partition-spec"]) == SPEC.fields_to_json()
    assert json.loads(text["schema"]) == SCHEMA.to_json()
    assert text["schema-id"] == "0"


@pytest.mark.parametrize("codec", ["gzip", "zstd", "none"])
@pytest.mark.parametrize("version", [1, 2])
def test_pyiceberg_reads_it(tmp_path: Path, version: int, codec: str) -> None:
    files = [data_file("a"), data_file("b", partition=HIGH), data_file("c", partition=NULLS)]
    entries = [added(file) for file in files]
    listed(
        tmp_path / "l",
        [written(tmp_path / "m", entries, version=version, codec=codec)],
        version=version,
    )
    io = PyArrowFileIO()
    (manifest,) = pyiceberg_read_manifest_list(io.new_input(str(tmp_path / "l")))
    assert manifest.added_rows_count == 30
    assert [summary.contains_null for summary in manifest.partitions or []] == [True] * len(COLUMNS)
    theirs = manifest.fetch_manifest_entry(io)
    assert [entry.status for entry in theirs] == [ManifestEntryStatus.ADDED] * 3
    for entry, file in zip(theirs, files, strict=True):
        assert entry.data_file.file_path == file.file_path
        assert entry.data_file.lower_bounds == file.lower_bounds
        assert entry.data_file.split_offsets == list(file.split_offsets or ())
        values = [entry.data_file.partition[i] for i in range(len(COLUMNS))]
        assert [bytes.fromhex(v.hex) if isinstance(v, uuid.UUID) else v for v in values] == [
            v.bytes if isinstance(v, uuid.UUID) else v for v in file.partition
        ]


def test_inheritance(tmp_path: Path) -> None:
    """Rules 111, 132-134: added files inherit, the others keep what they have."""
    numbers = {"snapshot_id": 5, "sequence_number": 2, "file_sequence_number": 3}
    entries = [
        added(data_file("new")),
        added(data_file("older"), sequence_number=4),
        ManifestEntry(status=EntryStatus.EXISTING, data_file=data_file("kept"), **numbers),
        ManifestEntry(status=EntryStatus.DELETED, data_file=data_file("gone"), **numbers),
    ]
    manifest = listed(tmp_path / "l", [written(tmp_path / "m", entries)])
    assert manifest.min_sequence_number == 2
    assert (manifest.existing_files_count, manifest.deleted_files_count) == (1, 1)
    found = [(e.snapshot_id, e.sequence_number, e.file_sequence_number) for e in read(manifest)]
    assert found == [(77, 9, 9), (77, 4, 9), (5, 2, 3), (5, 2, 3)]


BAD_ENTRIES = [
    (added(data_file(spec_id=0)), {}, "is of the spec 0"),
    (added(data_file(content=Content.POSITION_DELETES)), {}, "holds POSITION_DELETES"),
    (added(data_file()), {"content": ManifestContent.DELETES}, "its manifest DELETES"),
    (
        added(data_file(content=Content.POSITION_DELETES)),
        {"content": ManifestContent.DELETES, "version": 1},
        "format version 1",
    ),
    (added(data_file(equality_ids=(1,))), {}, "equality ids"),
    (
        added(data_file(content=Content.POSITION_DELETES, file_format="puffin")),
        {"content": ManifestContent.DELETES, "version": 3},
        "without its data file, offset or size",
    ),
    (
        ManifestEntry(status=EntryStatus.EXISTING, data_file=data_file()),
        {},
        "without its sequence numbers",
    ),
    (added(data_file(partition=(1,))), {}, "12 fields"),
    (added(data_file(partition=("x", *LOW[1:]))), {}, "."),
]


@pytest.mark.parametrize(("entry", "changes", "message"), BAD_ENTRIES)
def test_wrong_entries_are_refused(
    tmp_path: Path, entry: ManifestEntry, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValidationError, match=message):
        written(tmp_path / "m", [entry], **changes)
    assert not (tmp_path / "m").exists()


def test_an_unknown_codec(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="lzo"):
        written(tmp_path / "m", [added(data_file())], codec="lzo")


def test_values_of_a_dropped_column_stay(tmp_path: Path) -> None:
    """A file of an old spec must be found again when its source column is gone."""
    schema = Schema(SCHEMA.fields[1:])
    entries = [added(data_file()), added(data_file("b", partition=HIGH))]
    manifest = listed(tmp_path / "l", [written(tmp_path / "m", entries, schema=schema)])
    found = avro.read_manifest(FileIO(), manifest, specs={3: SPEC}, schema=schema)
    assert [entry.data_file.partition for entry in found] == [LOW, HIGH]


def test_a_promoted_date_reads_as_timestamp(tmp_path: Path) -> None:
    """Rule 45: date to timestamp; the stored days become microseconds."""
    spec = PartitionSpec(3, (SPEC.fields[1],))
    entry = added(data_file(partition=(17486,)))
    manifest = listed(tmp_path / "l", [written(tmp_path / "m", [entry], spec=spec)])
    promoted = Schema((NestedField(2, "date", TimestampType()),))
    (found,) = avro.read_manifest(FileIO(), manifest, specs={3: spec}, schema=promoted)
    assert found.data_file.partition == (17486 * 86_400_000_000,)


def test_counts_that_v1_left_out_are_found(tmp_path: Path) -> None:
    """Rule 162: null counts in v1, required in v2."""
    manifest = written(tmp_path / "m", [added(data_file())], version=1)
    counts = [f"{s}_{w}_count" for s in ("added", "existing", "deleted") for w in ("files", "rows")]
    bare = dataclasses.replace(manifest, **dict.fromkeys(counts))
    assert listed(tmp_path / "l1", [bare], version=1).added_files_count is None
    assert listed(tmp_path / "l2", [bare]).added_rows_count == 10


def test_inline_manifests_of_v1(tmp_path: Path) -> None:
    """Rule 154: `manifests` in place of a list; the spec is in the manifest itself."""
    written(tmp_path / "m", [added(data_file())], version=1)
    snapshot = Snapshot(snapshot_id=77, timestamp_ms=1, manifests=(str(tmp_path / "m"),))
    (manifest,) = avro.manifests_of(FileIO(), snapshot)
    assert manifest.partition_spec_id == 3
    (entry,) = read(manifest)
    assert (entry.snapshot_id, entry.sequence_number) == (77, 0)
    with pytest.raises(InvalidManifestError, match="names neither"):
        avro.manifests_of(FileIO(), Snapshot(snapshot_id=1, timestamp_ms=1))


IDS = ("field-id", "element-id", "key-id", "value-id")


def without_ids(schema: Any) -> Any:
    if isinstance(schema, list):
        return [without_ids(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: without_ids(value) for key, value in schema.items() if key not in IDS}


def written_again(path: Path, change: Any) -> None:
    """The same records under another Avro schema."""
    with open(path, "rb") as stream:
        reader = fastavro.reader(stream)
        rows = list(reader)
    kept = {k: v for k, v in reader.metadata.items() if not k.startswith("avro.")}
    with open(path, "wb") as stream:
        fastavro.writer(
            stream, change(json.loads(reader.metadata["avro.schema"])), rows, metadata=kept
        )


@pytest.mark.parametrize("version", [1, 2, 3])
def test_fields_without_ids_are_known_by_their_names(tmp_path: Path, version: int) -> None:
    """As ClickHouse wrote manifests and lists; the Java runtime goes by the names too."""
    manifest = written(tmp_path / "m", [added(data_file())], version=version)
    manifest = listed(tmp_path / "l", [manifest], version=version)
    expected = read(manifest)
    assert expected[0].data_file.partition == LOW
    for name in ("m", "l"):
        written_again(tmp_path / name, without_ids)
    assert avro.read_manifest_list(FileIO(), str(tmp_path / "l")) == (manifest,)
    assert read(manifest) == expected
    assert avro.columns.read_file_paths(FileIO(), str(tmp_path / "m")) == (
        "s3://b/t/a%20b [1].parquet",
    )


def test_delete_files_and_vectors_by_ids_and_by_names(tmp_path: Path) -> None:
    """Keys of equality, the data file and the place of a vector are no fields of a data file."""
    deletes = [
        data_file("e", content=Content.EQUALITY_DELETES, equality_ids=(1, 2)),
        data_file("p", content=Content.POSITION_DELETES, referenced_data_file="s3://b/t/a"),
        data_file(
            "v",
            content=Content.POSITION_DELETES,
            file_format="puffin",
            referenced_data_file="s3://b/t/a",
            content_offset=4,
            content_size_in_bytes=40,
        ),
    ]
    manifest = written(
        tmp_path / "m", [added(f) for f in deletes], version=3, content=ManifestContent.DELETES
    )
    manifest = listed(tmp_path / "l", [manifest], version=3)
    for change in (lambda schema: schema, without_ids):
        for name in ("m", "l"):
            written_again(tmp_path / name, change)
        [found] = avro.read_manifest_list(FileIO(), str(tmp_path / "l"))
        assert found.content is ManifestContent.DELETES
        assert [entry.data_file for entry in read(found)] == deletes


def test_a_partition_field_without_an_id_needs_a_name_of_the_spec(tmp_path: Path) -> None:
    """A value that is not known would be NULL, and rows would be left out by it."""
    manifest = listed(tmp_path / "l", [written(tmp_path / "m", [added(data_file())])])
    written_again(
        tmp_path / "m",
        lambda schema: json.loads(json.dumps(without_ids(schema)).replace("p_x2Elong", "other")),
    )
    with pytest.raises(InvalidManifestError, match=r"other have no field ids.* spec 3.* p\.long"):
        read(manifest)


def test_missing_files_and_unknown_specs(tmp_path: Path) -> None:
    manifest = ManifestFile(
        manifest_path=str(tmp_path / "no"), manifest_length=1, partition_spec_id=3
    )
    with pytest.raises(MissingFileError):
        read(manifest)
    manifest = written(tmp_path / "m", [added(data_file())])
    with pytest.raises(InvalidManifestError, match="partition spec 3"):
        avro.read_manifest(FileIO(), manifest, specs={}, schema=SCHEMA)
