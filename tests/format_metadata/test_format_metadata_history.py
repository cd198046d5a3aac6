"""Snapshot summaries by Java's keys, and which snapshots expire."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from frazil.errors import ConfigurationError, ValidationError
from frazil.format.manifests import Content, DataFile
from frazil.format.metadata import parse_metadata
from frazil.format.partitions.partitioning import UNPARTITIONED, spec_for
from frazil.format.schema import Schema
from frazil.format.snapshots import (
    Expired,
    Snapshot,
    SnapshotRef,
    SummaryBuilder,
    snapshots_to_expire,
)
from frazil.format.types import IntegerType, NestedField, StringType

SCHEMA = Schema((NestedField(1, "x", IntegerType()), NestedField(2, "s", StringType())))
BY_S = spec_for(SCHEMA, ["s"], spec_id=1)
SPECS = {0: UNPARTITIONED, 1: BY_S}
ZERO_TOTALS = {
    "total-records": "0",
    "total-files-size": "0",
    "total-data-files": "0",
    "total-delete-files": "0",
    "total-position-deletes": "0",
    "total-equality-deletes": "0",
}


def file(rows: int = 10, size: int = 100, **fields: Any) -> DataFile:
    return DataFile(file_path="f", record_count=rows, file_size_in_bytes=size, **fields)


def builder(**options: Any) -> SummaryBuilder:
    return SummaryBuilder(specs=SPECS, schema=SCHEMA, **options)


def previous(summary: dict[str, str] | None) -> Snapshot:
    return Snapshot(snapshot_id=1, timestamp_ms=1, summary=summary)


POSITIONS = {"content": Content.POSITION_DELETES}
EQUALITY = {"content": Content.EQUALITY_DELETES}
VECTOR = {
    "content": Content.POSITION_DELETES, "file_format": "puffin", "content_size_in_bytes": 40
}  # fmt: skip


def test_a_first_append() -> None:
    """As Java writes it for one file of an unpartitioned table."""
    summary = builder()
    summary.add_file(file())
    assert summary.build("append", previous=None) == {
        "operation": "append",
        "added-files-size": "100",
        "added-data-files": "1",
        "added-records": "10",
        "changed-partition-count": "1",
        **ZERO_TOTALS,
        "total-records": "10",
        "total-files-size": "100",
        "total-data-files": "1",
    }


def test_every_kind_of_file() -> None:
    """Rule 303: a vector counts as a delete file of position deletes, with its blob's size."""
    summary = builder()
    summary.add_file(file())
    summary.add_file(file(3, 30, **POSITIONS))
    summary.add_file(file(4, 1000, **VECTOR))
    summary.add_file(file(5, 50, **EQUALITY))
    summary.remove_file(file(7, 70))
    summary.remove_file(file(1, 10, **POSITIONS))
    summary.remove_file(file(2, 1000, **VECTOR))
    summary.remove_file(file(6, 60, **EQUALITY))
    before = dict.fromkeys(ZERO_TOTALS, "1000")
    built = summary.build("overwrite", previous=previous(before))
    assert built == {
        "operation": "overwrite",
        "changed-partition-count": "1",
        "added-data-files": "1",
        "added-records": "10",
        "added-delete-files": "3",
        "added-position-delete-files": "1",
        "added-dvs": "1",
        "added-equality-delete-files": "1",
        "added-position-deletes": "7",
        "added-equality-deletes": "5",
        "added-files-size": str(100 + 30 + 40 + 50),
        "deleted-data-files": "1",
        "deleted-records": "7",
        "removed-delete-files": "3",
        "removed-position-delete-files": "1",
        "removed-dvs": "1",
        "removed-equality-delete-files": "1",
        "removed-position-deletes": "3",
        "removed-equality-deletes": "6",
        "removed-files-size": str(70 + 10 + 40 + 60),
        "total-records": "1003",
        "total-files-size": "1040",
        "total-data-files": "1000",
        "total-delete-files": "1000",
        "total-position-deletes": "1004",
        "total-equality-deletes": "999",
    }


@pytest.mark.parametrize(
    ("before", "total"),
    [
        (None, None),
        ({"operation": "append"}, None),
        ({"total-records": "x"}, None),
        ({"total-records": "-5"}, None),
        ({"total-records": "5"}, None),
        ({"total-records": "٣٣"}, None),
        ({"total-records": "9" * 5000}, None),
        ({"total-records": "100"}, "90"),
    ],
)
def test_totals_that_cannot_be_known_are_left_out(
    before: dict[str, str] | None, total: str | None
) -> None:
    summary = builder()
    summary.remove_file(file(10))
    built = summary.build("delete", previous=previous(before))
    assert built.get("total-records") == total


def test_summaries_of_partitions() -> None:
    summary = builder(partition_limit=2)
    summary.add_file(file(spec_id=1, partition=("a b",)))
    summary.add_file(file(spec_id=1, partition=("a b",)))
    summary.remove_file(file(spec_id=1, partition=(None,)))
    built = summary.build("overwrite", previous=None)
    assert built["changed-partition-count"] == "2"
    assert built["partition-summaries-included"] == "true"
    parts = dict(part.split("=") for part in built["partitions.s=a+b"].split(","))
    assert parts == {"added-files-size": "200", "added-data-files": "2", "added-records": "20"}
    assert "deleted-data-files=1" in built["partitions.s=null"]
    summary.add_file(file(spec_id=1, partition=("c",)))
    beyond = summary.build("overwrite", previous=None)
    assert beyond["changed-partition-count"] == "3"
    assert not any(key.startswith("partition") for key in beyond)


def test_an_unknown_operation() -> None:
    with pytest.raises(ValidationError, match="upsert"):
        builder().build("upsert", previous=None)


def test_totals_of_other_engines_add_up(fixtures_dir: Path) -> None:
    """Our totals go on from a parent's exactly as its engine's did."""
    seen = 0
    for path in sorted(fixtures_dir.rglob("*.metadata.json")):
        if path.name == "v0.metadata.json":
            continue
        metadata = parse_metadata(path.read_bytes())
        for child in metadata.snapshots:
            parent = metadata.snapshots_by_id.get(child.parent_snapshot_id or 0)
            stated = child.summary or {}
            if parent is None or "total-records" not in stated or "operation" not in stated:
                continue
            summary = builder()
            for key, value in stated.items():
                if key.startswith(("added-", "deleted-", "removed-")):
                    summary.set(key, value)
            ours = summary.build(stated["operation"], previous=parent)
            for key in ZERO_TOTALS.keys() & stated.keys() & (parent.summary or {}).keys():
                assert ours.get(key) == stated[key], (path, child.snapshot_id, key)
            seen += 1
    assert seen > 30


# -- expiry

DAY = 24 * 60 * 60 * 1000
NOW = 100 * DAY


@dataclass
class Table:
    snapshots: tuple[Snapshot, ...]
    refs: dict[str, SnapshotRef]
    properties: dict[str, str] = field(default_factory=dict)


def expire(table: Table, **options: Any) -> Expired:
    return snapshots_to_expire(table.snapshots, table.refs, table.properties, now_ms=NOW, **options)


def line(*ages: int, start: int = 1, parent: int | None = None) -> tuple[Snapshot, ...]:
    """Snapshots of those ages in days, each the parent of the next."""
    made = []
    for number, age in enumerate(ages, start):
        made.append(
            Snapshot(snapshot_id=number, parent_snapshot_id=parent, timestamp_ms=NOW - age * DAY)
        )
        parent = number
    return tuple(made)


def at(snapshot_id: int, **retention: int) -> SnapshotRef:
    return SnapshotRef(snapshot_id=snapshot_id, type="branch", **retention)


def tag(snapshot_id: int, **retention: int) -> SnapshotRef:
    return SnapshotRef(snapshot_id=snapshot_id, type="tag", **retention)


OLD = line(50, 40, 30, 4, 1)
EXPIRE = "history.expire."


@pytest.mark.parametrize(
    ("table", "options", "ids", "refs"),
    [
        # 5 days by default, the newest always.
        (Table(OLD, {"main": at(5)}), {}, (1, 2, 3), ()),
        (Table(line(50, 40), {"main": at(2)}), {}, (1,), ()),
        (Table((), {}), {}, (), ()),
        # Table properties, and arguments in their place (rule 187).
        (Table(OLD, {"main": at(5)}, {EXPIRE + "max-snapshot-age-ms": str(35 * DAY)}), {},
         (1, 2), ()),
        (Table(OLD, {"main": at(5)}, {EXPIRE + "min-snapshots-to-keep": "4"}), {}, (1,), ()),
        (Table(OLD, {"main": at(5)}), {"retain_last": 3}, (1, 2), ()),
        (Table(OLD, {"main": at(5)}), {"older_than_ms": NOW}, (1, 2, 3, 4), ()),
        (Table(OLD, {"main": at(5)}), {"older_than_ms": NOW - 41 * DAY}, (1,), ()),
        # A branch's own retention goes before both.
        (Table(OLD, {"main": at(5, min_snapshots_to_keep=4)}), {"retain_last": 1}, (1,), ()),
        (Table(OLD, {"main": at(5, max_snapshot_age_ms=45 * DAY)}),
         {"older_than_ms": NOW}, (1,), ()),
        # Tags keep their snapshot, not its past.
        (Table(OLD, {"main": at(5), "t": tag(2)}), {}, (1, 3), ()),
        # References too old go, but never main.
        (Table(OLD, {"main": at(3, max_ref_age_ms=1), "t": tag(2, max_ref_age_ms=39 * DAY)}),
         {}, (1, 2), ("t",)),
        (Table(OLD, {"main": at(5), "t": tag(2, max_ref_age_ms=40 * DAY)}), {}, (1, 3), ()),
        (Table(OLD, {"main": at(5), "t": tag(2)}, {EXPIRE + "max-ref-age-ms": str(DAY)}), {},
         (1, 2, 3), ("t",)),
        (Table(OLD, {"main": at(5), "t": tag(99)}), {}, (1, 2, 3), ("t",)),
        # Two branches: what either keeps stays.
        (Table(OLD + line(20, start=6, parent=2),
               {"main": at(5), "dev": at(6, min_snapshots_to_keep=2)}), {}, (1, 3), ()),
        # What no reference reaches (staged, rolled back) stays while it is young.
        (Table(OLD + line(20, 2, start=6), {"main": at(5)}), {}, (1, 2, 3, 6), ()),
        # Named ones go in any case.
        (Table(OLD, {"main": at(5)}), {"snapshot_ids": [4]}, (1, 2, 3, 4), ()),
    ],
)  # fmt: skip
def test_what_expires(
    table: Table, options: dict[str, Any], ids: tuple[int, ...], refs: tuple[str, ...]
) -> None:
    """Rules 185-187."""
    assert expire(table, **options) == Expired(ids, refs)


def test_expiry_that_is_refused() -> None:
    table = Table(OLD, {"main": at(5), "t": tag(2)})
    with pytest.raises(ValidationError, match="tag 't' points to it"):
        expire(table, snapshot_ids=[2])
    with pytest.raises(ValidationError, match="at least 1"):
        expire(table, retain_last=0)
    table.properties = {"history.expire.min-snapshots-to-keep": "many"}
    with pytest.raises(ConfigurationError, match="many"):
        expire(table)


def test_a_circle_of_parents_ends() -> None:
    ring = (
        Snapshot(snapshot_id=1, parent_snapshot_id=2, timestamp_ms=NOW),
        Snapshot(snapshot_id=2, parent_snapshot_id=1, timestamp_ms=NOW),
    )
    assert expire(Table(ring, {"main": at(1)})) == Expired((), ())
