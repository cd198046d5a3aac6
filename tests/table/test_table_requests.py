"""What operations ask of the store grows with the change, not with the table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from table_cases import (
    CountingIO,
    avro_files,
    avro_files_in_use,
    data_file,
    names,
    open_catalog,
    position_deletes,
)
from table_cases import make_table as made_by

from frazil.catalog import metadata_files
from frazil.catalog.protocol import Catalog
from frazil.errors import ConflictError
from frazil.format.types import IntegerType, ListType, NestedField, StringType, StructType
from frazil.planning.cache import ManifestCache
from frazil.planning.plan import plan
from frazil.planning.removal import data_files
from frazil.storage.avro.manifests import read_manifest_list
from frazil.storage.moved import store_key
from frazil.table.conflicts.validation import Validation
from frazil.table.handle import TableHandle
from frazil.table.updates.references import Retention

MANY = 40
MORE = StructType(
    (
        NestedField(1, "x", IntegerType(), required=True),
        NestedField(2, "y", ListType(3, StringType())),
    )
)
NO_MERGE = {"commit.manifest-merge.enabled": "false"}
MERGE = {"commit.manifest-merge.enabled": "true", "commit.manifest.min-count-to-merge": "2"}


@pytest.fixture
def io() -> CountingIO:
    return CountingIO()


@pytest.fixture
def handle(tmp_path: Path, io: CountingIO) -> TableHandle:
    """A table of as many manifests as files, all of one partition."""
    table = made_by(open_catalog("filesystem", tmp_path, io=io), properties=NO_MERGE)
    for number in range(MANY):
        table.files.append([data_file(f"f{number:02d}")])
    table.io.caches.clear()
    io.opened.clear()
    return table


def planned(table: TableHandle, *files: str) -> list[Any]:
    """Files as a plan of the table gives them to a commit."""
    found = plan(table.metadata, table.current_snapshot, table.io)
    wanted = found.files["file_path"].str.contains_any([f"{name}." for name in files])
    return data_files(table.metadata, found, found.files.filter(wanted)["ordinal"].to_list())


def test_removing_a_planned_file_opens_its_manifest_alone(
    handle: TableHandle, io: CountingIO
) -> None:
    (file,) = planned(handle, "f07")
    handle.io.caches.clear()
    io.opened.clear()
    handle.files.overwrite([data_file("new")], removed=[file])
    # For its columns, and for the bytes that are copied.
    assert io.opened["manifest"] <= 2
    assert io.opened["list"] == 1
    assert names(handle) == sorted(["new", *(f"f{n:02d}" for n in range(MANY) if n != 7)])


def test_a_planned_file_is_found_in_the_manifest_that_another_commit_wrote(
    handle: TableHandle,
) -> None:
    first, second = planned(handle, "f07"), planned(handle, "f08")
    handle.set_properties(MERGE)
    handle.files.append([data_file("merging")])
    handle.files.delete(removed=first)
    assert "f07" not in names(handle)
    with pytest.raises(ConflictError, match="f07"):
        handle.files.delete(removed=[*first, *second])
    assert "f08" in names(handle)


def test_a_file_that_is_listed_twice_goes_from_both_manifests(handle: TableHandle) -> None:
    handle.files.fast_append([data_file("f07")])
    both = planned(handle, "f07")
    assert len(both) == 2
    handle.files.delete(removed=both)
    assert "f07" not in names(handle)


def test_expiry_asks_for_the_lists_beside_what_expires(handle: TableHandle, io: CountingIO) -> None:
    oldest = [snapshot.snapshot_id for snapshot in handle.metadata.snapshots[:10]]
    handle.maintenance.expire_snapshots(snapshot_ids=oldest)
    # Ten that expire, and the one that follows them.
    assert io.opened["list"] == 11
    assert len(handle.metadata.snapshots) == MANY - 10
    io.opened.clear()
    handle.io.caches.clear()
    # The oldest one's parent is not known any more, and nothing kept is as old.
    oldest = [snapshot.snapshot_id for snapshot in handle.metadata.snapshots[:2]]
    handle.maintenance.expire_snapshots(snapshot_ids=oldest)
    assert io.opened["list"] == 3
    assert avro_files(handle) == avro_files_in_use(handle)


def test_expiry_keeps_what_a_tag_behind_a_gap_needs(handle: TableHandle) -> None:
    """The tagged snapshot and the expired one are linked by a snapshot that went before."""
    tagged, gone, last = handle.metadata.snapshots[3:6]
    handle.create_tag("kept", snapshot_id=tagged.snapshot_id)
    handle.create_branch("kept too", snapshot_id=tagged.snapshot_id)
    handle.maintenance.expire_snapshots(snapshot_ids=[gone.snapshot_id])
    handle.io.caches.clear()
    handle.set_properties(MERGE)
    handle.files.append([data_file("merging")])
    others = [each.snapshot_id for each in handle.metadata.snapshots[4:-1]]
    assert last.snapshot_id in others
    handle.maintenance.expire_snapshots(snapshot_ids=others)
    assert avro_files(handle) == avro_files_in_use(handle)
    assert names(handle, ref="kept") == [f"f{number:02d}" for number in range(4)]


def test_expiry_keeps_a_file_that_was_published_from_a_staged_snapshot(tmp_path: Path) -> None:
    """The published snapshot is no neighbour of the staged one, and holds its file."""
    table = made_by(open_catalog("filesystem", tmp_path), properties=NO_MERGE)
    path = f"{table.location}/data/staged.parquet"
    table.io.create(path, b"rows")
    table.files.append([data_file("a")])
    table.files.append([replace(data_file("staged"), file_path=path)], wap_id="w")
    table.files.append([data_file("b")])
    table.publish_changes("w")
    table.files.append([data_file("c")])
    (staged,) = [s for s in table.metadata.snapshots if (s.summary or {}).get("wap.id") == "w"]
    table.io.caches.clear()
    table.maintenance.expire_snapshots(snapshot_ids=[staged.snapshot_id])
    assert table.io.exists(path)
    assert names(table) == ["a", "b", "c", "staged"]
    assert avro_files(table) == avro_files_in_use(table)


@pytest.mark.parametrize(
    ("codec", "kept"), [("none", True), ("gzip", True), ("none", False)], ids=str
)
def test_a_commit_parses_no_metadata_that_this_process_wrote(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch, codec: str, kept: bool
) -> None:
    """Nor metadata that is too large to be kept, while a table has it."""
    if not kept:
        catalog.io.caches.resize({"cache.metadata-bytes": "0"})
    parsed: list[str] = []
    parse = metadata_files.parse_metadata

    def counted(data: bytes, *, file: str) -> Any:
        parsed.append(file)
        return parse(data, file=file)

    monkeypatch.setattr(metadata_files, "parse_metadata", counted)
    table = made_by(catalog, properties={"write.metadata.compression-codec": codec})
    for number in range(5):
        table.files.append([data_file(f"f{number}")])
    assert parsed == []
    table.io.caches.clear()
    table.files.append([data_file("after")])
    assert len(parsed) == 1


@pytest.mark.parametrize("version", [1, 2, 3])
def test_what_is_kept_of_metadata_is_what_its_file_says(catalog: Catalog, version: int) -> None:
    table = made_by(catalog, version=version)
    table.files.append([data_file("a"), data_file("b")])
    table.set_properties({"a": "1", "comment": "Größe \U0001f600"})
    with table.update_schema() as u:
        u.add_column("more", MORE, doc="what was added")
        u.rename_column("id", "number")
    with table.update_spec() as u:
        u.add_field("bucket(4, number)")
    table.create_tag("t", retention=Retention(max_ref_age_ms=1_000_000))
    table.create_branch("b", retention=Retention(min_snapshots_to_keep=3))
    table.files.append([data_file("c")], branch="b", snapshot_properties={"who": "me"})
    if version > 1:
        table.files.row_delta(added_deletes=[position_deletes("d")] if version == 2 else [])
    table.files.delete(removed=[data_file("a")])
    table.maintenance.expire_snapshots_keeping_files(older_than="2999-01-01")
    kept = catalog.load_table(table.identifier).metadata
    catalog.io.caches.clear()
    assert catalog.load_table(table.identifier).metadata == kept


@pytest.mark.parametrize("version", [2, 3])
def test_what_is_kept_of_a_written_list_is_what_its_file_says(
    catalog: Catalog, version: int
) -> None:
    table = made_by(catalog, version=version)
    table.files.append([data_file("a"), data_file("b", None)])
    table.files.append([data_file("c", "tue")])
    table.files.overwrite([data_file("d")], removed=[data_file("a")])
    if version == 2:
        table.files.row_delta(added_deletes=[position_deletes("e")])
    table.set_properties(MERGE)
    table.files.append([data_file("f")])
    for snapshot in table.metadata.snapshots:
        kept = ManifestCache.of(table.io).manifest_list(
            (store_key(table.io), snapshot.manifest_list)
        )
        assert kept == read_manifest_list(table.io, snapshot.manifest_list)


def test_a_commit_reads_no_list_that_this_process_wrote(tmp_path: Path, io: CountingIO) -> None:
    table = made_by(open_catalog("filesystem", tmp_path, io=io), properties=NO_MERGE)
    for number in range(3):
        table.files.append([data_file(f"f{number}")])
    assert io.opened["list"] == 0


def test_who_read_no_file_looks_at_no_removal_of_others(
    handle: TableHandle, io: CountingIO, tmp_path: Path
) -> None:
    read = handle.current_snapshot
    assert read is not None
    others = open_catalog("filesystem", tmp_path)
    rival = TableHandle(others, others.load_table("db.t"))
    rival.files.delete(removed=[data_file("f00")])
    handle.refresh()
    handle.files.overwrite(
        [data_file("new", "tue")],
        where="day = 'tue'",
        validation=Validation(read.snapshot_id, check_deletes=False),
    )
    assert io.opened["manifest"] == 0
