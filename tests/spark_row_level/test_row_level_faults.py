"""Anything that is raised at any call to the store while rows change: all of it, or nothing."""

import contextlib
import itertools
import os

import pytest
from concurrent_changes import first_rows, frame, make_table, shown

from ci_share import one_in, one_of_each
from faulty_io import ERRORS, FaultyIO, watch_for_swap
from frazil.catalog.pointer.filesystem import FilesystemCatalog
from frazil.catalog.pointer.sql import SqlCatalog
from frazil.changes import ARRIVAL
from frazil.errors import ConflictError, FrazilError, StorageError
from frazil.spark.lake import Lake
from rival_commits import before_the_commit

NO_WAITS = {
    "commit.retry.min-wait-ms": "1",
    "commit.retry.max-wait-ms": "2",
    "commit.status-check.min-wait-ms": "1",
    "commit.status-check.max-wait-ms": "2",
    "commit.manifest.min-count-to-merge": "2",
}
STRIDE = int(os.environ.get("FRAZIL_FAULT_STRIDE", "13"))
"""In CI one call of so many."""

SOURCE = [(1, "a", "gone"), (2, "a", "merged"), (12, "b", "merged"), (99, "a", "new")]


def merge(lake, table, **options):
    """Deletes, changes and adds rows, in three files."""
    return (
        table.merge(frame(lake, SOURCE), on="target.id = source.id", **options)
        .when_matched_delete(condition="source.v = 'gone'")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute()
    )


def delete(lake, table, **options):
    """A file goes as a whole, rows of another are marked."""
    return table.delete("id < 7", **options)


def update(lake, table, **options):
    return table.update({"v": "'new'"}, "id in (1, 12)", **options)


def changes(lake, table):
    """By their arrival, one of them superseded within the batch."""
    rows = frame(lake, [(2, "a", "mid"), *SOURCE[1:]])
    return table.apply_changes(rows, keys=["id"], order_by=ARRIVAL, mode="equality-deletes")


COMMANDS = {"merge": merge, "delete": delete, "update": update}
EVERY = {**COMMANDS, "changes": changes}
AFTER = {
    "changes": [*(row for row in first_rows() if row[0] not in (2, 12)), *SOURCE[1:]],
    "merge": [*(row for row in first_rows() if row[0] not in (1, 2, 12)), *SOURCE[1:]],
    "delete": [row for row in first_rows() if row[0] >= 7],
    "update": [(*row[:2], "new") if row[0] in (1, 12) else row for row in first_rows()],
}


def lake_of(kind, spark, folder, io):
    warehouse = f"{folder}/warehouse"
    if kind == "filesystem":
        catalog = FilesystemCatalog("test", {"warehouse": warehouse}, io=io)
    else:
        settings = {"uri": f"sqlite:///{folder}/catalog.db", "warehouse": warehouse}
        catalog = SqlCatalog("test", settings, io=io)
    lake = Lake(spark, catalog)
    lake.create_namespace("db")
    return lake


def files_of(table):
    """Every file in the table's folder, but for those that say which version is current."""
    listed = {info.path for info in table.io.list(table.location)}
    return {path for path in listed if "version-hint" not in path}


MODES = ("merge-on-read", "copy-on-write")


def cases(*in_ci):
    """Each command, catalog, mode and version; in CI these alone, from one call on."""
    first = {tuple(case[:-1]): case[-1] for case in in_ci}
    every = itertools.product(EVERY, ("sql", "filesystem"), MODES, (2, 3))
    return [
        pytest.param(*case, first.get(case, 0), marks=[] if case in first else pytest.mark.soak)
        for case in every
    ]


def calls(begin):
    """The calls at which something happens: in a soak (`begin` is 0) every one."""
    return itertools.count(begin, STRIDE) if begin else itertools.count(1)


@pytest.mark.check
@pytest.mark.parametrize(
    ("command", "kind", "mode", "version", "begin"),
    cases(
        ("merge", "sql", "merge-on-read", 3, 1),
        ("update", "filesystem", "copy-on-write", 3, 5),
    ),
)
def test_a_fault_at_any_call_leaves_the_whole_change_or_nothing(
    spark, tmp_path, command, kind, mode, version, begin
):
    io = FaultyIO()
    lake = lake_of(kind, spark, tmp_path, io)
    table = make_table(lake, mode, version, **NO_WAITS)
    first, after = table.current_snapshot.snapshot_id, sorted(AFTER[command])
    sent = []
    watch_for_swap(lake.catalog, sent)
    for turn, step in enumerate(calls(begin)):
        table = lake.load_table("db.t")
        before = files_of(table)
        sent.clear()
        io.after = turn % 2 == 1
        io.error = list(ERRORS.values())[turn % len(ERRORS)]
        io.left = step
        try:
            EVERY[command](lake, table)
            raised = False
        except (FrazilError, RuntimeError, MemoryError, KeyboardInterrupt):
            raised = True
        ended, io.left = io.left > 0, None
        fresh = lake.load_table("db.t")
        rows = shown(fresh)
        if not raised:
            assert rows == after, f"step {step}"
        elif not sent:
            assert rows == first_rows(), f"step {step}"
            assert files_of(fresh) == before, f"step {step}"
        else:
            assert rows in (first_rows(), after), f"step {step}"
        if rows == after:
            fresh.rollback_to_snapshot(first)
        if ended:
            break
    assert step > 8


@pytest.mark.check
@pytest.mark.parametrize(
    ("command", "kind", "mode", "version", "begin"),
    cases(("merge", "filesystem", "merge-on-read", 2, 4)),
)
def test_a_change_whose_process_dies_at_any_call_is_there_or_not(
    spark, tmp_path, command, kind, mode, version, begin
):
    """From one call on nothing more reaches the store: nobody tidies up, and the next one works."""
    io = FaultyIO()
    io.stays_down, io.error = True, StorageError
    lake = lake_of(kind, spark, tmp_path, io)
    table = make_table(lake, mode, version, **NO_WAITS)
    first, after = table.current_snapshot.snapshot_id, sorted(AFTER[command])
    for turn, step in enumerate(calls(begin)):
        io.after = turn % 2 == 0
        io.left = step
        with contextlib.suppress(FrazilError):
            EVERY[command](lake, lake.load_table("db.t"))
        ended, io.left = io.left > 0, None
        fresh = lake.load_table("db.t")
        rows = shown(fresh)
        assert rows in (first_rows(), after), f"step {step}"
        if rows == after:
            fresh.rollback_to_snapshot(first)
        if ended:
            assert rows == after
            break


@pytest.mark.check
@pytest.mark.parametrize("command", one_in(3, COMMANDS))
def test_a_command_that_is_refused_leaves_no_file_behind(lake, command):
    """The rival's files are all that came."""
    table = make_table(lake, "merge-on-read", 3)
    after_rival = []

    def come():
        rival = lake.load_table("db.t")
        rival.update({"v": "'rival'"}, "true")
        kept = {info.path for info in rival.io.list(f"{rival.location}/data")}
        named = set(rival.inspect.files()["file_path"])
        after_rival.extend(path for path in kept if path in named)

    before = {info.path for info in table.io.list(f"{table.location}/data")}
    before_the_commit(table, come)
    with pytest.raises(ConflictError):
        COMMANDS[command](lake, table)
    left = {info.path for info in table.io.list(f"{table.location}/data")}
    assert left == before | set(after_rival)
    assert all(row[2] == "rival" for row in shown(table.refresh()))


@pytest.mark.parametrize(
    ("command", "storage"),
    one_of_each(COMMANDS, [("copy-on-write", 2), ("merge-on-read", 3)], test=1),
)
def test_a_callback_that_raises_leaves_no_file_behind(lake, command, storage):
    table = make_table(lake, *storage)
    before = files_of(table)

    def stop(progress):
        if progress.stage == "done":
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        COMMANDS[command](lake, table, on_progress=stop)
    assert files_of(table) == before
    assert shown(table.refresh()) == first_rows()
