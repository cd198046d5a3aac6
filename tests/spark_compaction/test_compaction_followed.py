"""Rows that others delete and change while a compaction runs."""

import threading
import time

import pytest
from compacted_tables import Modelled, files_in_metadata, files_on_disk, when

from ci_share import only_in_soak, these
from frazil.spark.maintenance.compaction.following import FollowedDeletes

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
    follow, looks, threads = FollowedDeletes.followed, [], []

    def delete(number):
        made.other().delete(f"id = {number}")

    def followed(self, done):
        found = follow(self, done)
        looks.append(done)
        threads.append(threading.Thread(target=delete, args=(20 + 2 * len(looks),)))
        threads[-1].start()
        threads[-1].join(3)
        return found

    monkeypatch.setattr(FollowedDeletes, "followed", followed)
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
