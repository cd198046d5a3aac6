"""Commands that mark different rows of one data file, and rows that others add meanwhile."""

import math
from collections import Counter
from contextlib import nullcontext
from decimal import Decimal

import pytest
from concurrent_changes import STORAGE, first_rows, frame, make_table, shown
from pyroaring import BitMap64
from pyspark.sql import Row
from rows_of_others import COMMANDS, unnamed_files

import frazil
from ci_share import in_circles, one_of_each, only_in_soak, these
from frazil.errors import ConflictError
from frazil.format.predicates.expressions import AlwaysTrue
from frazil.spark.row_level.rivals.moved_rows import places_of
from frazil.spark.row_level.rivals.rows_by_value import equal_rows
from frazil.spark.row_level.target import Target
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


# Changes on rows that others changed: which stand, and the rows afterwards.


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


# Rows of version 2 that are found by their values: exactly equal ones, as many as there were.


COLUMNS = (
    "n int, f float, d double, t string, b binary, c decimal(9, 2), "
    "s struct<x: double, y: string>, a array<double>, m map<string, double>"
)
PLAIN = (1, 1.5, 2.5, "x", b"x", Decimal("1.10"), Row(1.0, "y"), [1.0], {"k": 1.0})
OTHERS = [
    (0, None),
    (1, -0.0), (1, 0.0), (1, math.nan), (1, None),
    (2, -0.0), (2, 0.0), (2, math.nan), (2, None),
    (3, ""), (3, "X"), (3, "x "), (3, None),
    (4, b""), (4, b"\x00"), (4, None),
    (5, Decimal("1.11")), (5, None),
    (6, Row(-0.0, "y")), (6, Row(0.0, "y")), (6, Row(None, None)), (6, Row(1.0, None)), (6, None),
    (7, []), (7, [None]), (7, [-0.0]), (7, [0.0]), (7, [1.0, 1.0]), (7, None),
    (8, {}), (8, {"k": None}), (8, {"k": -0.0}), (8, {"k": 0.0}), (8, {"k": 1.0, "l": 2.0}),
    (8, None),
]  # fmt: skip
"""The place of a column, and a value that only this column has otherwise."""

ROWS = [
    *[PLAIN] * 3,
    *((*PLAIN[:place], value, *PLAIN[place + 1 :]) for place, value in OTHERS),
    *((*PLAIN[:place], value, *PLAIN[place + 1 :]) for place, value in OTHERS[::2]),
]


def text(row):
    """The row as text: it tells -0.0 from 0.0, and NaN is as itself."""
    return repr(tuple(row)).replace("bytearray", "bytes")


def target_of(lake, name):
    table = lake.load_table(name)
    head = table.metadata.current_snapshot
    return Target.of(lake.spark, table.metadata, table.io, head, where=AlwaysTrue())


def values_at(target, places):
    rows = target.restricted_to(places).rows_at(places).drop(target.place)
    return Counter(text(row) for row in rows.collect())


@pytest.fixture(scope="module")
def old_and_new(spark, shared_lake):
    for name, order in (("old", 1), ("new", -1)):
        table = shared_lake.create_table(f"db.{name}", COLUMNS, format_version=2)
        for part in (ROWS[::order][:20], ROWS[::order][20:]):
            table.append(spark.createDataFrame(part, COLUMNS).coalesce(1))
    return shared_lake


@pytest.mark.check
@pytest.mark.parametrize("step", [1, 2, 3])
def test_equal_rows_are_found_and_no_others(old_and_new, step):
    then, now = target_of(old_and_new, "db.old"), target_of(old_and_new, "db.new")
    places = {}
    for ordinal, count in then.plan.files.select("ordinal", "record_count").iter_rows():
        rows = {path: BitMap64(range(0, count, step)) for path in then.paths([ordinal])}
        places |= places_of(then, rows)
    found = equal_rows(then, places, now)
    assert found is not None
    wanted = values_at(then, places)
    assert values_at(now, dict(enumerate(found.words(now.plan.file_count)))) == wanted
    assert len(found.files) == wanted.total()


@pytest.mark.parametrize("left_out", in_circles([0, 5, 6, len(ROWS) - 1], test=1))
def test_a_row_without_an_equal_one_is_told(old_and_new, left_out):
    """One fewer in the new files, of rows that are there once or three times."""
    name = f"db.without_{left_out}"
    table = old_and_new.create_table(name, COLUMNS, format_version=2)
    rows = [row for n, row in enumerate(ROWS) if n != left_out]
    table.append(old_and_new.spark.createDataFrame(rows, COLUMNS))
    then = target_of(old_and_new, "db.old")
    files = then.plan.files.select("file_path", "record_count").iter_rows()
    every = places_of(then, {path: BitMap64(range(count)) for path, count in files})
    assert equal_rows(then, every, target_of(old_and_new, name)) is None
