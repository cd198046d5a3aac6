"""Scans: moments, renamed and dropped columns, names and their case."""

import datetime as dt

import pytest
from table_rows import SIMPLE, frame, rows_of

from frazil import col
from frazil.errors import (
    NoSuchRefError,
    NoSuchSnapshotError,
    PredicateError,
    ValidationError,
)


@pytest.fixture
def history(lake, spark):
    """Three appends of one row each, with a column added before the last."""
    table = lake.create_table("db.t", "id int, a string")
    table.append(frame(spark, [(1, "x")], "id int, a string"))
    table.append(frame(spark, [(2, "y")], "id int, a string"))
    table.create_tag("two")
    table.create_branch("side")
    with table.update_schema() as change:
        change.add_column("n", "int")
    table.append(frame(spark, [(3, "z", 7)], "id int, a string, n int"))
    return table


@pytest.mark.check
def test_a_moment_is_read_with_its_schema(history):
    first, second, third = history.metadata.snapshots
    two = [(1, "x"), (2, "y")]
    assert rows_of(history.scan(snapshot_id=first.snapshot_id)) == two[:1]
    assert rows_of(history.scan(snapshot_id=second.snapshot_id)) == two
    assert rows_of(history.scan(ref="two")) == two
    for moment in (second.timestamp_ms, third.timestamp_ms - 1):
        assert rows_of(history.scan(as_of=moment)) == two
    when = dt.datetime.fromtimestamp(third.timestamp_ms / 1000, dt.UTC)
    assert len(rows_of(history.scan(as_of=when))) == 3
    assert len(rows_of(history.scan(as_of=when.replace(tzinfo=None).isoformat()))) == 3


def test_a_branch_is_read_with_the_schema_of_the_table(history):
    assert rows_of(history.scan(ref="side")) == [(1, "x", None), (2, "y", None)]
    assert rows_of(history.scan(ref="main")) == rows_of(history)


def test_moments_that_are_not_there(history):
    early = history.metadata.snapshots[0].timestamp_ms - 1
    with pytest.raises(NoSuchSnapshotError):
        history.scan(as_of=early)
    with pytest.raises(NoSuchSnapshotError):
        history.scan(snapshot_id=1)
    with pytest.raises(NoSuchRefError, match="nope"):
        history.scan(ref="nope")
    with pytest.raises(ValidationError, match="not both"):
        history.scan(ref="two", snapshot_id=1)
    with pytest.raises(ValidationError, match="point in time"):
        history.scan(as_of="yesterday")


@pytest.mark.check
def test_after_a_rollback(history, spark):
    first, second, _ = (s.snapshot_id for s in history.metadata.snapshots)
    history.rollback_to_snapshot(first)
    assert rows_of(history) == [(1, "x", None)]
    history.append(frame(spark, [(4, "w", 0)], "id int, a string, n int"))
    assert [row[0] for row in rows_of(history)] == [1, 4]
    assert [row[0] for row in rows_of(history.scan(snapshot_id=second))] == [1, 2]


@pytest.mark.check
def test_columns_that_changed(lake, spark):
    table = lake.create_table("db.t", "id int, a string, b int, s struct<x: int, y: int>")
    table.append(
        frame(spark, [(1, "old", 5, (1, 2))], "id int, a string, b int, s struct<x: int, y: int>")
    )
    with table.update_schema() as change:
        change.rename_column("a", "text")
        change.delete_column("b")
        change.update_column("id", "long")
        change.rename_column("s.x", "z")
        change.move_first("text")
    with table.update_schema() as change:
        change.add_column("b", "int")
        change.add_column("a", "int")
    table.append(
        frame(
            spark,
            [(2**40, "new", 6, 7, (3, 4))],
            "id bigint, text string, b int, a int, s struct<z: int, y: int>",
        )
    )
    assert table.to_df().columns == ["text", "id", "s", "b", "a"]
    assert rows_of(table, "text", "id", "b", "a", "s.z") == [
        ("new", 2**40, 6, 7, 3),
        ("old", 1, None, None, 1),
    ]
    assert rows_of(table.scan(where="b is null", columns=["text"])) == [("old",)]
    assert rows_of(table.scan(where="a = 7", columns=["id"])) == [(2**40,)]
    assert rows_of(table.scan(where="s.z = 1", columns=["text", "s.y"])) == [("old", (2,))]
    with pytest.raises(PredicateError, match=r"s\.x"):
        table.scan(where="s.x = 1")


def test_names_and_their_case(lake, spark, session):
    table = lake.create_table_as_select("db.t", frame(spark, [(1, "a", 0.5)]))
    assert rows_of(table.scan(where="CITY = 'a'", columns=["ID"])) == [(1,)]
    with pytest.raises(PredicateError, match="CITY"):
        table.scan(where="CITY = 'a'", case_sensitive=True)
    session(spark__sql__caseSensitive="true")
    for columns in (["ID"], ["id", "id"]):
        with pytest.raises(ValidationError, match=columns[-1]):
            table.scan(columns=columns)
    assert rows_of(table.scan(columns=["ID"], case_sensitive=False)) == [(1,)]
    with table.update_schema() as change:
        change.add_column("ID", "string")
    table.append(frame(spark, [(2, "b", 1.0, "two")], f"{SIMPLE}, ID string"))
    assert rows_of(table, "id", "ID") == [(1, None), (2, "two")]
    assert rows_of(table.scan(where="ID = 'two'", columns=["id"])) == [(2,)]


def test_a_scan_is_of_the_moment_it_was_made(lake, spark):
    table = lake.create_table_as_select("db.t", frame(spark, [(1, "a", 0.5)]))
    query, df = table.scan(), table.to_df()
    table.append(frame(spark, [(2, "b", 1.0)]))
    assert (query.count(), df.count(), table.scan().count()) == (1, 1, 2)


def test_a_handle_shows_others_commits_when_refreshed(lake, spark):
    table = lake.create_table_as_select("db.t", frame(spark, [(1, "a", 0.5)]))
    lake.load_table("db.t").append(frame(spark, [(2, "b", 1.0)]))
    assert len(rows_of(table)) == 1
    assert len(rows_of(table.refresh())) == 2


def test_plan_and_results(lake, spark):
    table = lake.create_table_as_select(
        "db.t", frame(spark, [(i, "abc"[i % 3], i / 2) for i in range(9)]), partition_by=["city"]
    )
    query = table.scan(where=(col("city") == "a") & (col("id") > 0), columns=["id", "_partition"])
    assert query.plan().file_count == 1
    assert "2 files" in str(query.plan())
    assert query.count() == 2
    assert query.to_arrow().column("id").to_pylist() in ([3, 6], [6, 3])
    assert set(query.to_pandas()["id"]) == {3, 6}
    assert rows_of(table.scan(columns=["_partition"], where="id = 4")) == [(("b",),)]


def test_names_that_need_quoting(lake, spark):
    ddl = "`a.b` int, `select` string, `ünï code` int, `tick``s` int"
    table = lake.create_table("db.t", ddl, partition_by=["`a.b`"])
    table.append(frame(spark, [(1, "x", 2, 3), (4, "y", 5, 6)], ddl))
    assert rows_of(table) == [(1, "x", 2, 3), (4, "y", 5, 6)]
    assert rows_of(table.scan(where="`a.b` = 1 and `select` = 'x'")) == [(1, "x", 2, 3)]
    table.overwrite(frame(spark, [], ddl), where="`ünï code` = 5")
    assert rows_of(table) == [(1, "x", 2, 3)]
