"""Commands whose data files others wrote anew, or deleted rows of, before the commit.

The table is that of `concurrent_changes`: the first command is about the row 1, the rival about
another row of its file (2), of another file (5), or about the same one.
"""

from contextlib import nullcontext

import pytest
from concurrent_changes import first_rows, frame, shown
from rows_of_others import COMMANDS, RIVALS, after, row_ids, rows_moved, unnamed_files

from ci_share import in_circles, one_of_each, only_in_soak
from frazil.errors import ConflictError
from rival_commits import before_the_commit

MARKED, COPIED = "merge-on-read", "copy-on-write"
ONE = ["update", only_in_soak("delete"), only_in_soak("merge")]


def run(
    tables,
    first,
    rivals,
    *,
    mode,
    version=3,
    isolation="serializable",
    refused=False,
    deleted=(4,),
):
    """Run the command with the rivals before its first tries, one before each.

    Args:
        deleted: rows that are deleted before any of it.
    """
    lake, table = tables.lake, tables.fresh(mode, version)
    for row in deleted:
        table.delete(f"id = {row}")
    other = lake.load_table(table.identifier)
    expected = [each for each in first_rows() if each[0] not in deleted]
    ids = row_ids(table) if version == 3 else {}
    left = list(rivals)

    def next_rival():
        kind, row = left.pop(0)
        RIVALS[kind](lake, other.refresh(), row)
        if left:
            before_the_commit(table, next_rival)

    before_the_commit(table, next_rival)
    done = None
    with pytest.raises(ConflictError) if refused else nullcontext():
        done = COMMANDS[first](lake, table, 1, isolation=isolation, retry=0)
    assert not left
    for kind, row in rivals:
        expected = after(kind, expected, row)
    if not refused:
        expected = after(first, expected, 1)
    now = lake.load_table(table.identifier)
    assert shown(now) == sorted(expected)
    assert not unnamed_files(now)
    if done is not None:
        assert done.rivals >= len(rivals)
        assert done.rows_moved == rows_moved(now)
        assert f"beside {done.rivals} commit" in repr(done)
    if version == 3:
        # A row that was replaced by its key alone is another one.
        replaced = {row for kind, row in rivals if kind.startswith("by equality")}
        kept = {n: i for n, i in row_ids(now).items() if n not in replaced}
        assert kept.items() <= ids.items()
    return now


# The rivals, one before each try, what the first command's table is, and how many rows it moves.
FILE_TO_FILE = [("compaction", 2), ("copied update", 3), ("sort", 2), ("delete", 2)]
WITHOUT_IDS = {"mode": MARKED, "version": 2, "deleted": ()}
TRIES = {
    "marks": (FILE_TO_FILE, {"mode": MARKED}, 1),
    "marks without row ids": ([FILE_TO_FILE[0], *FILE_TO_FILE[2:]], WITHOUT_IDS, 1),
    "copies": ([("delete", 2), ("update", 3)], {"mode": COPIED}, 2),
}


@pytest.mark.check
@pytest.mark.parametrize("first", ONE)
@pytest.mark.parametrize("case", TRIES)
def test_a_row_is_followed_from_file_to_file_at_each_try(tables, case, first):
    """The last rival deletes rows of the newest file."""
    rivals, table, moved = TRIES[case]
    assert rows_moved(run(tables, first, rivals, **table)) == moved


@pytest.mark.parametrize(
    "rival",
    [
        pytest.param(("update", 1), marks=pytest.mark.check),
        pytest.param(("copied update", 2), marks=pytest.mark.check),
        *map(only_in_soak, [("delete", 1), ("by equality", 1), ("copied delete", 2)]),
    ],
)
def test_without_row_ids_what_others_did_to_a_copy_of_a_file_conflicts(tables, rival):
    run(tables, "update", [("compaction", 2), rival], refused=True, **WITHOUT_IDS)


@pytest.mark.parametrize("isolation", ["snapshot", only_in_soak("serializable")])
def test_without_row_ids_equal_rows_that_others_made_are_other_rows(lake, isolation):
    """The row 2 is 3 by now, and what is 2 was 1."""
    table = lake.create_table(
        "db.t", "x bigint", format_version=2, properties={"write.update.mode": MARKED}
    )
    table.append(lake.spark.createDataFrame([(1,), (2,), (5,)], "x bigint").coalesce(1))
    other = lake.load_table("db.t")

    def rival():
        other.update({"x": "x + 1"}, "x in (1, 2)")
        other.compact(rewrite_all=True)

    before_the_commit(table, rival)
    with pytest.raises(ConflictError):
        table.update({"x": "x * 10"}, "x >= 2", isolation=isolation, retry=0)
    assert sorted(row.x for row in table.refresh().scan().to_df().collect()) == [2, 3, 5]


DECISIVE = {
    "another row": ([("delete", 2)], False),
    "another key": ([("by equality", 2)], False),
    "the row, in a new file": ([("compaction", 1)], False),
    "the row, as its file is copied": ([("copied delete", 1)], True),
    "the row": ([("delete", 1)], True),
    "its key": ([("by equality", 1)], True),
    "the row, moved before": ([("compaction", 2), ("delete", 1)], True),
    "the row, before its file was rewritten": ([("delete", 1), ("compaction", 2)], True),
    "its key, before its file was rewritten": ([("by equality", 1), ("compaction", 2)], True),
}
DECISIVE_IN_SOAK = (
    "another key",
    "the row",
    "its key",
    "its key, before its file was rewritten",
)


@pytest.mark.parametrize(
    ("case", "version"),
    one_of_each(DECISIVE, [2, 3], without=DECISIVE_IN_SOAK, test=1),
)
def test_rows_that_a_merge_matched_and_left_alone(tables, case, version):
    """Because of the row 1 the merge adds none: without it, it would have."""
    rivals, is_refused = DECISIVE[case]
    lake, table = tables.lake, tables.fresh(MARKED, version)
    other = lake.load_table(table.identifier)

    def come():
        for kind, row in rivals:
            RIVALS[kind](lake, other.refresh(), row)

    before_the_commit(table, come)
    source = frame(lake, [(1, "a", "new"), (9, "a", "new")])
    merge = table.merge(source, on="target.id = source.id", isolation="serializable", retry=0)
    with pytest.raises(ConflictError) if is_refused else nullcontext():
        merge.when_not_matched_insert_all().execute()
    expected = first_rows()
    for kind, row in rivals:
        expected = after(kind, expected, row)
    if not is_refused:
        expected = [*expected, (9, "a", "new")]
    assert shown(lake.load_table(table.identifier)) == sorted(expected)
    assert not unnamed_files(lake.load_table(table.identifier))


@pytest.mark.check
@pytest.mark.parametrize("is_refused", [False, True])
def test_rows_that_a_rival_copied_are_no_new_rows(tables, is_refused):
    """Row 1 matches the condition in the rival's copy too; what the rival changed may as well."""
    lake, table = tables.lake, tables.fresh(MARKED, 3)
    other = lake.load_table(table.identifier)
    before_the_commit(table, lambda: RIVALS["copied update"](lake, other, 2))
    where = "id = 1 or v = 'old+'" if is_refused else "id = 1 or v = 'other'"
    with pytest.raises(ConflictError) if is_refused else nullcontext():
        table.update({"v": "'own'"}, where, isolation="serializable", retry=0)
    expected = after("update", first_rows(), 2)
    if not is_refused:
        expected = [(n, p, "own" if n == 1 else v) for n, p, v in expected]
    assert shown(lake.load_table(table.identifier)) == sorted(expected)


@pytest.mark.check
@pytest.mark.parametrize("version", [only_in_soak(2), 3])
def test_whole_files_and_rows_of_others_go(tables, version):
    """The file of the ids 1 to 4 goes as a whole, of that of 5 to 8 two rows."""
    lake, table = tables.lake, tables.fresh(MARKED, version)
    other = lake.load_table(table.identifier)

    def come():
        RIVALS["compaction"](lake, other, 1)
        RIVALS["update"](lake, other.refresh(), 8)

    before_the_commit(table, come)
    done = table.delete("id <= 6 or id = 11", isolation="serializable", retry=0)
    expected = [row for row in after("update", first_rows(), 8) if 6 < row[0] != 11]
    assert shown(lake.load_table(table.identifier)) == sorted(expected)
    assert (done.rows_deleted, done.rows_moved) == (7, 7)
    assert not unnamed_files(lake.load_table(table.identifier))


@pytest.mark.check
@pytest.mark.parametrize(
    ("first", "version"), [("delete", 3), ("update", 3), only_in_soak("delete", 2)]
)
def test_files_that_are_gone_with_all_their_rows(tables, first, version):
    """There is nothing where the rows could be; a delete of what is deleted is no conflict."""
    lake, table = tables.lake, tables.fresh(MARKED, version)
    other = lake.load_table(table.identifier)
    before_the_commit(table, lambda: other.delete("id <= 4"))
    refused = first == "update" or version == 2
    with pytest.raises(ConflictError) if refused else nullcontext():
        COMMANDS[first](lake, table, 1, isolation="serializable", retry=0)
    assert shown(lake.load_table(table.identifier)) == [row for row in first_rows() if row[0] > 4]
    assert not unnamed_files(lake.load_table(table.identifier))


HISTORIES = {
    "marks beside a compaction": (MARKED, ["compaction"], "update", 1),
    "copies beside marks": (COPIED, ["update"], "update", 2),
    "marks beside copies": (MARKED, ["copied update"], "update", 2),
    "copies beside a delete": (COPIED, ["delete"], "delete", 2),
    "copies beside a key": (COPIED, ["by equality"], "update", 2),
}


@pytest.mark.parametrize("case", in_circles(HISTORIES, test=1, check=1))
def test_changelogs_see_one_command_after_the_other(tables, case):
    """Of each commit the changes are those of its own rows, whoever wrote the files."""
    mode, rivals, first, commits = HISTORIES[case]
    lake, table = tables.lake, tables.fresh(mode, 3)
    start, other = table.current_snapshot.snapshot_id, lake.load_table(table.identifier)

    def come():
        for kind in rivals:
            RIVALS[kind](lake, other.refresh(), 2)

    before_the_commit(table, come)
    COMMANDS[first](lake, table, 1, retry=0)
    now = lake.load_table(table.identifier)
    found = [
        (each._commit_snapshot_id, each._change_type.lower(), each.id, each.v)
        for each in now.changes(start).collect()
    ]
    snapshots = [each for each in now.metadata.snapshots if each.operation != "replace"][-commits:]
    expected = []
    steps = [(rivals[0], 2), (first, 1)][-commits:]
    for snapshot, (kind, row) in zip(snapshots, steps, strict=True):
        old = [each for each in first_rows() if each[0] == row]
        new = after(kind, old, row)
        expected += [(snapshot.snapshot_id, "delete", n, v) for n, _, v in old]
        expected += [(snapshot.snapshot_id, "insert", n, v) for n, _, v in new]
    assert sorted(found) == sorted(expected)
