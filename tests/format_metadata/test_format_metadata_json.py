"""Table metadata JSON: other engines' files, versions, leniency, and input that is broken."""

from __future__ import annotations

import copy
import dataclasses
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from metadata_cases import history
from pyiceberg.table.metadata import TableMetadataUtil

from ci_share import only_in_check
from frazil.errors import (
    FrazilError,
    InvalidMetadataError,
    NoSuchRefError,
    NoSuchSnapshotError,
    UnsupportedVersionError,
    ValidationError,
)
from frazil.format.metadata import (
    metadata_from_json,
    metadata_to_bytes,
    metadata_to_gzip_bytes,
    metadata_to_json,
    parse_metadata,
)
from frazil.format.new_table import new_table_metadata
from frazil.format.schema import Schema
from frazil.format.types import LongType, NestedField

GOLDENS = "goldens/metadata/table_metadata"
JAVA = "goldens/java/core/src/test/resources"
VALID = (
    *(f"{JAVA}/TableMetadata{name}Files.json" for name in ("Statistics", "PartitionStatistics")),
    *(
        f"{GOLDENS}/TableMetadata{name}.json"
        for name in (
            *("V1Valid", "V2Valid", "V3ValidMinimal", "V3ValidEncryption", "V1Compat"),
            *("V1PartitionSpecsWithoutDefaultId", "V1SchemasWithoutCurrentId", "V2ValidMinimal"),
        )
    ),
    *(f"{JAVA}/TableMetadata{name}Valid.json" for name in ("V1", "V2")),
)
# A metadata file of nothing but two properties, there to be refused.
STUB = "v0.metadata.json"

V1: dict[str, Any] = {
    "format-version": 1,
    "location": "s3://b/t",
    "last-updated-ms": 1000,
    "last-column-id": 2,
    "schema": {
        "type": "struct",
        "fields": [
            {"id": 1, "name": "x", "required": True, "type": "long"},
            {"id": 2, "name": "y", "required": False, "type": "string"},
        ],
    },
    "partition-spec": [
        {"source-id": 1, "transform": "bucket[4]", "name": "x_bucket"},
        {"source-id": 2, "transform": "identity", "name": "y"},
    ],
}


def read(path: Path) -> Any:
    return parse_metadata(path.read_bytes(), file=str(path))


def all_metadata_files(fixtures: Path) -> list[Path]:
    return [
        path
        for path in sorted(fixtures.rglob("*.metadata.json*"))
        if path.name != STUB and ("metadata.json" in path.name)
    ]


def golden_objects(fixtures: Path) -> list[dict[str, Any]]:
    return [*(json.loads((fixtures / name).read_bytes()) for name in VALID[:6]), V1]


def test_every_metadata_file_of_other_engines_reads_and_survives_writing(
    fixtures_dir: Path,
) -> None:
    paths = all_metadata_files(fixtures_dir)
    assert len(paths) > 150
    for path in (*paths, *(fixtures_dir / name for name in VALID)):
        metadata = read(path)
        assert parse_metadata(metadata_to_bytes(metadata)) == metadata, path
        assert parse_metadata(metadata_to_gzip_bytes(metadata)) == metadata, path


def test_what_other_engines_wrote_is_written_again_field_by_field(fixtures_dir: Path) -> None:
    """Nothing that a file says and we know is lost or changed (rule 191)."""
    for path in all_metadata_files(fixtures_dir):
        data = path.read_bytes()
        given_json = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
        if given_json["format-version"] == 1:
            continue
        written = metadata_to_json(parse_metadata(data))
        for name in (
            "table-uuid", "location", "last-sequence-number", "last-updated-ms", "properties",
            "last-column-id", "current-schema-id", "default-spec-id", "last-partition-id",
            "default-sort-order-id", "snapshot-log", "metadata-log", "partition-specs",
        ):  # fmt: skip
            if name in given_json:
                assert written[name] == given_json[name], (path, name)
        for mine, theirs in zip(written["snapshots"], given_json.get("snapshots", []), strict=True):
            assert mine == {"sequence-number": 0, **theirs}, path


def test_the_bytes_of_each_version_are_its_json_also_after_another(fixtures_dir: Path) -> None:
    """A snapshot's text of version 1 has no sequence number; that of version 2 has (rule 292)."""
    tried = 0
    for path in all_metadata_files(fixtures_dir):
        metadata = read(path)
        for version in range(metadata.format_version, 4):
            upgraded = dataclasses.replace(metadata, format_version=version)
            for _ in range(2):
                assert json.loads(metadata_to_bytes(upgraded)) == metadata_to_json(upgraded), path
            tried += version > metadata.format_version and bool(metadata.snapshots)
    assert tried > 50


@pytest.mark.parametrize(
    ("name", "error", "field"),
    [
        ("TableMetadataV1NoValidSchema", InvalidMetadataError, "schema"),
        ("TableMetadataV2CurrentSchemaNotFound", InvalidMetadataError, "current-schema-id"),
        ("TableMetadataV2MissingLastPartitionId", InvalidMetadataError, "last-partition-id"),
        ("TableMetadataV2MissingPartitionSpecs", InvalidMetadataError, "partition-specs"),
        ("TableMetadataV2MissingSchemas", InvalidMetadataError, "schemas"),
        ("TableMetadataV2MissingSortOrder", InvalidMetadataError, "sort-orders"),
        ("TableMetadataUnsupportedVersion", InvalidMetadataError, "schemas"),
    ],
)
def test_invalid_goldens(
    fixtures_dir: Path, name: str, error: type[FrazilError], field: str
) -> None:
    path = fixtures_dir / GOLDENS / f"{name}.json"
    with pytest.raises(error, match=f"'{field}'") as raised:
        read(path)
    assert str(path) in str(raised.value)


@pytest.mark.parametrize("version", [0, 4, 5, 42, -1])
def test_versions_that_are_not_adopted(version: int) -> None:
    """Rule 1."""
    with pytest.raises(UnsupportedVersionError, match=str(version)):
        metadata_from_json({**V1, "format-version": version}, file="f.json")


def test_java_golden_of_statistics(fixtures_dir: Path) -> None:
    """Rule 203, against what the file says."""
    metadata = read(fixtures_dir / JAVA / "TableMetadataStatisticsFiles.json")
    (statistics,) = metadata.statistics
    assert (statistics.snapshot_id, statistics.statistics_path) == (
        3055729675574597004,
        "s3://a/b/stats.puffin",
    )
    assert (statistics.file_size_in_bytes, statistics.file_footer_size_in_bytes) == (413, 42)
    assert statistics.blob_metadata[0].type == "ndv"
    assert statistics.blob_metadata[0].fields == (1,)


def test_v1_metadata_of_only_a_schema_and_a_spec() -> None:
    """Rules 191, 199, 293: no uuid, partition field ids from 1000, unsorted, nothing current."""
    metadata = metadata_from_json(V1)
    assert metadata.table_uuid is None
    assert metadata.schema.schema_id == 0
    assert metadata.schema.column_names == ("x", "y")
    assert [field.field_id for field in metadata.spec.fields] == [1000, 1001]
    assert metadata.last_partition_id == 1001
    assert metadata.sort_order.is_unsorted
    assert metadata.current_snapshot is None
    assert (metadata.last_sequence_number, metadata.next_row_id) == (0, 0)
    assert metadata.refs == {}


def test_v1_snapshots_inline_manifests_and_ids() -> None:
    """Rules 154, 160, 185: inline manifests; main comes from the current snapshot."""
    snapshot = {"snapshot-id": 7, "timestamp-ms": 900, "manifests": ["a.avro", "b.avro"]}
    metadata = metadata_from_json({**V1, "snapshots": [snapshot], "current-snapshot-id": 7})
    assert metadata.current_snapshot is not None
    assert metadata.current_snapshot.manifests == ("a.avro", "b.avro")
    assert metadata.current_snapshot.operation is None
    assert metadata.refs["main"].snapshot_id == 7
    assert metadata.ref_snapshot("main") is metadata.current_snapshot
    assert metadata_to_json(metadata)["snapshots"] == [snapshot]


@pytest.mark.parametrize("absent", [{}, {"current-snapshot-id": -1}, {"current-snapshot-id": None}])
def test_no_current_snapshot(absent: dict[str, Any]) -> None:
    """Rules 160, 310: -1 and null are the same; v1 and v2 are written with -1, v3 with null."""
    metadata = metadata_from_json({**V1, **absent})
    assert metadata.current_snapshot_id is None
    assert metadata_to_json(metadata)["current-snapshot-id"] == -1


def test_written_fields_of_each_version() -> None:
    """Rules 191, 292-296."""
    schema = Schema((NestedField(1, "id", LongType(), required=True),))
    written = {
        version: metadata_to_json(
            new_table_metadata(schema, location="s3://b/t", format_version=version)
        )
        for version in (1, 2, 3)
    }
    assert {"schema", "partition-spec"} <= written[1].keys()
    assert not {"last-sequence-number", "next-row-id"} & written[1].keys()
    assert not {"schema", "partition-spec", "next-row-id"} & written[2].keys()
    assert written[2]["last-sequence-number"] == 0
    assert written[3]["next-row-id"] == 0
    assert written[3]["current-snapshot-id"] is None
    assert written[2]["current-snapshot-id"] == -1


def test_pyiceberg_agrees_on_the_fixtures(fixtures_dir: Path) -> None:
    """PyIceberg parses what we write of other engines' tables; v3 types apart."""
    checked = 0
    for path in all_metadata_files(fixtures_dir):
        metadata = read(path)
        if metadata.table_uuid == "UUID_PLACEHOLDER":
            continue
        # PyIceberg wants a manifest list and an operation in every snapshot.
        if metadata.format_version > 2 or any(
            one.operation is None or one.manifest_list is None for one in metadata.snapshots
        ):
            continue
        theirs = TableMetadataUtil.parse_raw(metadata_to_bytes(metadata).decode())
        assert theirs.last_column_id == metadata.last_column_id
        keys = theirs.schema().identifier_field_ids
        assert tuple(keys) == metadata.schema.identifier_field_ids
        assert theirs.current_snapshot_id == metadata.current_snapshot_id
        assert len(theirs.snapshots) == len(metadata.snapshots)
        assert theirs.refs.keys() == metadata.refs.keys()
        checked += 1
    assert checked > 100


def test_bytes_that_are_no_metadata() -> None:
    """Broken bytes name the file and are never a bare Python error."""
    for data in (
        b"", b"\xff\xfe", b"[]", b"null", b"{", b'"x"', b"\x1f\x8b", b"\x1f\x8b\x08garbage",
        gzip.compress(b"{}")[:-6], b"[" * 100_000, b'{"format-version": 1e400}',
        b'{"format-version": ' + b"9" * 5000 + b"}", b'{"format-version": NaN}',
    ):  # fmt: skip
        with pytest.raises(InvalidMetadataError, match=r"t/m\.json"):
            parse_metadata(data, file="t/m.json")


@pytest.mark.parametrize("members", [1, only_in_check(2)])
def test_compressed_bytes_that_unpack_to_too_much_are_refused(members: int) -> None:
    """Whether one member of gzip holds them all, or each of several less than is allowed."""
    data = gzip.compress(bytes((70 << 20) // members), 1) * members
    with pytest.raises(InvalidMetadataError, match="unpacks to more than 67108864 bytes"):
        parse_metadata(data, file="t/m.json")


def test_a_deeply_nested_type_is_refused() -> None:
    nested: Any = "long"
    for depth in range(5000):
        nested = {
            "type": "list", "element-id": depth + 10, "element": nested, "element-required": True
        }  # fmt: skip
    schema = {
        "type": "struct",
        "fields": [{"id": 1, "name": "x", "required": True, "type": nested}],
    }
    with pytest.raises(InvalidMetadataError):
        metadata_from_json({**V1, "schema": schema})


V2_SNAPSHOT = {
    "snapshot-id": 1, "timestamp-ms": 1, "manifest-list": "l", "sequence-number": 1,
    "summary": {"operation": "append"},
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"table-uuid": None}, "table-uuid"),
        ({"last-sequence-number": None}, "last-sequence-number"),
        ({"current-snapshot-id": 5}, "current-snapshot-id"),
        ({"default-spec-id": 9}, "default-spec-id"),
        ({"default-sort-order-id": 9}, "default-sort-order-id"),
        ({"refs": {"b": {"snapshot-id": 5, "type": "branch"}}}, "refs.b.snapshot-id"),
        ({"refs": {"b": {"snapshot-id": 5, "type": "bough"}}}, "refs.b.type"),
        ({"snapshots": [V2_SNAPSHOT, V2_SNAPSHOT]}, "snapshots"),
        ({"snapshots": [{**V2_SNAPSHOT, "sequence-number": 99}]}, "snapshots[0].sequence-number"),
        (
            {"snapshots": [V2_SNAPSHOT], "refs": {"main": {"snapshot-id": 1, "type": "branch"}}},
            "refs.main",
        ),
        ({"properties": {"a": 1}}, "properties.a"),
        ({"last-column-id": 2**31}, "last-column-id"),
        ({"last-updated-ms": True}, "last-updated-ms"),
        ({"snapshot-log": [{"snapshot-id": 1}]}, "snapshot-log[0].timestamp-ms"),
        ({"schemas": [3]}, "schemas.[0]"),
    ],
)
def test_what_contradicts_itself(fixtures_dir: Path, change: dict[str, Any], field: str) -> None:
    base = json.loads((fixtures_dir / GOLDENS / "TableMetadataV2ValidMinimal.json").read_bytes())
    changed = {name: value for name, value in {**base, **change}.items() if value is not None}
    with pytest.raises(InvalidMetadataError) as raised:
        metadata_from_json(changed, file="f")
    assert raised.value.field == field


def test_v3_without_next_row_id() -> None:
    """Rule 191: required; before the first snapshot only one value is possible."""
    schema = Schema((NestedField(1, "id", LongType(), required=True),))
    written = metadata_to_json(new_table_metadata(schema, location="l", format_version=3))
    del written["next-row-id"]
    assert metadata_from_json(written).next_row_id == 0
    snapshot = {**V2_SNAPSHOT, "first-row-id": 0, "added-rows": 1}
    with pytest.raises(InvalidMetadataError, match="next-row-id"):
        metadata_from_json({**written, "last-sequence-number": 1, "snapshots": [snapshot]})


RETYPED: tuple[Any, ...] = (
    None, True, 0, -1, -5, 1.5, 2**31, 2**63, 2**70, "", "x", "identity", [], {}, [1], ["a"],
    [None], {"a": 1}, {"type": "struct"}, [[]], [{}], {"id": {}},
)  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of everything inside of a JSON value."""
    found: list[tuple[Any, ...]] = []
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, child in items:
        found.append((*path, key))
        if isinstance(child, dict | list):
            found.extend(places(child, (*path, key)))
    return found


def changed_at(value: Any, path: tuple[Any, ...], new: Any, *, remove: bool) -> Any:
    changed = copy.deepcopy(value)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    if remove:
        del inner[path[-1]]
    else:
        inner[path[-1]] = new
    return changed


@pytest.mark.check
def test_every_field_removed_or_retyped_is_a_typed_error_or_read(fixtures_dir: Path) -> None:
    """No change to a valid file may surface as KeyError, TypeError or the like."""
    for value in golden_objects(fixtures_dir):
        for path in places(value):
            trials = [changed_at(value, path, None, remove=True)]
            trials += [changed_at(value, path, new, remove=False) for new in RETYPED]
            for trial in trials:
                try:
                    metadata = metadata_from_json(trial, file="f")
                except (InvalidMetadataError, UnsupportedVersionError):
                    continue
                # What is read can be written and read again.
                assert metadata_from_json(metadata_to_json(metadata)) == metadata, path


def test_lookups_say_what_is_there(fixtures_dir: Path) -> None:
    metadata = read(fixtures_dir / GOLDENS / "TableMetadataV2Valid.json")
    first, second = metadata.snapshots
    assert metadata.current_snapshot == second
    assert metadata.ancestors_of(second.snapshot_id) == (second, first)
    assert metadata.snapshot_as_of(second.timestamp_ms) == second
    assert metadata.snapshot_as_of(second.timestamp_ms - 1) == first
    with pytest.raises(NoSuchSnapshotError, match=r"begins at 2018-01-04T21:22:35\.770Z"):
        metadata.snapshot_as_of(first.timestamp_ms - 1)
    with pytest.raises(NoSuchSnapshotError, match="12"):
        metadata.snapshot_by_id(12)
    with pytest.raises(NoSuchRefError, match="nowhere"):
        metadata.ref_snapshot("nowhere")
    for lookup in (metadata.schema_by_id, metadata.spec_by_id, metadata.sort_order_by_id):
        with pytest.raises(ValidationError, match="99"):
            lookup(99)


# Snapshots that are known already are not made again, and nothing else comes of it.


KNOWN = metadata_to_json(history(3))
# Another id of a snapshot contradicts no log.
del KNOWN["snapshot-log"]


def told(**changes):
    """The metadata as JSON, with other values of the second snapshot; None leaves one out."""
    given = copy.deepcopy(KNOWN)
    second = {**given["snapshots"][1], **changes}
    given["snapshots"][1] = {name: value for name, value in second.items() if value is not None}
    return json.loads(json.dumps(given))


def test_known_snapshots_are_the_same_objects():
    known = metadata_from_json(told())
    again = metadata_from_json(told(), known=known)
    assert again == known
    assert all(a is b for a, b in zip(again.snapshots, known.snapshots, strict=True))


@pytest.mark.parametrize(
    "changes",
    [
        {"timestamp-ms": 1_700_000_000_005},
        {"sequence-number": 3},
        {"manifest-list": "s3://b/t/metadata/other.avro"},
        {"summary": {"operation": "append", "added-records": "7"}},
        {"summary": None},
        {"schema-id": None},
        {"parent-snapshot-id": -1},
        {"key-id": "k"},
        {"added-rows": 7},
        {"snapshot-id": 112},
    ],
)
def test_a_snapshot_that_is_told_otherwise_is_read(changes):
    known = metadata_from_json(told())
    alone = metadata_from_json(told(**changes))
    beside = metadata_from_json(told(**changes), known=known)
    assert beside == alone
    assert beside.snapshots[1] != known.snapshots[1]
    assert beside.snapshots[0] is known.snapshots[0]


@pytest.mark.parametrize(
    "changes",
    [{"snapshot-id": [1]}, {"snapshot-id": "2"}, {"timestamp-ms": "x"}, {"summary": {"a": 1}}],
)
def test_what_is_malformed_is_refused_as_ever(changes):
    known = metadata_from_json(told())
    with pytest.raises(InvalidMetadataError):
        metadata_from_json(told(**changes), known=known)


def test_metadata_of_another_version_is_read_whole():
    known = metadata_from_json(told())
    newer = {**told(), "format-version": 3, "next-row-id": 0}
    assert metadata_from_json(newer, known=known) == metadata_from_json(newer)
