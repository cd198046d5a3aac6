"""Metadata out of the ordinary: read as it is meant, or refused with the field and the file."""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any
from uuid import UUID

import fastavro
import pytest
from table_cases import data_file, make_table, open_catalog, position_deletes

from frazil.catalog.protocol import Catalog
from frazil.errors import InvalidManifestError, InvalidMetadataError
from frazil.format.manifests import EntryStatus, ManifestContent, ManifestEntry, ManifestFile
from frazil.format.metadata import metadata_to_bytes, parse_metadata
from frazil.format.snapshots import Snapshot
from frazil.planning.changes import appended_files
from frazil.planning.plan import plan
from frazil.storage.avro import write_manifest, write_manifest_list
from frazil.table.handle import TableHandle
from frazil.table.inspect.files import EntryTables
from frazil.table.inspect.inspector import Inspector
from frazil.table.manifests.entry_columns import read_entry_columns
from frazil.table.manifests.row_filter import RowFilter

LONE = "\ud800x"
BEYOND_TIME = 2**63 // 1000 + 1
METADATA_TABLES = (
    *("history", "metadata_log_entries", "snapshots", "refs", "manifests", "all_manifests"),
    *("entries", "all_files", "partitions"),
)


@pytest.fixture
def handle(files_catalog: Catalog) -> TableHandle:
    made = make_table(files_catalog, version=3, files=[data_file("a", rows=3)])
    made.files.append([data_file("b", rows=4)])
    made.create_tag("t")
    return made


def document(table: TableHandle) -> Any:
    return json.loads(table.io.read(table.metadata_location))


def put(*path: Any) -> Callable[[Any, Any], None]:
    """Sets the value at a path of a document."""

    def change(document: Any, value: Any) -> None:
        for part in path[:-1]:
            document = document[part]
        document[path[-1]] = value

    return change


WRONG: list[tuple[Any, list[Any], str]] = [
    (put("location"), [LONE], "location.*|half of a surrogate pair"),
    (put("snapshots", 1, "manifest-list"), [LONE], r"snapshots\[1\].manifest-list"),
    (put("schemas", 0, "fields", 0, "name"), [LONE], r"schemas\[0\].fields\[0\].name"),
    (put("refs", LONE), [{"snapshot-id": 1, "type": "tag"}], "refs"),
    (put("snapshots", 0, "timestamp-ms"), [2**63, BEYOND_TIME, 1.5], "milliseconds"),
    (put("snapshot-log", 0, "timestamp-ms"), [-BEYOND_TIME - 1], "milliseconds"),
    (put("last-updated-ms"), [BEYOND_TIME, 10**400], "milliseconds"),
    (put("snapshots", 0, "snapshot-id"), [2**64, -(2**63) - 1, True], "64-bit snapshot id"),
    (put("snapshots", 0, "parent-snapshot-id"), [2**64], "parent-snapshot-id"),
    (put("snapshots", 0, "sequence-number"), [2**63], "sequence-number"),
    (put("snapshots", 0, "added-rows"), [2**63], "added-rows"),
    (put("snapshots", 0, "schema-id"), [2**31], "schema-id"),
    (put("next-row-id"), [2**63], "next-row-id"),
    (put("refs", "t", "max-ref-age-ms"), [2**63], "max-ref-age-ms"),
    (put("schemas", 0, "fields", 1, "id"), [1], "same id 1"),
    (put("schemas", 0, "fields", 0, "id"), [2**31], "32 bits"),
]


@pytest.mark.parametrize(("change", "values", "message"), WRONG)
def test_what_cannot_be_meant_is_refused(
    handle: TableHandle, change: Any, values: list[Any], message: str
) -> None:
    for value in values:
        wrong = document(handle)
        change(wrong, value)
        with pytest.raises(InvalidMetadataError, match=message) as raised:
            parse_metadata(json.dumps(wrong).encode(), file="f.metadata.json")
        assert str(raised.value).isprintable()
        assert raised.value.file == "f.metadata.json"


@pytest.mark.parametrize(
    ("depth", "message"), [(101, "101 levels"), (330, "330 levels"), (100_000, "too deeply")]
)
def test_types_that_nest_too_deeply_are_refused(
    handle: TableHandle, depth: int, message: str
) -> None:
    text = json.dumps(document(handle))
    opened = (
        f'{{"type": "list", "element-id": {100 + number}, "element-required": false, "element": '
        for number in range(depth)
    )
    kind = "".join(opened) + '"int"' + "}" * depth
    text = text.replace('"string"', kind, 1)
    with pytest.raises(InvalidMetadataError, match=message):
        parse_metadata(text.encode())


def test_parents_in_a_circle_end(handle: TableHandle) -> None:
    circle = document(handle)
    first, second = (snapshot["snapshot-id"] for snapshot in circle["snapshots"])
    circle["snapshots"][0]["parent-snapshot-id"] = second
    metadata = parse_metadata(json.dumps(circle).encode())
    assert [one.snapshot_id for one in metadata.ancestors_of(second)] == [second, first]
    assert Inspector(metadata, "f", handle.io).history()["is_current_ancestor"].all()


def test_free_text_that_is_no_unicode_is_shown_as_java_shows_it(handle: TableHandle) -> None:
    strange = document(handle)
    strange["snapshots"][0]["summary"] |= {LONE: "1", "note": LONE}
    strange["properties"]["note"] = LONE
    metadata = parse_metadata(json.dumps(strange).encode())
    assert parse_metadata(metadata_to_bytes(metadata)) == metadata
    first = Inspector(metadata, "f", handle.io).snapshots().to_dicts()[0]
    summary = {entry["key"]: entry["value"] for entry in first["summary"]}
    assert (summary["?x"], summary["note"]) == ("1", "?x")


def test_unsigned_snapshot_ids_are_the_longs_that_manifests_hold(handle: TableHandle) -> None:
    """Some writers' JSON says 2^64 - n for what their manifests say is -n."""
    text = handle.io.read(handle.metadata_location).decode()
    first, second = (snapshot.snapshot_id for snapshot in handle.metadata.snapshots)
    text = text.replace(f'-id": {second}', f'-id": {2**64 + second - 2**63}')
    metadata = parse_metadata(text.encode())
    assert metadata.current_snapshot_id == 2**63 + second
    inspector = Inspector(metadata, "f", handle.io)
    for name in METADATA_TABLES:
        getattr(inspector, name)()
    assert inspector.snapshots()["snapshot_id"].to_list() == [first, second - 2**63]
    assert inspector.refs()["snapshot_id"].to_list() == [second - 2**63] * 2
    assert len(plan(metadata, metadata.current_snapshot, handle.io).files) == 2


def test_changes_of_a_snapshot_with_an_unsigned_id(handle: TableHandle) -> None:
    stored = -5
    entry = ManifestEntry(status=EntryStatus.ADDED, data_file=data_file("c", rows=9))
    folder = f"{handle.location}/metadata"
    written = write_manifest(
        handle.io, f"{folder}/m.avro", [entry], spec=handle.spec, schema=handle.schema,
        format_version=2, content=ManifestContent.DATA, snapshot_id=stored,
    )  # fmt: skip
    write_manifest_list(
        handle.io, f"{folder}/l.avro", [written], format_version=2, snapshot_id=stored,
        parent_snapshot_id=None, sequence_number=3,
    )  # fmt: skip
    snapshot = Snapshot(
        snapshot_id=2**64 + stored,
        timestamp_ms=1,
        sequence_number=3,
        manifest_list=f"{folder}/l.avro",
        summary={"operation": "append"},
    )
    added = appended_files(handle.metadata, [snapshot], handle.io).files
    assert added["record_count"].to_list() == [9]


def test_compressed_metadata_that_unpacks_to_gigabytes_is_refused() -> None:
    packer = gzip.compress(bytes(1 << 26))
    with pytest.raises(InvalidMetadataError, match=r"unpacks to more than.*f\.gz"):
        parse_metadata(packer * 4, file="f.gz.metadata.json")


def rewritten(data: bytes, change: Callable[[dict[str, Any]], object]) -> bytes:
    """An Avro file with changed rows, in a schema whose numbers all have 64 bits."""
    reader = fastavro.reader(BytesIO(data))
    rows: list[Any] = list(reader)
    for row in rows:
        change(row)
    kept = {k: v for k, v in reader.metadata.items() if not k.startswith("avro")}
    out = BytesIO()
    fastavro.writer(out, wide(json.loads(reader.metadata["avro.schema"])), rows, metadata=kept)
    return out.getvalue()


def wide(schema: Any) -> Any:
    if isinstance(schema, dict):
        parts = ("type", "items", "values", "fields")
        return {key: wide(value) if key in parts else value for key, value in schema.items()}
    if isinstance(schema, list):
        return [wide(each) for each in schema]
    return "long" if schema == "int" else schema


ENTRIES: list[tuple[dict[str, Any], str]] = [
    ({"record_count": -1}, "record_count"),
    ({"record_count": 2**63 - 1}, "record_count"),
    ({"file_size_in_bytes": -(2**63)}, "file_size_in_bytes"),
    ({"content": 2**31}, "content"),
    ({"sort_order_id": 2**40}, "sort_order_id"),
    ({"value_counts": [{"key": 2**40, "value": 1}]}, "value_counts"),
    ({"equality_ids": [2**40]}, "equality_ids"),
]


@pytest.mark.parametrize(("values", "message"), ENTRIES)
def test_numbers_in_a_manifest_that_cannot_be_meant(
    handle: TableHandle, values: dict[str, Any], message: str
) -> None:
    snapshot = handle.current_snapshot
    assert snapshot is not None
    (manifest, *_) = handle.inspect.manifests_of(snapshot)
    path = f"{handle.location}/metadata/strange.avro"
    data = handle.io.read(manifest.manifest_path)
    handle.io.write(path, rewritten(data, lambda row: row["data_file"].update(values)))
    tables = EntryTables.of(handle.metadata)
    with pytest.raises(InvalidManifestError, match=rf"{message}.*strange\.avro|strange\.avro"):
        tables.files(handle.io, replace(manifest, manifest_path=path))


LISTS: list[tuple[dict[str, Any], str]] = [
    ({"added_files_count": 2**31}, "added_files_count"),
    ({"existing_files_count": -1}, "existing_files_count"),
    ({"manifest_length": -1}, "manifest_length"),
    ({"partition_spec_id": 2**40}, "partition spec"),
]


@pytest.mark.parametrize(("values", "message"), LISTS)
def test_numbers_in_a_manifest_list_that_cannot_be_meant(
    handle: TableHandle, values: dict[str, Any], message: str
) -> None:
    snapshot = handle.current_snapshot
    assert snapshot is not None
    assert snapshot.manifest_list is not None
    path = f"{handle.location}/metadata/strange.avro"
    data = handle.io.read(snapshot.manifest_list)
    handle.io.write(path, rewritten(data, lambda row: row.update(values)))
    with pytest.raises(InvalidManifestError, match=message):
        handle.inspect.manifests(replace(snapshot, manifest_list=path))
    with pytest.raises(InvalidManifestError, match=message):
        plan(handle.metadata, replace(snapshot, manifest_list=path), handle.io)


def in_transaction(table: TableHandle) -> None:
    with table.transaction() as tx:
        tx.set_properties({"owner": "me"})
        tx.files.append([data_file("b")])


FIRST_COMMITS: dict[str, Callable[[TableHandle], Any]] = {
    "append": lambda table: table.files.append([data_file("b")]),
    "properties": lambda table: table.set_properties({"owner": "me"}),
    "branch": lambda table: table.create_branch("dev"),
    "transaction": in_transaction,
}


@pytest.mark.parametrize("kind", ["sql", "requirements"])
@pytest.mark.parametrize("first", FIRST_COMMITS)
def test_a_table_without_a_uuid_gets_one_by_its_first_commit(
    tmp_path: Path, first: str, kind: str
) -> None:
    """Version 1 has it optional (rule 191); the Java runtime gives one, and some need one."""
    catalog = open_catalog(kind, tmp_path)
    made = make_table(catalog, version=1, files=[data_file("a")])
    found = document(made)
    del found["table-uuid"]
    path = made.metadata_location.rpartition("/")[0] + "/00009-other.metadata.json"
    made.io.write(path, json.dumps(found).encode())
    table = TableHandle(catalog, catalog.register_table("db.other", path))
    others = TableHandle(catalog, catalog.load_table("db.other"))
    assert table.uuid is None
    FIRST_COMMITS[first](table)
    uuid = document(table)["table-uuid"]
    assert UUID(uuid).version == 4
    # Others began before there was one.
    others.set_properties({"theirs": "1"})
    assert others.uuid == uuid
    assert table.refresh().properties["theirs"] == "1"


# What a predicate says of files whose manifest lacks a field of their partition.


def without_partition(table: TableHandle, manifest: ManifestFile) -> ManifestFile:
    """The manifest as a writer has it that leaves the partition's fields out."""
    reader = fastavro.reader(BytesIO(table.io.read(manifest.manifest_path)))
    schema = json.loads(reader.metadata["avro.schema"])
    rows: list[Any] = copy.deepcopy(list(reader))
    (file,) = (field["type"] for field in schema["fields"] if field["name"] == "data_file")
    (partition,) = (field["type"] for field in file["fields"] if field["name"] == "partition")
    partition["fields"] = []
    for row in rows:
        row["data_file"]["partition"] = {}
    out = BytesIO()
    kept = {k: v for k, v in reader.metadata.items() if not k.startswith("avro")}
    fastavro.writer(out, schema, rows, metadata=kept)
    path = f"{table.location}/metadata/without-{manifest.content.name}.avro"
    table.io.write(path, out.getvalue())
    return replace(manifest, manifest_path=path, manifest_length=len(out.getvalue()))


@pytest.mark.parametrize("content", list(ManifestContent))
@pytest.mark.parametrize("where", ["day = 'mon'", "day = 'mon' or day = 'wed'", "day is not null"])
def test_an_unknown_partition_is_not_taken_for_one_that_matches(
    files_catalog: Catalog, content: ManifestContent, where: str
) -> None:
    table = make_table(files_catalog, files=[data_file("a", "tue")])
    table.files.row_delta(added_deletes=[position_deletes("p", "tue")])
    (manifest,) = (m for m in table.inspect.manifests_of() if m.content is content)
    manifest = without_partition(table, manifest)
    row_filter = RowFilter(where)
    values = row_filter.statistics(table.metadata)
    entries = read_entry_columns(table.io, table.metadata, manifest, values=values)
    assert row_filter.any_match(table.metadata, manifest, entries).to_list() == [True]
    assert row_filter.all_match(table.metadata, manifest, entries).to_list() == [False]
