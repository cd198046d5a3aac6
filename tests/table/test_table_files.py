"""What each operation leaves in the table: files, sequence numbers, row ids, summaries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from table_cases import (
    CountingIO,
    data_file,
    equality_deletes,
    head,
    live_entries,
    make_table,
    names,
    open_catalog,
    position_deletes,
    row_ids,
    short,
    summary,
    vector,
)

from frazil.catalog.protocol import Catalog
from frazil.errors import ConflictError, NoSuchRefError, ValidationError
from frazil.format.manifests import DataFile, EntryStatus
from frazil.format.metadata import TableMetadata
from frazil.format.schema import Schema
from frazil.format.snapshots import Snapshot
from frazil.format.types import DoubleType, NestedField
from frazil.planning import changes_whole
from frazil.planning.changes_whole import Compared, WholeFiles, whole_changes
from frazil.storage.avro import manifests_of, read_manifest
from frazil.storage.files import FileIO
from frazil.table.handle import TableHandle

A, B, C, D = (
    data_file(name, day) for name, day in zip("abcd", ("mon", "mon", "tue", "wed"), strict=False)
)

Change = Callable[[TableHandle], None]
CASES: dict[str, tuple[Change, list[str], dict[str, str]]] = {
    "append": (
        lambda t: t.files.append([D]),
        ["a", "b", "c", "d"],
        {"operation": "append", "added-data-files": "1", "total-data-files": "4"},
    ),
    "fast append": (
        lambda t: t.files.fast_append([D]),
        ["a", "b", "c", "d"],
        {"operation": "append", "added-records": "10", "total-records": "40"},
    ),
    "delete by partition": (
        lambda t: t.files.delete(where="day = 'mon'"),
        ["c"],
        {"operation": "delete", "deleted-data-files": "2", "total-records": "10"},
    ),
    "delete everything": (
        lambda t: t.files.delete(where="true"),
        [],
        {"operation": "delete", "deleted-data-files": "3", "total-data-files": "0"},
    ),
    "delete what is not there": (
        lambda t: t.files.delete(where="day = 'sun'"),
        ["a", "b", "c"],
        {"operation": "delete", "total-data-files": "3"},
    ),
    "delete by file": (
        lambda t: t.files.delete(removed=[B]),
        ["a", "c"],
        {"operation": "delete", "deleted-data-files": "1"},
    ),
    "delete by path": (
        lambda t: t.files.delete(removed_paths=[B.file_path, C.file_path]),
        ["a"],
        {"operation": "delete", "deleted-records": "20"},
    ),
    "overwrite by predicate": (
        lambda t: t.files.overwrite([D], where="day in ('mon', 'tue')"),
        ["d"],
        {"operation": "overwrite", "added-data-files": "1", "deleted-data-files": "3"},
    ),
    "overwrite by files": (
        lambda t: t.files.overwrite([D], removed=[A]),
        ["b", "c", "d"],
        {"operation": "overwrite", "deleted-data-files": "1"},
    ),
    "replace partitions": (
        lambda t: t.files.replace_partitions([data_file("n", "mon")]),
        ["c", "n"],
        {"operation": "overwrite", "replace-partitions": "true", "deleted-data-files": "2"},
    ),
    "rewrite": (
        lambda t: t.files.rewrite(
            removed=[A, B], added=[data_file("ab", rows=20)], from_snapshot=head(t)
        ),
        ["ab", "c"],
        {"operation": "replace", "total-records": "30"},
    ),
}


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("case", CASES)
def test_files_and_summary_after_a_change(files_catalog: Catalog, case: str, version: int) -> None:
    change, expected, counts = CASES[case]
    table = make_table(files_catalog, version=version, files=[A, B])
    table.files.append([C])
    change(table)
    if version < 3:
        assert names(table) == expected
    found = table.inspect.files()["file_path"].to_list()
    assert sorted(map(short, found)) == expected
    assert counts.items() <= summary(table).items()


def test_a_partly_matching_file_is_an_error_that_names_it(files_catalog: Catalog) -> None:
    table = make_table(files_catalog)
    table.files.append([data_file("low", ids=(0, 9)), data_file("mid", ids=(5, 15))])
    with pytest.raises(ValidationError, match=r"mid\.parquet"):
        table.files.delete(where="id < 10")
    assert names(table) == ["low", "mid"]
    table.files.delete(where="id < 16")
    assert names(table) == []


def test_a_file_without_metrics_is_never_dropped_by_a_predicate(files_catalog: Catalog) -> None:
    table = make_table(files_catalog, files=[data_file("unknown")])
    with pytest.raises(ValidationError, match="unknown"):
        table.files.delete(where="id < 10")


def test_removing_a_file_twice_is_a_conflict(files_catalog: Catalog) -> None:
    table = make_table(files_catalog, files=[A, B])
    table.files.delete(removed=[A])
    before = table.current_snapshot
    with pytest.raises(ConflictError, match=r"a\.parquet"):
        table.files.delete(removed=[A])
    assert table.refresh().current_snapshot == before


def test_files_of_several_specs_get_a_manifest_each(files_catalog: Catalog) -> None:
    table = make_table(files_catalog)
    with table.update_spec() as u:
        u.add_field("bucket(4, id)")
    new = data_file("n", spec_id=1, partition=("mon", 3))
    table.files.append([A, new])
    assert sorted(table.inspect.manifests()["partition_spec_id"].to_list()) == [0, 1]
    assert names(table) == ["a", "n"]


BAD_FILES: dict[str, tuple[int, list[DataFile], str]] = {
    "unknown spec": (2, [data_file("x", spec_id=7)], "spec 7"),
    "short tuple": (2, [data_file("x", partition=())], "0 partition values"),
    "given twice": (2, [A, A], "twice"),
    "a delete file as data": (2, [position_deletes("x")], "cannot track"),
    "negative rows": (2, [replace(A, record_count=-1)], "negative"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_files_that_do_not_fit_are_refused(files_catalog: Catalog, case: str) -> None:
    version, files, message = BAD_FILES[case]
    table = make_table(files_catalog, version=version)
    with pytest.raises(ValidationError, match=message):
        table.files.append(files)
    assert table.refresh().current_snapshot is None


BAD_DELETES: dict[str, tuple[int, DataFile, str]] = {
    "v1 has no deletes (rule 100)": (1, position_deletes("x"), "version 1"),
    "v2 has no vectors (rule 99)": (2, vector("x", "a"), "deletion vector"),
    "v3 takes no new position deletes (rule 218)": (3, position_deletes("x"), "none may be added"),
    "equality deletes need ids (rule 121)": (
        2,
        replace(equality_deletes("x"), equality_ids=None),
        "equality_ids are for",
    ),
    "a vector needs its offset (rule 123)": (
        3,
        replace(vector("x", "a"), content_offset=None),
        "without its data file",
    ),
}


@pytest.mark.parametrize("case", BAD_DELETES)
def test_delete_files_that_the_version_does_not_allow(files_catalog: Catalog, case: str) -> None:
    version, delete, message = BAD_DELETES[case]
    table = make_table(files_catalog, version=version, files=[A])
    with pytest.raises(ValidationError, match=message):
        table.files.row_delta(added_deletes=[delete])


def test_sequence_numbers_as_other_engines_inherit_them(files_catalog: Catalog) -> None:
    """Rules 112, 132, 134: kept entries keep theirs when their manifest is rewritten."""
    table = make_table(files_catalog, files=[A, B])
    table.files.append([C])
    table.files.delete(removed=[A])
    table.files.rewrite(
        removed=[C],
        added=[data_file("cc", "tue")],
        data_sequence_number=2,
        from_snapshot=head(table),
    )
    found = {
        short(entry.data_file.file_path): (entry.sequence_number, entry.file_sequence_number)
        for entry in live_entries(table)
    }
    assert found == {"b": (1, 1), "cc": (2, 4)}


def test_dropping_a_data_file_drops_deletes_about_it_alone(files_catalog: Catalog) -> None:
    """Rule 219, and the same for position delete files of one data file."""
    table = make_table(files_catalog, files=[A, B])
    table.files.row_delta(
        added_deletes=[
            position_deletes("p-a", about="a"),
            position_deletes("p-b", about="b"),
            position_deletes("p-all"),
        ]
    )
    table.files.delete(removed=[A])
    assert names(table) == ["b", "p-all", "p-b"]
    assert summary(table)["removed-position-delete-files"] == "1"


def test_dropping_a_data_file_drops_its_vector_and_no_other_of_the_puffin_file(
    files_catalog: Catalog,
) -> None:
    table = make_table(files_catalog, version=3, files=[A, B])
    table.files.row_delta(added_deletes=[vector("dv", "a", offset=4), vector("dv", "b", offset=44)])
    table.files.rewrite(removed=[A], added=[data_file("aa", rows=8)], from_snapshot=head(table))
    deletes = table.inspect.delete_files()
    assert deletes["referenced_data_file"].to_list() == [B.file_path]
    assert deletes["content_offset"].to_list() == [44]
    assert summary(table)["removed-dvs"] == "1"


def test_deletes_older_than_every_data_file_are_dropped(files_catalog: Catalog) -> None:
    table = make_table(files_catalog, files=[A])
    table.files.row_delta(added_deletes=[equality_deletes("old")])
    table.files.append([B])
    table.files.row_delta(added_deletes=[equality_deletes("new")])
    table.files.delete(removed=[A])
    # b has the sequence number 3: the delete of 2 reaches nothing, that of 4 does.
    assert names(table) == ["b", "new"]


def test_a_rewrite_that_keeps_its_age_keeps_the_deletes_that_reach_it(
    files_catalog: Catalog,
) -> None:
    """Rule 133: the new file counts as old, so the equality delete still applies to it."""
    table = make_table(files_catalog, files=[A])
    table.files.row_delta(added_deletes=[equality_deletes("eq")])
    table.files.rewrite(
        removed=[A], added=[data_file("aa")], data_sequence_number=1, from_snapshot=head(table)
    )
    assert names(table) == ["aa", "eq"]


def test_a_partition_delete_takes_its_delete_files_along(files_catalog: Catalog) -> None:
    table = make_table(files_catalog, files=[A, C])
    table.files.row_delta(
        added_deletes=[equality_deletes("eq-mon", "mon"), equality_deletes("eq-tue", "tue")]
    )
    table.files.delete(where="day = 'mon'")
    assert names(table) == ["c", "eq-tue"]


def test_a_delete_file_is_not_dropped_by_its_metrics(files_catalog: Catalog) -> None:
    """Rule 229: bounds of other columns in it say nothing of the rows that it applies to."""
    table = make_table(files_catalog)
    table.files.append([data_file("low", ids=(0, 9)), data_file("high", ids=(10, 20))])
    delete = replace(
        equality_deletes("eq"),
        lower_bounds=data_file("x", ids=(1, 1)).lower_bounds,
        upper_bounds=data_file("x", ids=(1, 1)).upper_bounds,
        value_counts={1: 1},
        null_value_counts={1: 0},
    )
    table.files.row_delta(added_deletes=[delete])
    table.files.delete(where="id < 10")
    assert names(table) == ["eq", "high"]


def test_first_row_ids_follow_the_specifications_example(files_catalog: Catalog) -> None:
    """Rules 138, 141, 153: ids are handed out in the order of the list and of each manifest."""
    table = make_table(
        files_catalog, version=3, properties={"commit.manifest-merge.enabled": "false"}
    )
    table.files.append([data_file("a", rows=75), data_file("b", rows=25)])
    table.files.append([data_file("c", rows=50), data_file("d", rows=50)])
    assert table.metadata.next_row_id == 200
    table.files.delete(removed=[data_file("c", rows=50)])
    snapshot = table.current_snapshot
    assert snapshot is not None
    # The rewritten manifest gets a range of its own, though its file keeps the id it had.
    assert (snapshot.first_row_id, snapshot.added_rows) == (200, 50)
    assert table.metadata.next_row_id == 250
    assert row_ids(table) == {"a": 0, "b": 75, "d": 150}


def test_an_upgraded_table_gets_row_ids_with_its_next_snapshot(files_catalog: Catalog) -> None:
    """Rules 150, 151."""
    table = make_table(files_catalog, version=2)
    table.files.fast_append([data_file("a", rows=30)])
    table.upgrade(3)
    assert table.metadata.next_row_id == 0
    assert table.current_snapshot is not None
    assert table.current_snapshot.first_row_id is None
    table.files.fast_append([data_file("b", rows=5)])
    assert row_ids(table) == {"b": 0, "a": 5}
    assert table.metadata.next_row_id == 35


@pytest.mark.parametrize("start", [1, 2])
def test_a_table_keeps_its_files_when_it_is_upgraded(files_catalog: Catalog, start: int) -> None:
    table = make_table(files_catalog, version=start, files=[A, B])
    table.upgrade(start + 1)
    table.files.delete(removed=[A])
    table.files.append([C])
    assert sorted(map(short, table.inspect.files()["file_path"])) == ["b", "c"]
    by_name = {
        short(file): number
        for file, number in table.inspect.entries()
        .filter(table.inspect.entries()["status"] != 2)
        .select("data_file", "sequence_number")
        .unnest("data_file")
        .select("file_path", "sequence_number")
        .iter_rows()
    }
    # Files of v1 have the number 0 (rule 135).
    assert by_name["b"] == (0 if start == 1 else 1)


def test_manifests_merge_when_enough_are_there(files_catalog: Catalog) -> None:
    properties = {"commit.manifest.min-count-to-merge": "3"}
    table = make_table(files_catalog, properties=properties)
    counts = []
    for number in range(7):
        table.files.append([data_file(f"f{number}")])
        counts.append(len(table.inspect.manifests()))
    # The third merges three into one, the fifth that one and two more.
    assert counts == [1, 2, 1, 2, 1, 2, 1]
    assert names(table) == [f"f{number}" for number in range(7)]
    numbers = {short(e.data_file.file_path): e.sequence_number for e in live_entries(table)}
    assert numbers == {f"f{number}": number + 1 for number in range(7)}
    snapshots = {e.snapshot_id for e in live_entries(table)}
    assert snapshots == {s.snapshot_id for s in table.metadata.snapshots}


def test_a_merge_drops_what_older_snapshots_deleted(files_catalog: Catalog) -> None:
    properties = {"commit.manifest.min-count-to-merge": "2"}
    table = make_table(files_catalog, properties=properties, files=[A, B])
    table.files.delete(removed=[A])
    table.files.append([C])
    manifests = manifests_of(table.io, table.current_snapshot)
    entries = [
        entry
        for manifest in manifests
        for entry in read_manifest(
            table.io, manifest, specs=table.metadata.specs_by_id, schema=table.schema
        )
    ]
    assert {short(e.data_file.file_path): e.status for e in entries} == {
        "b": EntryStatus.EXISTING,
        "c": EntryStatus.ADDED,
    }


def test_snapshot_properties_are_kept_and_counts_win(files_catalog: Catalog) -> None:
    table = make_table(files_catalog)
    table.files.append([A], snapshot_properties={"job": "7", "added-data-files": "99"})
    found = summary(table)
    assert (found["job"], found["added-data-files"], found["engine-name"]) == ("7", "1", "frazil")
    with pytest.raises(ValidationError, match="operation"):
        table.files.append([B], snapshot_properties={"operation": "append"})


def test_writes_go_to_a_branch_and_never_to_a_tag(files_catalog: Catalog) -> None:
    table = make_table(files_catalog, files=[A])
    table.create_branch("audit")
    table.create_tag("v1")
    table.files.append([B], branch="audit")
    assert names(table) == ["a"]
    assert names(table, ref="audit") == ["a", "b"]
    with pytest.raises(ValidationError, match="tag"):
        table.files.append([C], branch="v1")
    with pytest.raises(NoSuchRefError, match="nowhere"):
        table.files.append([C], branch="nowhere")


def test_a_large_append_is_split_into_manifests(files_catalog: Catalog) -> None:
    table = make_table(files_catalog)
    table.files.fast_append([data_file(f"f{number}") for number in range(10_001)])
    assert sorted(table.inspect.manifests()["added_data_files_count"].to_list()) == [1, 10_000]


def test_nan_and_signed_zero_are_partitions_of_their_own(files_catalog: Catalog) -> None:
    """Rule 180."""
    schema = Schema((NestedField(1, "x", DoubleType(), False),))
    table = make_table(files_catalog, schema=schema, partition_by=["x"])
    nan = float("nan")
    table.files.append(
        [
            data_file("nan", partition=(nan,)),
            data_file("zero", partition=(0.0,)),
            data_file("minus", partition=(-0.0,)),
        ]
    )
    table.files.replace_partitions(
        [data_file("nan2", partition=(-nan,)), data_file("minus2", partition=(-0.0,))]
    )
    assert names(table) == ["minus2", "nan2", "zero"]


# Snapshots that change whole files, compared together: what came and went by one's own books.


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
