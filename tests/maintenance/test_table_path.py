"""A copy of a table by the list that was staged is the same table in another place."""

from __future__ import annotations

import csv
import shutil
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import pytest
from independent_walk import local, metadata_of, reached

import frazil
from ci_share import in_circles, only_in_soak
from frazil.errors import ValidationError


@pytest.fixture(params=[2, only_in_soak(3)])
def moving(request, spark, lake):
    """Rows, deletes by position, a branch, statistics."""
    made = lake.create_table(
        "db.t",
        "id bigint, part int, at date",
        partition_by=["part", "day(at)"],
        format_version=request.param,
        properties={"write.delete.mode": "merge-on-read"},
    )
    made.append(rows(spark, 0, 30))
    made.create_branch("audit")
    made.delete("id in (0, 3, 7)")
    made.maintenance.compute_table_stats()
    return made


def rows(spark: Any, start: int, end: int) -> Any:
    day = "date_add(date'2024-01-01', int(id % 2)) as at"
    return spark.range(start, end).selectExpr("id", "cast(id % 3 as int) as part", day)


def copied(result: Any) -> list[tuple[str, str]]:
    """Copies what the file list says; the list."""
    with local(result.file_list_location).open(newline="") as stream:
        listed = [(row[0], row[1]) for row in csv.reader(stream)]
    for source, target in listed:
        local(target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(local(source), local(target))
    return listed


def opened(spark: Any, target: str, name: str) -> Any:
    return frazil.open_table(f"{target}/metadata/{name}", spark=spark)


def test_a_copy_holds_the_same_rows_at_every_snapshot(spark, moving, tmp_path):
    target = f"file://{tmp_path}/copy/t"
    # What an expired snapshot added is there.
    moving.append(rows(spark, 30, 40))
    moving.append(rows(spark, 40, 43))
    expire(moving)
    result = moving.maintenance.rewrite_table_path(moving.location, target)
    listed = copied(result)
    assert result.file_list.rows() == listed
    assert result.latest_version == local(moving.metadata_location).name
    assert "to copy" in repr(result)
    expected = {
        snapshot.snapshot_id: ids(moving.scan(snapshot_id=snapshot.snapshot_id))
        for snapshot in moving.metadata.snapshots
    }
    kept = reached(moving.metadata_location)
    # Nothing of the copy may be read from the first place.
    local(moving.location).rename(tmp_path / "gone")
    copy = opened(spark, target, result.latest_version)
    for snapshot_id, wanted in expected.items():
        assert ids(copy.scan(snapshot_id=snapshot_id)) == wanted
    there = f"{target}/metadata/{result.latest_version}"
    assert str(moving.location) not in str(metadata_of(there))
    moved = {str(path).replace(str(local(moving.location)), str(local(target))) for path in kept}
    assert {str(path) for path in reached(there)} == moved
    assert copy.maintenance.check().is_sound


def with_manifests(table: Any) -> None:
    table.delete("id in (11, 104)")
    table.maintenance.rewrite_manifests()


BETWEEN = {
    "no expiry": lambda t: t.delete("id in (11, 104)"),
    "manifests": with_manifests,
    "a compaction": lambda t: t.maintenance.compact(rewrite_all=True),
    "rows that a tag keeps": lambda t: (t.create_tag("kept"), t.delete("true")),
    "a rollback": lambda t: (
        t.delete("id < 20"),
        t.rollback_to_snapshot(t.metadata.snapshots[-2].snapshot_id),
    ),
}


@pytest.mark.parametrize("case", in_circles(BETWEEN, test=1))
def test_what_was_added_since_is_copied_alone(spark, moving, tmp_path, case):
    """What is reached now counts, and not which snapshot added it; nothing is copied twice."""
    target = f"file://{tmp_path}/copy/t"
    first = moving.maintenance.rewrite_table_path(moving.location, target)
    copied(first)
    moving.append(rows(spark, 100, 110))
    BETWEEN[case](moving)
    if case != "no expiry":
        moving.append(rows(spark, 200, 203))
        expire(moving)
    second = moving.maintenance.rewrite_table_path(
        moving.location, target, start_version=first.latest_version
    )
    data = {to for _, to in copied(second) if "/data/" in to}
    assert data
    assert data & set(first.file_list["target"]) == set()
    wanted = {name: ids(moving.scan(ref=name)) for name in moving.metadata.refs}
    there = reached(moving.metadata_location)
    local(moving.location).rename(tmp_path / "gone")
    copy = opened(spark, target, second.latest_version)
    assert {name: ids(copy.scan(ref=name)) for name in copy.metadata.refs} == wanted
    found = {str(path) for path in local(target).rglob("*") if path.is_file()}
    moved = {str(path).replace(str(local(moving.location)), str(local(target))) for path in there}
    assert {path for path in moved if "metadata.json" not in path} <= found
    assert not any(each.kind.startswith(("data", "del", "pos", "man")) for each in problems(copy))


def expire(table: Any) -> None:
    table.maintenance.expire_snapshots(older_than=datetime(2100, 1, 1), retain_last=1)
    table.refresh()


def problems(table: Any) -> list[Any]:
    return [SimpleNamespace(**row) for row in table.maintenance.check().frame.to_dicts()]


def ids(scan: Any) -> list[int]:
    return sorted(row.id for row in scan.to_df().select("id").collect())


@pytest.mark.parametrize(
    ("source", "more", "words"),
    in_circles(
        [
            ("file:///elsewhere", {}, "does not begin"),
            ("", {}, "source_prefix"),
            (None, {"start_version": "v9.metadata.json"}, "v9"),
            (None, {"end_version": "v9.metadata.json"}, "v9"),
        ],
        test=1,
    ),
    ids=str,
)
def test_wrong_arguments_are_refused(spark, lake, source, more, words):
    table = lake.create_table("db.t", "id bigint")
    table.append(spark.range(3))
    with pytest.raises(ValidationError, match=words):
        table.maintenance.rewrite_table_path(
            table.location if source is None else source, "file:///new", **more
        )
