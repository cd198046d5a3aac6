"""Compaction beside writers: what still holds is committed, no row is lost, doubled or revived."""

from __future__ import annotations

import contextlib

import pytest
from compacted_tables import Modelled, files_in_metadata, files_on_disk, when

from ci_share import in_circles, only_in_soak
from frazil.errors import CommitFailedError, StorageError


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


@pytest.mark.check
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
    assert made.table.compact(min_input_files=2).rewritten_data_files_count == 6
    made.check()


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


@pytest.mark.check
@pytest.mark.parametrize("error", [only_in_soak(KeyboardInterrupt), StorageError])
def test_files_stay_where_the_commit_may_have_taken_place(lake, error, monkeypatch):
    """What is raised after the swap says nothing of the swap."""
    made = partitioned(lake, 2)
    real = made.lake.catalog.commit_table

    def commit_table(*arguments, **base):
        real(*arguments, **base)
        raise error("after the swap")

    monkeypatch.setattr(made.lake.catalog, "commit_table", commit_table)
    with contextlib.suppress(error):
        made.table.compact(min_input_files=2)
    monkeypatch.undo()
    made.check()
    assert len(made.data_files()) == 2
