"""Optimizing keeps every row, ends with nothing to do, and stands beside writers."""

import threading

import pytest
from compacted_tables import Modelled

from ci_share import only_in_soak
from frazil.errors import PredicateError
from frazil.spark.maintenance.optimizing import optimize as optimizing
from frazil.spark.maintenance.optimizing.watch import watch
from frazil.table.maintenance.optimizing.choices import OptimizingKind, Work

SOON = {"self-optimizing.minor.trigger.interval": "0"}
MOR = {"write.delete.mode": "merge-on-read", "write.update.mode": "merge-on-read"}


def streamed(lake, version, **more):
    """Two partitions of three small files, with equality deletes in one of them."""
    made = Modelled(lake, version=version, by=("part",), properties={**MOR, **SOON}, **more)
    made.append(*range(60), files=3)
    made.delete_by_keys({"id": [1, 3, 5, 7]}, partition=(1,))
    return made


def works(plan):
    return [(choice.kind, choice.work, choice.partition) for choice in plan.choices]


@pytest.mark.check
@pytest.mark.parametrize("version", [only_in_soak(2), 3])
def test_rows_stay_and_a_second_run_finds_nothing_to_do(lake, version):
    made = streamed(lake, version)
    made.append(100, 101)
    before = made.table.current_snapshot.snapshot_id
    rows = made.rows.copy()
    shown = made.table.optimize(dry_run=True)
    assert made.other().current_snapshot.snapshot_id == before
    assert sorted(works(shown)) == [
        (OptimizingKind.MINOR, Work.REWRITE_FILES, "part=0"),
        (OptimizingKind.MINOR, Work.REWRITE_FILES, "part=1"),
    ]
    result = made.table.optimize()
    assert result.failures == ()
    assert result.after.is_empty
    assert result.before.health.score < result.after.health.score == 100
    assert "files became" in repr(result)
    made.check()
    assert made.other().scan(snapshot_id=before).count() == sum(rows.values())
    assert len(made.data_files()) == 2
    assert made.delete_files() == []
    newest = made.other().current_snapshot.snapshot_id
    again = made.table.optimize()
    assert (again.steps, again.has_changed) == ((), False)
    assert made.other().current_snapshot.snapshot_id == newest
    assert "nothing to do" in repr(again)


@pytest.mark.check
@pytest.mark.parametrize("version", [2, only_in_soak(3)])
def test_keys_that_are_converted_show_which_files_are_worth_a_rewrite(lake, version):
    """One file a partition: nothing to merge, but most of one file turns out to be deleted."""
    made = Modelled(lake, version=version, by=("part",), properties={**MOR, **SOON})
    made.append(*range(0, 40, 2))
    made.append(*range(1, 40, 2))
    made.delete_by_keys({"id": list(range(1, 31, 2))}, partition=(1,))
    result = made.table.optimize()
    assert [step.work for step in result.steps] == [Work.CONVERT, Work.REWRITE_FILES]
    assert result.steps[1].choices[0].kind is OptimizingKind.MAJOR
    assert "deleted by position" in result.steps[1].choices[0].reason
    made.check()
    assert made.delete_files() == []
    assert sorted(file["record_count"] for file in made.data_files()) == [5, 20]


def test_position_delete_files_become_vectors_after_an_upgrade(lake):
    made = Modelled(lake, version=2, properties=MOR)
    made.append(*range(200))
    made.delete("id = 3", lambda r: r[0] == 3)
    assert made.table.optimize(dry_run=True).is_empty
    made.table.upgrade(3)
    assert works(made.table.optimize(dry_run=True)) == [
        (OptimizingKind.MINOR, Work.REWRITE_DELETES, "")
    ]
    assert made.table.optimize().after.is_empty
    assert [file["file_format"].lower() for file in made.delete_files()] == ["puffin"]
    made.check()


def test_a_condition_leaves_other_partitions_alone(lake):
    made = streamed(lake, 2)
    result = made.table.optimize("part = 0")
    assert [each.partition for step in result.steps for each in step.choices] == ["part=0"]
    made.check()
    with pytest.raises(PredicateError):
        made.table.optimize("id % 2 = length(name)")


@pytest.mark.check
def test_a_group_that_loses_its_files_takes_no_other_with_it(lake, monkeypatch):
    """The first group is committed before the second one is rewritten, and loses nothing."""
    made = streamed(lake, 2)
    made.table.set_properties({"write.delete.mode": "copy-on-write"})
    other, lost = made.other(), []

    def files_by_partition():
        found = [file["partition"]["part"] for file in made.data_files()]
        return {part: found.count(part) for part in found}

    def hear(progress):
        if "2 of 2 groups rewritten" in str(progress) and not lost:
            [part] = [part for part, files in files_by_partition().items() if files > 1]
            lost.append(part)
            made.delete(f"id = {10 + part}", lambda r: r[0] == 10 + part, other)

    monkeypatch.setattr(optimizing, "MOST_ROUNDS", 1)
    result = made.table.optimize(on_progress=hear)
    [part] = lost
    [failure] = [each for step in result.steps for each in step.result.failures]
    assert (failure.is_conflict, failure.partition) == (True, f"part={part}")
    assert failure.files_count == 3
    assert [f"part={part}" in each for each in result.failures] == [True]
    assert "given up" in repr(result)
    assert files_by_partition() == {part: 3, 1 - part: 1}
    made.check()
    assert made.table.optimize().after.is_empty
    assert files_by_partition() == {0: 1, 1: 1}
    made.check()


def test_a_filter_leaves_files_alone_and_a_task_has_a_limit(lake):
    made = streamed(lake, 2)
    name = "self-optimizing.filter"
    made.table.set_properties({name: "part = 1 AND id >= 0"})
    assert {each.partition for each in made.table.optimize(dry_run=True).choices} == {"part=1"}
    result = made.table.optimize()
    assert {each.partition for step in result.steps for each in step.choices} == {"part=1"}
    assert made.table.optimize("part = 0").steps == ()
    made.check()
    made.table.set_properties({name: "no_such_column > 1"})
    with pytest.raises(PredicateError, match=r"self-optimizing\.filter.*no_such_column"):
        made.table.optimize()
    made.table.remove_properties(name)
    # A little more than a file has, so that each is below it.
    size = max(file["file_size_in_bytes"] for file in made.data_files()) * 21 // 20
    made.append(*range(400, 480, 2), files=4)
    made.table.set_properties(
        {
            "self-optimizing.target-size": str(size),
            "self-optimizing.fragment-ratio": "1",
            "self-optimizing.max-task-size-bytes": str(3 * size),
        }
    )
    step, *_ = made.table.optimize("part = 0").steps
    assert len(step.result.snapshot_ids) > 1
    made.check()


def test_a_procedure_that_fails_takes_no_other_with_it(lake, monkeypatch):
    made = streamed(lake, 2)
    made.append(*range(300, 340, 2))
    made.table.optimize("part = 0")
    made.delete_by_keys({"id": [300]}, partition=(0,))

    def fails(*_, **__):
        raise PredicateError("no luck today")

    monkeypatch.setattr(optimizing.Compact, "run", fails)
    result = made.table.optimize()
    assert any("no luck today" in failure for failure in result.failures)
    assert any(step.work is Work.CONVERT and step.has_changed for step in result.steps)
    made.check()


def test_a_schedule_beside_a_writer_ends_when_it_is_told_to(lake):
    made = streamed(lake, 3)
    stop, writer = threading.Event(), made.other()
    runs = []

    def run(table):
        result = table.optimize()
        runs.append(result)
        if len(runs) == 1:
            made.append(*range(200, 230), files=3, table=writer)
            made.delete_by_keys({"id": [0, 2]}, partition=(0,), table=writer)
        if len(runs) == 3:
            stop.set()
        return result

    assert watch(made.table, interval=0.01, stop=stop, run=run) == 2
    assert [each.has_changed for each in runs] == [True, True, False]
    made.check()
    made.table.set_properties({"self-optimizing.enabled": "false"})
    quiet = threading.Event()
    threading.Timer(0.3, quiet.set).start()
    watch(made.table, interval=0.05, stop=quiet, run=run)
    assert len(runs) == 3
