"""Commands that mark different rows of one data file, and rows that others add meanwhile."""

from contextlib import nullcontext

import pytest
from concurrent_changes import first_rows, frame, make_table, shown
from rows_of_others import COMMANDS, unnamed_files

from ci_share import one_of_each, only_in_soak
from frazil.errors import ConflictError
from rival_commits import before_the_commit

MARKED = "merge-on-read"


def summary(table, name):
    return table.refresh().current_snapshot.summary.get(f"frazil.row-level-conflicts.{name}")


# What another command does after the first has read: whether metadata rules it out is not enough.
BETWEEN, AMONG = [(5, "a", "x"), (9, "a", "y")], [(5, "a", "x"), (7, "a", "y")]
ADDED = {
    "append between": (
        lambda lake, t: t.append(frame(lake, BETWEEN)),
        False,
    ),
    "append": (lambda lake, t: t.append(frame(lake, AMONG)), True),
}
TWO_KEYS = [(6, "a", "own"), (7, "a", "own")]
TESTED = {
    "update": lambda lake, t, **o: t.update({"v": "'own'"}, "id in (7, 12) or v = 'zzz'", **o),
    "merge": lambda lake, t, **o: (
        t.merge(frame(lake, [(7, "b", "own"), (14, "b", "own")]), on="target.id = source.id", **o)
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute()
    ),
    "delete": lambda lake, t, **o: t.delete("id in (7, 12) or v = 'zzz'", **o),
    "insert": lambda lake, t, **o: (
        t.merge(frame(lake, [(7, "b", "own")]), on="target.id = source.id", **o)
        .when_not_matched_insert_all()
        .execute()
    ),
}


@pytest.mark.check
@pytest.mark.parametrize(
    ("command", "added", "storage"),
    one_of_each(TESTED, ADDED, [(MARKED, 2), (MARKED, 3), ("copy-on-write", 2)]),
)
def test_rows_that_others_add_conflict_where_the_command_is_about_them(
    tables, command, added, storage
):
    lake, table = tables.lake, tables.fresh(*storage)
    table.delete("id = 7 or id between 5 and 8")
    rival, is_refused = ADDED[added]
    other = lake.load_table(table.identifier)
    before_the_commit(table, lambda: rival(lake, other))
    with pytest.raises(ConflictError) if is_refused else nullcontext():
        TESTED[command](lake, table, isolation="serializable", retry=0)
    alone = lake.load_table(table.identifier)
    if is_refused:
        assert ("own" in {row[2] for row in shown(alone)}) is False
        return
    found = shown(alone)
    assert {(5, "a", "x")} <= set(found)
    # As if the command had come last.
    assert len([row for row in found if row[0] == 7]) == (command in ("merge", "insert"))
    assert summary(alone, "tested-files") in (None, "1", "2")


REFUSED = {
    "switched off": (
        {"frazil.commit.row-level-conflicts": "false"},
        lambda lake, t, **o: COMMANDS["update"](lake, t, 1, **o),
        lambda lake, t: COMMANDS["update"](lake, t, 2),
    ),
    "too much to test": (
        {"frazil.commit.row-level-conflicts.max-tested-bytes": "1"},
        TESTED["update"],
        lambda lake, t: t.append(frame(lake, BETWEEN)),
    ),
    "a sub-query": (
        {},
        lambda lake, t, **o: t.update(
            {"v": "'own'"}, "id in (select id + 6 from range(2)) or v > 'zz'", **o
        ),
        lambda lake, t: t.append(frame(lake, [(5, "a", "x"), (9, "a", "zzz")])),
    ),
    "a value of other rows": (
        {},
        lambda lake, t, **o: t.update({"v": "(select 'x' from range(1))"}, "id = 1", **o),
        lambda lake, t: COMMANDS["update"](lake, t, 2),
    ),
    "not matched by source": (
        {},
        lambda lake, t, **o: (
            t.merge(frame(lake, TWO_KEYS), on="target.id = source.id", **o)
            .when_not_matched_by_source_delete(condition="target.id > 12")
            .execute()
        ),
        lambda lake, t: t.append(frame(lake, BETWEEN)),
    ),
    "the same row": (
        {},
        lambda lake, t, **o: COMMANDS["update"](lake, t, 1, **o),
        lambda lake, t: COMMANDS["delete"](lake, t, 1),
    ),
}


@pytest.mark.check
@pytest.mark.parametrize(
    "case",
    [
        n if n in ("switched off", "the same row", "a sub-query") else only_in_soak(n)
        for n in REFUSED
    ],
)
def test_what_cannot_be_told_by_rows_is_refused_by_files(lake, case):
    properties, first, rival = REFUSED[case]
    table = make_table(lake, MARKED, 3, **properties)
    other = lake.load_table("db.t")
    before_the_commit(table, lambda: rival(lake, other))
    with pytest.raises(ConflictError):
        first(lake, table, isolation="serializable", retry=0)
    now = lake.load_table("db.t")
    assert now.current_snapshot.snapshot_id == other.refresh().current_snapshot.snapshot_id
    assert not unnamed_files(now)


def test_two_commands_of_a_transaction_and_others(tables):
    """The second command deletes of the file that the first one has written deletes of."""
    lake, table = tables.lake, tables.fresh(MARKED, 3)
    other = lake.load_table(table.identifier)
    with table.transaction() as tx:
        tx.delete("id = 1")
        tx.update({"v": "'own'"}, "id = 2")
        COMMANDS["update"](lake, other, 3)
    expected = [row for row in first_rows() if row[0] not in (1, 2, 3)]
    assert shown(lake.load_table(table.identifier)) == sorted(
        [*expected, (2, "a", "own"), (3, "a", "old+")]
    )
    assert not unnamed_files(lake.load_table(table.identifier))
