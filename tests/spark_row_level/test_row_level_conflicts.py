"""Changes on rows that others changed: which stand, and the rows afterwards."""

import pytest
from concurrent_changes import STORAGE, frame, make_table, shown
from rows_of_others import COMMANDS

import frazil
from ci_share import only_in_soak, these
from frazil.errors import ConflictError
from rival_commits import before_the_commit


@pytest.mark.parametrize(
    ("command", "storage"),
    these(
        [("delete", STORAGE[2]), ("merge", STORAGE[0])],
        ["delete", "update", "merge"],
        STORAGE,
        test=1,
    ),
)
def test_a_conflict_names_the_command_the_files_and_both_snapshots(tables, command, storage):
    lake, table = tables.lake, tables.fresh(*storage)
    read = table.current_snapshot.snapshot_id
    file = table.scan(where="id = 1").plan().files["file_path"][0]
    before_the_commit(
        table, lambda: lake.load_table(table.identifier).update({"v": "'rival'"}, "id = 1")
    )
    with pytest.raises(ConflictError) as refused:
        COMMANDS[command](lake, table, 1, isolation="serializable")
    text = str(refused.value)
    rival = table.refresh().current_snapshot.snapshot_id
    assert f"the {command} read snapshot {read}" in text
    assert f"snapshot {rival} (overwrite)" in text
    # The file that both are about, or the one that the rival added.
    added = table.scan(where="id = 1").plan().files["file_path"].to_list()
    assert any(path in text for path in [file, *added])


@pytest.mark.check
def test_retry_runs_the_whole_command_on_the_new_snapshot(tables):
    lake, table = tables.lake, tables.fresh("merge-on-read", 3)
    before_the_commit(
        table, lambda: lake.load_table(table.identifier).update({"v": "'rival'"}, "id in (1, 2)")
    )
    done = table.update({"v": "concat(v, '+')"}, "id < 3", retry=1)
    assert done.rows_updated == 2
    assert [row for row in shown(table) if row[0] < 3] == [(1, "a", "rival+"), (2, "a", "rival+")]


def _two_delete_files(table):
    """Two position delete files of one partition."""
    for row_id in (3, 4):
        table.delete(f"id = {row_id}")


def _changed_by_key(table):
    """An equality delete file."""
    rows = frame(table, [(1, "a", "new")])
    table.apply_changes(rows, keys=["id"], mode="equality-deletes")


BY_UPGRADE = {
    # name: before, the command that the upgrade overtakes, what it leaves of row 1
    "delete": (None, lambda t: t.delete("id = 1"), None),
    "update": (None, lambda t: t.update(set={"v": "'new'"}, where="id = 1", retry=1), "new"),
    "upsert": (None, lambda t: t.upsert(frame(t, [(1, "a", "new")]), keys="id", retry=1), "new"),
    "changes": (
        None,
        lambda t: t.apply_changes(
            frame(t, [(1, "a", "mid"), (1, "a", "new")]),
            keys=["id"],
            order_by=frazil.changes.ARRIVAL,
            mode="equality-deletes",
        ),
        "new",
    ),
    "conversion": (_changed_by_key, lambda t: t.maintenance.convert_equality_deletes(), "new"),
    "delete files": (
        _two_delete_files,
        lambda t: t.maintenance.rewrite_position_deletes(rewrite_all=True, granularity="partition"),
        "old",
    ),
}


@pytest.mark.check
@pytest.mark.parametrize(
    "command", [n if n in ("delete", "delete files") else only_in_soak(n) for n in BY_UPGRADE]
)
def test_a_command_that_an_upgrade_overtakes_is_made_again(lake, command):
    """Position delete files are of version 2 alone, deletion vectors of version 3."""
    before, run, left = BY_UPGRADE[command]
    isolation = {"write.delete.isolation-level": "snapshot"}
    table = make_table(lake, "merge-on-read", 2, **isolation)
    if before is not None:
        before(table)
    others = [row for row in shown(table) if row[0] != 1]
    before_the_commit(table, lambda: lake.load_table("db.t").upgrade(3))
    run(table)
    now = lake.load_table("db.t")
    assert now.metadata.format_version == 3
    assert shown(now) == [*([] if left is None else [(1, "a", left)]), *others]
