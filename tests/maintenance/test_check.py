"""A check finds what was broken on purpose, and a repair mends what can be mended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fastavro
import pytest
from independent_walk import local, metadata_of

from ci_share import only_in_check, only_in_soak
from frazil.errors import InvalidManifestError
from frazil.planning import load
from frazil.spark.session import costs
from frazil.table.maintenance import check


@pytest.fixture(params=[only_in_soak(2), 3])
def checked(request, spark, lake):
    """Three files, of one of which rows are deleted by position."""
    made = lake.create_table(
        "db.t",
        "id bigint, part int",
        partition_by=["part"],
        format_version=request.param,
        properties={"write.delete.mode": "merge-on-read"},
    )
    made.append(spark.range(30).selectExpr("id", "cast(id % 3 as int) as part"))
    made.delete("id in (0, 3)")
    return made


def files(table: Any, content: int = 0) -> list[Path]:
    """The table's files of one content, by partition."""
    frame = table.inspect.files().filter(content=content)
    return [local(path) for path in frame.sort("file_path")["file_path"]]


def rewritten_entry(table: Any, path: Path, **changes: Any) -> None:
    """A manifest that says something else of a file, in the place of the one there."""
    metadata = metadata_of(table.metadata_location)
    current = next(
        each
        for each in metadata["snapshots"]
        if each["snapshot-id"] == metadata["current-snapshot-id"]
    )
    with local(current["manifest-list"]).open("rb") as stream:
        manifests = list(fastavro.reader(stream))
    for manifest in manifests:
        place = local(manifest["manifest_path"])
        with place.open("rb") as stream:
            reader = fastavro.reader(stream)
            schema, header, entries = reader.writer_schema, reader.metadata, list(reader)
        for entry in entries:
            if local(entry["data_file"]["file_path"]) == path:
                entry["data_file"].update(changes)
                kept = {k: v for k, v in header.items() if not k.startswith("avro.")}
                with place.open("wb") as stream:
                    fastavro.writer(stream, schema, entries, metadata=kept)
                with_length(current, manifest["manifest_path"], place.stat().st_size)
    table.io.caches.clear()


def with_length(snapshot: dict[str, Any], manifest_path: str, length: int) -> None:
    """A manifest list that states another length of a manifest."""
    place = local(snapshot["manifest-list"])
    with place.open("rb") as stream:
        reader = fastavro.reader(stream)
        schema, header, rows = reader.writer_schema, reader.metadata, list(reader)
    for row in rows:
        if row["manifest_path"] == manifest_path:
            row["manifest_length"] = length
    kept = {k: v for k, v in header.items() if not k.startswith("avro.")}
    with place.open("wb") as stream:
        fastavro.writer(stream, schema, rows, metadata=kept)


def found(result: Any) -> set[tuple[str, str, str]]:
    """(problem, kind, name) of each row."""
    rows = result.frame.iter_rows(named=True)
    return {(row["problem"], row["kind"], local(row["file_path"]).name) for row in rows}


def test_a_sound_table_has_no_problems(checked):
    result = checked.maintenance.check()
    assert result.is_sound
    assert (result.snapshots_count, result.files_count, result.problems_count) == (2, 4, 0)
    assert "none" in repr(result)


@pytest.mark.parametrize("place", ["here", "on executors"])
def test_lost_and_broken_files_are_found(checked, monkeypatch, place):
    if place == "on executors":
        monkeypatch.setattr(costs, "CHECKED_FILES", 0)
        monkeypatch.setattr(costs, "FILES_OF_A_CHECK", 2)
    else:
        monkeypatch.setattr(load, "FILES_AT_ONCE", 1)
        monkeypatch.setattr(check, "_FILES_BETWEEN", 1)
    lost, cut, noise = files(checked)
    lost.unlink()
    with cut.open("ab") as stream:
        stream.write(b"more")
    noise.write_bytes(b"x" * noise.stat().st_size)
    [deletes] = files(checked, content=1)
    deletes.unlink()
    checked.io.caches.clear()
    kind = "deletion vector" if checked.format_version == 3 else "position deletes"
    heard = []
    result = checked.maintenance.check(on_progress=heard.append)
    told = [str(each) for each in heard if each.stage == "checking files"]
    assert (len(told) > 1, told[-1]) == (True, "checking files: 4 of 4")
    assert str(heard[-1]) == "done"
    names = {(p, k, n) for p, k, n in found(result) if (p, n) != ("unreadable", cut.name)}
    assert names == {
        ("missing", "data", lost.name),
        ("size", "data", cut.name),
        ("unreadable", "data", noise.name),
        ("missing", kind, deletes.name),
    }
    assert result.frame["in_current_snapshot"].all()
    size = result.frame.filter(problem="size").row(0, named=True)
    assert size["found"] == size["stated"] + 4 == cut.stat().st_size


def test_each_file_is_looked_at_where_few_problems_are_named(checked, monkeypatch):
    monkeypatch.setattr(costs, "CHECKED_FILES", 0)
    monkeypatch.setattr(costs, "FILES_OF_A_CHECK", 2)
    monkeypatch.setattr(costs, "MOST_NAMED", 1)
    for file in files(checked):
        file.unlink()
    checked.io.caches.clear()
    result = checked.maintenance.check()
    assert (result.problems_count, len(result.frame), result.files_count) == (3, 1, 4)
    assert "and 2 more" in repr(result)


def test_missing_metadata_is_found(checked, spark):
    checked.append(spark.range(30, 33).selectExpr("id", "cast(0 as int) as part"))
    metadata = metadata_of(checked.metadata_location)
    old_list = local(metadata["snapshots"][0]["manifest-list"])
    old_list.unlink()
    old_metadata = local(metadata["metadata-log"][0]["metadata-file"])
    old_metadata.unlink()
    manifest = local(checked.inspect.manifests()["path"][0])
    manifest.write_bytes(b"broken")
    checked.io.caches.clear()
    result = checked.maintenance.check()
    assert found(result) >= {
        ("missing", "manifest list", old_list.name),
        ("missing", "metadata file", old_metadata.name),
        ("size", "manifest", manifest.name),
    }
    current = {local(p).name for p in result.frame.filter("in_current_snapshot")["file_path"]}
    assert current == {manifest.name}


def test_a_repair_mends_what_can_be_mended(checked, spark):
    total = checked.scan().count()
    lost, wrong, _ = files(checked)
    held = checked.scan("part = 0").count()
    lost.unlink()
    rewritten_entry(checked, wrong, file_size_in_bytes=17, record_count=4)
    broken = checked.maintenance.check()
    assert found(broken) >= {
        ("missing", "data", lost.name),
        ("size", "data", wrong.name),
        ("record count", "data", wrong.name),
    }
    done = checked.maintenance.repair()
    assert (done.removed_data_files_count, done.corrected_files_count) == (1, 1)
    assert "corrected  1 files" in repr(done)
    after = checked.maintenance.check()
    assert not after.frame["in_current_snapshot"].any()
    checked.refresh()
    assert checked.scan().count() == total - held
    entry = checked.inspect.files().filter(record_count=10).sort("file_path")
    assert wrong.name in entry["file_path"].str.split("/").list.last().to_list()
    assert {row.id for row in checked.to_df().collect()} == {i for i in range(30) if i % 3}
    totals = [int(each.summary["total-records"]) for each in checked.metadata.snapshots[-2:]]
    assert totals[1] - totals[0] == 10 - 4


def test_a_missing_delete_file_is_left_to_the_user(checked):
    [deletes] = files(checked, content=1)
    deletes.unlink()
    checked.io.caches.clear()
    before = checked.metadata.current_snapshot_id
    done = checked.maintenance.repair()
    assert (done.removed_data_files_count, done.corrected_files_count) == (0, 0)
    assert done.frame["problem"].to_list() == ["missing"]
    assert checked.refresh().metadata.current_snapshot_id == before


def of_the_list(table: Any, snapshot_id: int | None = None) -> tuple[Path, Any, dict, list]:
    """A snapshot's manifest list: its place, schema, header and rows."""
    metadata = metadata_of(table.metadata_location)
    wanted = snapshot_id or metadata["current-snapshot-id"]
    snapshot = next(each for each in metadata["snapshots"] if each["snapshot-id"] == wanted)
    place = local(snapshot["manifest-list"])
    with place.open("rb") as stream:
        reader = fastavro.reader(stream)
        header = {k: v for k, v in reader.metadata.items() if not k.startswith("avro.")}
        return place, reader.writer_schema, header, list(reader)


def list_old_deletes(table: Any, snapshot_id: int) -> None:
    """The current snapshot also lists the deletes of an older one, as DuckDB leaves them."""
    old = [row for row in of_the_list(table, snapshot_id)[3] if row["content"] == 1]
    place, schema, header, rows = of_the_list(table)
    with place.open("wb") as stream:
        fastavro.writer(stream, schema, [*rows, *old], metadata=header)
    table.io.caches.clear()


@pytest.fixture
def one_file(spark, lake):
    """Rows 0 to 8 in one file, row 1 deleted; manifests are never merged."""
    made = lake.create_table(
        "db.t",
        "id bigint",
        format_version=2,
        properties={
            "write.delete.mode": "merge-on-read",
            "commit.manifest-merge.enabled": "false",
        },
    )
    made.append(spark.range(9).coalesce(1))
    return made


def ids(table: Any) -> set[int]:
    return {row.id for row in table.to_df().collect()}


@pytest.mark.parametrize("newest_has_all", [True, only_in_check(False)])
def test_two_vectors_of_a_data_file_are_one_where_the_newest_has_all(one_file, newest_has_all):
    one_file.upgrade(3)
    first = one_file.metadata.current_snapshot_id
    one_file.delete("id = 1")
    old = one_file.metadata.current_snapshot_id
    if not newest_has_all:
        one_file.rollback_to_snapshot(first)
    one_file.delete("id = 2")
    list_old_deletes(one_file, old)
    with pytest.raises(InvalidManifestError, match="two deletion vectors"):
        ids(one_file)
    check = one_file.maintenance.check()
    assert check.frame["problem"].to_list() == ["two vectors"] * 2
    assert check.frame["in_current_snapshot"].all()
    done = one_file.maintenance.repair()
    if newest_has_all:
        assert (done.removed_delete_files_count, len(done.frame)) == (1, 0)
        assert ids(one_file.refresh()) == set(range(9)) - {1, 2}
    else:
        assert done.removed_delete_files_count == 0
        assert all("roll back" in answer for answer in done.frame["answer"])


def test_position_deletes_beside_a_vector_go_and_no_row_changes(one_file):
    one_file.delete("id = 1")
    old = one_file.metadata.current_snapshot_id
    one_file.upgrade(3)
    one_file.delete("id = 2")
    list_old_deletes(one_file, old)
    before = ids(one_file)
    assert one_file.maintenance.check().frame["problem"].to_list() == ["beside a vector"]
    done = one_file.maintenance.repair()
    assert (done.removed_delete_files_count, len(done.frame)) == (1, 0)
    assert ids(one_file.refresh()) == before == set(range(9)) - {1, 2}


@pytest.mark.parametrize("checked", [3], indirect=True)
@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"partition": {"part": 1}}, "other partition"),
        only_in_check({"referenced_data_file": None}, "no data file"),
        only_in_check({"content": 2}, "no equality ids"),
    ],
)
def test_what_no_read_accepts_of_deletes_is_found_and_has_no_repair(checked, changes, problem):
    [deletes] = files(checked, content=1)
    rewritten_entry(checked, deletes, **changes)
    with pytest.raises(InvalidManifestError):
        ids(checked)
    assert checked.maintenance.check().frame["problem"].to_list() == [problem]
    done = checked.maintenance.repair()
    assert (done.removed_delete_files_count, done.frame["problem"].to_list()) == (0, [problem])
    assert "roll back" in done.frame["answer"][0]
