"""Merges of manifests in commits: a commit takes a bounded part, and entries keep what they say."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table_cases import (
    CountingIO,
    data_file,
    head,
    live_entries,
    make_table,
    names,
    open_catalog,
    position_deletes,
    short,
    summary,
)

from ci_share import examples
from frazil.format.manifests import ManifestFile
from frazil.table.handle import TableHandle
from frazil.table.manifests.merge import BinLimits, pack_from_the_end
from frazil.table.snapshots.rewrite_manifests import RewriteManifests

NO_MERGE = {"commit.manifest-merge.enabled": "false"}
MERGE = {"commit.manifest-merge.enabled": "true"}
Model = dict[str, tuple[Any, ...]]


def filled(
    tmp_path: Path, io: CountingIO, *, version: int, count: int
) -> tuple[TableHandle, Model]:
    """A table of that many manifests in two specs, one with a deleted entry; what each file is."""
    catalog = open_catalog("filesystem", tmp_path, io=io)
    table = make_table(catalog, version=version, properties=NO_MERGE)
    model: Model = {}
    for number in range(count):
        if number == count // 2:
            with table.update_spec() as spec:
                spec.remove_field("day")
        append(table, model, f"f{number}", rows=10 + number)
    table.files.delete(removed=[data_file("f1", "mon", rows=11)])
    del model["f1"]
    return table, model


def append(table: TableHandle, model: Model, name: str, *, rows: int) -> None:
    """Append a file of the table's spec, and note what the specification says of its entry."""
    spec = table.metadata.spec
    # A removed field stays in the specs of v1, with the transform void.
    kept = spec.spec_id == 0
    partition = ("mon" if kept else None,)[: len(spec.fields)]
    file = data_file(name, rows=rows, spec_id=spec.spec_id, partition=partition)
    table.files.append([file])
    number = 0 if table.metadata.format_version == 1 else table.metadata.last_sequence_number
    model[name] = (spec.spec_id, head(table), number, number, rows)


def told(table: TableHandle) -> Model:
    """What the table's own entries are; by PyIceberg where it reads the version."""
    entries = table.inspect.entries()
    live = entries.filter(entries["status"] != 2)
    own = {
        short(file["file_path"]): (
            file["spec_id"],
            *(row[name] for name in ("snapshot_id", "sequence_number", "file_sequence_number")),
            file["record_count"],
        )
        for row in live.iter_rows(named=True)
        for file in [row["data_file"]]
    }
    if table.metadata.format_version < 3:
        assert own == {
            short(entry.data_file.file_path): (
                entry.data_file.spec_id,
                entry.snapshot_id,
                entry.sequence_number,
                entry.file_sequence_number,
                entry.data_file.record_count,
            )
            for entry in live_entries(table)
        }
    return own


def row_ids(table: TableHandle) -> dict[str, tuple[int, int]]:
    """The rows of each file by their ids, the first and the one after the last."""
    files = table.inspect.data_files()
    return {
        short(path): (start, start + rows)
        for path, start, rows in files.select(
            "file_path", "first_row_id", "record_count"
        ).iter_rows()
    }


def few_together(table: TableHandle, count: int, *, min_count: int = 100) -> None:
    """Let that many of the table's manifests be of the target size together, and merge them."""
    longest = max(table.inspect.manifests()["length"])
    properties = {
        "commit.manifest.target-size-bytes": str(longest * count),
        "commit.manifest.min-count-to-merge": str(min_count),
    }
    table.set_properties({**MERGE, **properties})


@pytest.mark.parametrize(
    "version", [3, *(pytest.param(v, marks=pytest.mark.check) for v in (1, 2))]
)
def test_small_manifests_merge_over_many_commits(tmp_path: Path, version: int) -> None:
    io = CountingIO()
    table, model = filled(tmp_path, io, version=version, count=16)
    few_together(table, 4)
    ids = row_ids(table) if version == 3 else {}
    counts = [len(table.inspect.manifests())]
    for number in range(6):
        io.caches.clear()
        io.opened.clear()
        append(table, model, f"new{number}", rows=5)
        # What a commit reads does not depend on how many there are.
        assert io.opened["manifest"] <= 4 + 1
        assert int(summary(table)["manifests-replaced"]) <= 4 + 1
        counts.append(len(table.inspect.manifests()))
        assert told(table) == model
        if version == 3:
            found = row_ids(table)
            assert {name: found[name] for name in ids} == ids
            ids = found
            ranges = sorted(found.values())
            assert all(left[1] <= right[0] for left, right in pairwise(ranges))
            assert ranges[-1][1] <= table.metadata.next_row_id
    # Four bins of four or five become manifests beside four new ones, which wait for a hundred.
    assert counts[0] == 16
    assert counts[4] <= 8


def test_old_manifests_merge_beside_the_newest(tmp_path: Path) -> None:
    """A small minimum does not keep a table from healing: the newest bin is due each time."""
    io = CountingIO()
    table, model = filled(tmp_path, io, version=2, count=16)
    few_together(table, 4, min_count=2)
    for number in range(8):
        append(table, model, f"new{number}", rows=5)
    assert told(table) == model
    assert len(table.inspect.manifests()) <= 8


def of_single_files(folder: Path, io: CountingIO, count: int) -> TableHandle:
    """A table of so many manifests with a file each, which commits may merge from now on."""
    table = make_table(
        open_catalog("filesystem", folder, io=io),
        properties={"commit.manifest.target-size-bytes": "1"},
    )
    table.files.append([data_file(f"f{number}") for number in range(count)])
    rewrite_manifests(table)
    assert len(table.inspect.manifests()) == count
    table.set_properties({"commit.manifest.target-size-bytes": str(8 << 20)})
    return table


def test_a_commit_opens_a_hundred_manifests_at_most(tmp_path: Path) -> None:
    io = CountingIO()
    table = of_single_files(tmp_path, io, 120)
    io.caches.clear()
    io.opened.clear()
    table.files.append([data_file("new")])
    assert io.opened["manifest"] == 100
    # The oldest hundred are one; twenty of before and the new one wait for others.
    assert len(table.inspect.manifests()) == 22
    assert len(names(table)) == 121
    rewrite_manifests(table)
    assert len(table.inspect.manifests()) == 1
    assert len(names(table)) == 121


@pytest.mark.soak
def test_two_thousand_manifests_heal_over_appends(tmp_path: Path) -> None:
    io = CountingIO()
    table = of_single_files(tmp_path, io, 2_000)
    for number in range(24):
        io.caches.clear()
        io.opened.clear()
        table.files.append([data_file(f"new{number}")])
        assert io.opened["manifest"] <= 100
        assert int(summary(table)["manifests-replaced"]) <= 100
    # Twenty of a hundred each, beside one of each append; and what is added together later.
    assert len(table.inspect.manifests()) <= 45
    assert names(table) == sorted(
        [*(f"f{number}" for number in range(2_000)), *(f"new{number}" for number in range(24))]
    )


def rewrite_manifests(table: TableHandle) -> None:
    table.port.run(RewriteManifests(table.io))


def test_delete_manifests_merge_over_many_commits(tmp_path: Path) -> None:
    io = CountingIO()
    table = make_table(open_catalog("filesystem", tmp_path, io=io), properties=NO_MERGE)
    table.files.append([data_file("a")])
    for number in range(13):
        table.files.row_delta(added_deletes=[position_deletes(f"d{number}", about="a")])
    few_together(table, 4)
    replaced = []
    for number in range(13, 18):
        table.files.row_delta(added_deletes=[position_deletes(f"d{number}", about="a")])
        replaced.append(int(summary(table)["manifests-replaced"]))
    assert max(replaced) <= 5
    assert sum(replaced) >= 9
    assert names(table) == sorted(["a", *(f"d{number}" for number in range(18))])
    assert {
        short(entry.data_file.file_path): entry.sequence_number for entry in live_entries(table)
    } == {"a": 1, **{f"d{number}": number + 2 for number in range(18)}}


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 30), st.integers(0, 9)), max_size=40),
    st.builds(
        BinLimits, size=st.integers(1, 60), manifests=st.integers(1, 6), entries=st.integers(1, 20)
    ),
)
def test_bins_are_of_neighbours_and_full_from_the_oldest_on(
    sizes: list[tuple[int, int]], limits: BinLimits
) -> None:
    manifests = [
        ManifestFile(
            manifest_path=f"m{number}",
            manifest_length=length,
            added_files_count=files // 2,
            existing_files_count=None,
            deleted_files_count=files - files // 2,
        )
        for number, (length, files) in enumerate(sizes)
    ]
    files_of = {
        manifest.manifest_path: files for manifest, (_, files) in zip(manifests, sizes, strict=True)
    }

    def fits(group: list[ManifestFile]) -> bool:
        return (
            len(group) <= limits.manifests
            and sum(manifest.manifest_length for manifest in group) <= limits.size
            and sum(files_of[manifest.manifest_path] for manifest in group) <= limits.entries
        )

    bins = pack_from_the_end(manifests, limits)
    assert [manifest for group in bins for manifest in group] == manifests
    assert all(len(group) == 1 or fits(group) for group in bins)
    # The next newer one found no room in a bin that came before.
    assert not any(fits([newer[-1], *older]) for newer, older in pairwise(bins))
