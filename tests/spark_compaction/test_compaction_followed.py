"""Rows that others delete and change while a compaction runs."""

from __future__ import annotations

import threading
import time

import pytest
from compacted_tables import Modelled, files_in_metadata, files_on_disk, when

from ci_share import in_circles, only_in_soak, these
from frazil.errors import CommitFailedError
from frazil.spark.maintenance.compaction.committing import FollowedDeletes

MARKED = {f"write.{name}.mode": "merge-on-read" for name in ("delete", "update", "merge")}
STRATEGIES = {
    "binpack": {},
    "sort": {"strategy": "sort", "sort_order": "id desc"},
    "zorder": {"strategy": "sort", "sort_order": "zorder(id, part)"},
    "early": {"partial_progress_enabled": True, "partial_progress_max_commits": 2},
}


def made_of(lake, **more):
    made = Modelled(lake, version=3, by=("part",), properties=MARKED, **more)
    made.append(*range(60), files=3)
    made.delete("id in (2, 3)", lambda r: r[0] in (2, 3))
    return made


def ids(made):
    """The row ids by the column `id`, of the table as it is."""
    rows = made.other().scan(columns=["id", "_row_id"]).to_df().collect()
    return {each.id: each._row_id for each in rows}


def updated(made, table):
    table.update({"name": "'changed'"}, "id in (8, 9)")
    changed = [(*r[:2], "changed", *r[3:]) if r[0] in (8, 9) else r for r in made.rows.elements()]
    made.rows = type(made.rows)(changed)


RIVALS = {
    "delete": lambda made, table: made.delete("id in (6, 7)", lambda r: r[0] in (6, 7), table),
    "update": updated,
    "whole partition": lambda made, table: made.delete(
        "id % 2 = 1 and id < 70", lambda r: r[0] % 2 == 1, table
    ),
    "equality": lambda made, table: (
        made.delete_by_keys({"id": [5, 11]}, partition=(1,), table=table),
        table.refresh(),
        made.delete("id = 4", lambda r: r[0] == 4, table),
    ),
    "converted": lambda made, table: (
        made.delete_by_keys({"id": [5, 11]}, partition=(1,), table=table),
        table.refresh().convert_equality_deletes(),
    ),
}


@pytest.mark.check
@pytest.mark.parametrize(
    ("rival", "strategy"),
    these([("equality", "sort")], RIVALS, STRATEGIES),
)
def test_a_compaction_goes_on_with_the_rows_that_others_delete(lake, rival, strategy):
    made = made_of(lake)
    before, other = ids(made), made.other()
    hear = when(2, lambda: RIVALS[rival](made, other))
    result = made.table.compact(min_input_files=2, on_progress=hear, **STRATEGIES[strategy])
    assert (result.rewritten_data_files_count, result.failed_data_files_count) == (6, 0)
    made.check()
    after = ids(made)
    assert all(after[key] == before[key] for key in after)
    assert files_on_disk(made.table) >= files_in_metadata(made.other())
    if rival in ("delete", "update"):
        summaries = [each.summary for each in made.other().metadata.snapshots]
        moved = sum(int(s.get("frazil.row-level-conflicts.moved-rows", 0)) for s in summaries)
        # One of them is of a partition that was committed before.
        assert moved == (1 if strategy == "early" else 2)
        assert result.moved_rows_count == moved
        assert f"moved      {moved} row" in repr(result)
    # What follows finds the deletes where they belong.
    made.delete("id = 12", lambda r: r[0] == 12)
    made.table.refresh().compact(rewrite_all=True)
    made.check()
    assert made.delete_files() == []


@pytest.mark.soak
def test_threads_that_delete_again_and_again_let_it_commit(lake, monkeypatch):
    """While it finds the rows of the last ones, those of this process wait with their commits."""
    made = made_of(lake)
    follow, looks, threads = FollowedDeletes.follow, [], []

    def delete(number):
        made.other().delete(f"id = {number}")

    def followed(self, done):
        found = follow(self, done)
        looks.append(done)
        threads.append(threading.Thread(target=delete, args=(20 + 2 * len(looks),)))
        threads[-1].start()
        threads[-1].join(3)
        return found

    monkeypatch.setattr(FollowedDeletes, "follow", followed)
    result = made.table.compact(min_input_files=2, on_progress=when(2, lambda: delete(20)))
    for thread in threads:
        thread.join()
    assert (result.rewritten_data_files_count, result.failed_data_files_count) == (6, 0)
    assert len(looks) == 2
    assert set(ids(made)) == set(range(60)) - {2, 3, 20, 22, 24}


def by_key(made):
    made.delete_by_keys({"id": [2, 3]}, partition=(0,))


FIRST = {
    "by position": lambda made: made.delete("id in (2, 3)", lambda r: r[0] in (2, 3)),
    "by key": by_key,
}


@pytest.mark.check
@pytest.mark.parametrize(
    ("first", "rival", "strategy"),
    these([], FIRST, RIVALS, STRATEGIES),
)
def test_without_row_ids_equal_rows_are_found(lake, first, rival, strategy):
    """In version 2 Spark writes rows anew, in whatever order: their values tell them."""
    made = Modelled(lake, version=2, by=("part",), properties=MARKED)
    made.append(*range(60), files=3)
    made.append(*range(0, 60, 3), files=1)
    FIRST[first](made)
    other = made.other()
    hear = when(2, lambda: RIVALS[rival](made, other))
    result = made.table.compact(min_input_files=2, on_progress=hear, **STRATEGIES[strategy])
    assert (result.rewritten_data_files_count, result.failed_data_files_count) == (8, 0)
    made.check()
    assert files_on_disk(made.table) >= files_in_metadata(made.other())


@pytest.mark.check
@pytest.mark.parametrize("version", [2, only_in_soak(3)])
def test_what_is_no_delete_is_not_waited_for(lake, version):
    """Another definition of the table contradicts the groups at every try."""
    made = Modelled(lake, version=version, by=("part",), properties=MARKED)
    made.append(*range(60), files=3)
    other = made.other()

    def rival():
        made.delete("id = 6", lambda r: r[0] == 6, other)
        for change in ("drop", "add"):
            with other.refresh().update_schema() as update:
                if change == "add":
                    update.add_column("v", "double")
                else:
                    update.delete_column("v")
        made.rows = type(made.rows)([(*r[:3], None) for r in made.rows.elements()])

    made.table.set_properties({"commit.retry.total-timeout-ms": "600000"})
    began = time.monotonic()
    result = made.table.compact(min_input_files=2, on_progress=when(2, rival))
    assert time.monotonic() - began < 300
    assert result.failed_data_files_count == 6
    made.check()


@pytest.mark.soak
def test_deletes_before_each_of_many_tries(lake):
    """However often others are first, the group is not given up, and no file stays behind."""
    made = made_of(lake)
    other, real, left = made.other(), made.table.catalog.commit_table, list(range(10, 14))

    def commit_table(identifier, requirements, updates, **base):
        if left and identifier == made.table.identifier and not busy:
            number = left.pop()
            busy.append(True)
            made.delete(f"id = {number}", lambda r: r[0] == number, other.refresh())
            busy.clear()
        return real(identifier, requirements, updates, **base)

    busy = []
    made.table.catalog.commit_table = commit_table
    try:
        result = made.table.compact(min_input_files=2)
    finally:
        made.table.catalog.commit_table = real
    assert (result.rewritten_data_files_count, result.failed_data_files_count) == (6, 0)
    made.check()
    assert files_on_disk(made.table) == files_in_metadata(made.other())


# Compaction beside writers: what still holds is committed, no row is lost, doubled or revived.


def partitioned(lake, version, **more):
    """Two partitions of three small files each."""
    made = Modelled(
        lake,
        version=version,
        by=("part",),
        properties={"write.delete.mode": "merge-on-read", "write.update.mode": "merge-on-read"},
        **more,
    )
    made.append(*range(60), files=3)
    return made


@pytest.mark.soak
def test_without_the_starting_sequence_number_such_an_upsert_takes_its_partition_back(lake):
    made = partitioned(lake, 2)
    other = made.other()
    hear = when(2, lambda: made.delete_by_keys({"id": [1, 3]}, partition=(1,), table=other))
    result = made.table.compact(
        min_input_files=2, use_starting_sequence_number=False, on_progress=hear
    )
    assert (result.rewritten_data_files_count, result.failed_data_files_count) == (3, 3)
    made.check()


@pytest.mark.parametrize("version", [2, only_in_soak(3)])
def test_a_group_of_which_rows_are_deleted_meanwhile_is_given_up_alone(lake, version):
    """In version 2 rows have no ids; in version 3 it is as asked."""
    made = partitioned(lake, version)
    made.table.set_properties({"frazil.commit.row-level-conflicts": "false"})
    other = made.other()
    hear = when(2, lambda: made.delete("id = 7", lambda r: r[0] == 7, other))
    result = made.table.compact(min_input_files=2, on_progress=hear)
    assert (result.rewritten_data_files_count, result.failed_data_files_count) == (3, 3)
    [failure] = result.failures
    assert failure.is_conflict
    assert failure.partition == "part=1"
    assert "given up" in repr(result)
    assert "part=1" in repr(result)
    made.check()
    assert files_on_disk(made.table) == files_in_metadata(made.other())
    assert made.table.compact(min_input_files=2).rewritten_data_files_count == 3
    made.check()


@pytest.mark.check
def test_a_start_that_expired_meanwhile_loses_nothing(lake):
    made = partitioned(lake, 2)
    other = made.other()

    def move_on() -> None:
        made.append(200, 201, table=other)
        other.maintenance.expire_snapshots(older_than=4_000_000_000_000, retain_last=1)

    result = made.table.compact(min_input_files=2, on_progress=when(2, move_on))
    assert (result.rewritten_data_files_count, result.failed_data_files_count) == (6, 0)
    made.check()


def test_rows_that_a_rollback_brings_back_stay(lake):
    """A delete that was applied is no longer there: what was read is not what is."""
    made = partitioned(lake, 2)
    before = made.table.current_snapshot.snapshot_id
    rows = made.rows.copy()
    made.delete("id < 30", lambda r: r[0] < 30)
    other = made.other()
    result = made.table.compact(
        min_input_files=2, on_progress=when(2, lambda: other.rollback_to_snapshot(before))
    )
    made.rows = rows
    made.check()
    assert result.rewritten_data_files_count == 0
    assert result.failed_data_files_count > 0


@pytest.mark.check
def test_partial_progress_commits_as_groups_are_finished(lake):
    made = partitioned(lake, 2)
    result = made.table.compact(
        min_input_files=2, partial_progress_enabled=True, partial_progress_max_commits=2
    )
    assert len(result.snapshot_ids) == 2
    made.check()


@pytest.mark.parametrize(
    "partial", in_circles([True, False], test=1), ids=["partial progress", "one commit"]
)
def test_a_group_that_fails_takes_no_other_with_it(lake, partial):
    """A data file of one partition is gone."""
    made = partitioned(lake, 2)
    lost = next(f for f in made.data_files() if f["partition"]["part"] == 1)["file_path"]
    made.table.io.delete(lost)
    arguments = {
        "min_input_files": 2,
        "partial_progress_enabled": partial,
        "max_concurrent_file_group_rewrites": 1,
        "rewrite_job_order": "bytes-asc",
    }
    if partial:
        result = made.table.compact(**arguments)
        assert (result.rewritten_data_files_count, result.failed_data_files_count) == (3, 3)
        assert not result.failures[0].is_conflict
    else:
        with pytest.raises(Exception, match=r"(?s).*") as raised:
            made.table.compact(**arguments)
        assert "stay as they are" in "".join(raised.value.__notes__)
    assert made.lake.load_table(made.name).scan("part = 0").count() == 30
    on_disk, known = files_on_disk(made.table), files_in_metadata(made.other())
    assert on_disk == known - {lost}


@pytest.mark.check
@pytest.mark.parametrize("error", [only_in_soak(RuntimeError), KeyboardInterrupt])
def test_an_error_of_the_listener_ends_it_and_leaves_nothing(lake, error):
    made = partitioned(lake, 2)

    def listen(progress):
        if progress.groups_done == 1:
            raise error("enough")

    with pytest.raises(error):
        made.table.compact(
            min_input_files=2, on_progress=listen, max_concurrent_file_group_rewrites=1
        )
    made.check()
    assert files_on_disk(made.table) == files_in_metadata(made.other())


def test_other_writers_that_are_always_first_are_told_of(lake, monkeypatch):
    made = partitioned(lake, 2)

    def refuse(*arguments, **base):
        raise CommitFailedError("others were first")

    before = files_on_disk(made.table)
    monkeypatch.setattr(made.lake.catalog, "commit_table", refuse)
    with pytest.raises(CommitFailedError):
        made.table.compact(min_input_files=2)
    assert files_on_disk(made.table) == before
    made.check()
