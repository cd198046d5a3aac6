"""Snapshots that change whole files, compared together: what came and went by one's own books."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from table_cases import CountingIO, data_file, make_table, open_catalog, position_deletes

from frazil.format.metadata import TableMetadata
from frazil.format.snapshots import Snapshot
from frazil.planning import changes_whole
from frazil.planning.changes_whole import Compared, WholeFiles, whole_changes
from frazil.storage.files import FileIO
from frazil.table.handle import TableHandle

MERGING = {"commit.manifest.min-count-to-merge": "3"}
Books = list[tuple[int, str]]


def compared(table: TableHandle) -> list[Compared]:
    snapshots: list[Snapshot] = list(table.metadata.snapshots)
    return [Compared(s, p) for s, p in zip(snapshots, [None, *snapshots], strict=False)]


def told(found: tuple[WholeFiles, ...]) -> Books:
    rows: Books = []
    for each in found:
        paths = each.plan.files["file_path"].to_list()
        assert each.plan.files["ordinal"].to_list() == list(range(len(paths)))
        names = [path.rsplit("/", 1)[-1].split(".")[0] for path in paths]
        rows += zip(each.changes.to_list(), names, strict=True)
    return sorted(rows)


def compare(metadata: TableMetadata, table: TableHandle) -> tuple[Books, Books, frozenset[int]]:
    found = whole_changes(metadata, compared(table), FileIO())
    return told(found.added), told(found.removed), found.alone


@given(steps=st.lists(st.tuples(st.sampled_from("ao"), st.integers(0, 9)), max_size=14))
@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_histories_of_appends_and_overwrites(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    table = make_table(open_catalog("filesystem", tmp_path_factory.mktemp("t")), properties=MERGING)
    live: list[str] = []
    added: Books = []
    removed: Books = []
    for place, (step, which) in enumerate(steps):
        new = f"f{place:02d}"
        if step == "a" or not live:
            table.files.append([data_file(new)])
        else:
            old = live.pop(which % len(live))
            table.files.overwrite([data_file(new)], removed=[data_file(old)])
            removed.append((place, old))
        live.append(new)
        added.append((place, new))
    assert compare(table.metadata, table) == (sorted(added), sorted(removed), frozenset())


def test_deletes_that_come_are_compared_alone_and_what_went_under_them_too(
    tmp_path: Path,
) -> None:
    table = make_table(open_catalog("filesystem", tmp_path), properties=MERGING)
    table.files.append([data_file("a"), data_file("b")])
    table.files.row_delta(added_deletes=[position_deletes("d")])
    table.files.append([data_file("c")])
    table.files.overwrite([data_file("e")], removed=[data_file("b")])
    added, removed, alone = compare(table.metadata, table)
    assert added == [(0, "a"), (0, "b"), (2, "c")]
    assert removed == []
    assert alone == {1, 3}


def test_a_file_that_is_listed_twice_counts_twice_and_comes_again(tmp_path: Path) -> None:
    table = make_table(open_catalog("filesystem", tmp_path), properties=MERGING)
    table.files.fast_append([data_file("a")])
    table.files.fast_append([data_file("a")])
    first = table.metadata.snapshots[0].snapshot_id
    table.files.append([data_file("b")])
    table.rollback_to_snapshot(first)
    table.files.append([data_file("c")])
    snapshots = {s.snapshot_id: s for s in table.metadata.snapshots}
    newest = table.metadata.snapshots[-1]
    # The snapshot before the last is not its parent: it was rolled back.
    pairs = [Compared(newest, snapshots[table.metadata.snapshots[2].snapshot_id])]
    found = whole_changes(table.metadata, pairs, FileIO())
    assert (told(found.added), told(found.removed)) == ([(0, "c")], [(0, "a"), (0, "b")])


@pytest.mark.parametrize("at_once", [1, 500_000])
def test_each_manifest_is_opened_once_for_many_snapshots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(changes_whole, "_ENTRIES_AT_ONCE", at_once)
    io = CountingIO()
    table = make_table(
        open_catalog("filesystem", tmp_path, io=io),
        properties={"commit.manifest-merge.enabled": "false"},
    )
    for number in range(40):
        table.files.append([data_file(f"f{number:02d}")])
    io.caches.clear()
    io.opened.clear()
    found = whole_changes(table.metadata, compared(table), io)
    assert told(found.added) == [(n, f"f{n:02d}") for n in range(40)]
    assert io.opened["manifest"] == io.opened["list"] == 40
