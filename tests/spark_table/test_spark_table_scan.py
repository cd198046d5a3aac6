"""Scans: moments, renamed and dropped columns, names and their case."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F
from table_rows import SIMPLE, frame, rows_of
from test_spark_table_position_deletes import vector

import frazil
from frazil import col
from frazil.errors import (
    NoSuchRefError,
    NoSuchSnapshotError,
    PredicateError,
    ValidationError,
)
from frazil.planning.cache import memory_of_plan
from frazil.spark.files.parquet.file_log import FILE_LOG_SETTING
from frazil.spark.lake import Lake
from frazil.spark.read.prepared import BYTES_PER_FILE, READ_BYTES
from frazil.spark.read.reader import PlannedRead


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


# Reads of one snapshot again and again: prepared once, and never one snapshot for another.


ROWS = [(number, f"c{number % 3}", number / 2) for number in range(100)]


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How many reads were prepared so far."""
    counted = Counter[str]()
    original = PlannedRead.prepare

    def counting(planned: PlannedRead) -> Any:
        counted["prepared"] += 1
        return original(planned)

    monkeypatch.setattr(PlannedRead, "prepare", counting)
    return lambda: counted["prepared"]


@pytest.fixture
def table_settings() -> dict[str, Any]:
    schema = "id bigint, city string, x double"
    return {"schema": schema, "format_version": 3, "appends": [ROWS]}


def delete(table: frazil.Table, positions: Sequence[int]) -> None:
    """Delete these rows of the table's one file by a deletion vector."""
    (path,) = [row.file_path for row in table.inspect.dataframes.data_files().collect()]
    folder = Path(table.location.removeprefix("file://")) / "data"
    table.files.row_delta(added_deletes=[vector(folder, path, positions)])


@pytest.mark.check
def test_a_snapshot_is_prepared_once(
    lake: Lake, spark: Any, table: frazil.Table, prepared: Callable[[], int]
) -> None:
    for _ in range(3):
        assert rows_of(lake.load_table("db.t")) == ROWS
    assert prepared() == 1
    delete(table, [0, 7])
    live = [row for row in ROWS if row[0] not in (0, 7)]
    for _ in range(3):
        assert rows_of(lake.load_table("db.t")) == live
    assert prepared() == 2
    table.refresh()
    table.append(frame(spark, [(500, "new", 0.5)]))
    assert rows_of(lake.load_table("db.t")) == [*live, (500, "new", 0.5)]
    first = table.history().orderBy("made_current_at").first()["snapshot_id"]
    assert rows_of(table.scan(snapshot_id=first)) == ROWS


@pytest.mark.check
def test_two_reads_in_one_query_are_told_apart(
    lake: Lake, table: frazil.Table, prepared: Callable[[], int]
) -> None:
    delete(table, [0, 7])
    one, other = (lake.load_table("db.t").to_df() for _ in range(2))
    assert prepared() == 1
    pairs = one.join(other, one["id"] == other["x"] * 4).select(one["id"], other["id"])
    expected = [(2 * n, n) for n in range(50) if n not in (0, 7) and 2 * n not in (0, 7)]
    assert rows_of(pairs) == expected
    above = one.join(other, (one["city"] == other["city"]) & (one["id"] > other["id"]))
    live = [row for row in ROWS if row[0] not in (0, 7)]
    same_city = [(a, b) for a in live for b in live if a[1] == b[1] and a[0] > b[0]]
    assert above.count() == len(same_city)
    assert above.agg(F.sum(one["id"] - other["id"])).first()[0] == sum(
        a[0] - b[0] for a, b in same_city
    )
    both = one.where(one["id"] < 3).union(other.where(other["id"] > 97))
    assert rows_of(both, "id") == [(1,), (2,), (98,), (99,)]


def test_what_changes_a_read_prepares_it_anew(
    lake: Lake, table: frazil.Table, prepared: Callable[[], int], session: Callable[..., None]
) -> None:
    assert rows_of(table) == ROWS
    assert rows_of(table.scan(columns=["x", "id"])) == sorted((x, n) for n, _, x in ROWS)
    assert prepared() == 2
    session(**{FILE_LOG_SETTING: "never"})
    assert rows_of(table) == ROWS
    assert prepared() == 3
    table.update_schema().rename_column("city", "town").delete_column("x").commit()
    renamed = lake.load_table("db.t").to_df()
    assert renamed.columns == ["id", "town"]
    assert rows_of(renamed) == [row[:2] for row in ROWS]


def test_filtered_reads_are_not_kept(table: frazil.Table, prepared: Callable[[], int]) -> None:
    for _ in range(2):
        assert rows_of(table.scan(where="id < 3")) == ROWS[:3]
    assert prepared() == 2


def test_another_session_prepares_its_own(
    lake: Lake, spark: Any, table: frazil.Table, prepared: Callable[[], int]
) -> None:
    assert rows_of(table) == ROWS
    other = spark.newSession()
    with frazil.connect(other, warehouse=table.location.rsplit("/db/", 1)[0]) as opened:
        found = opened.load_table("db.t").to_df()
        assert found.sparkSession is other
        assert rows_of(found) == ROWS
    assert prepared() == 2


def test_a_lake_tells_what_is_kept_and_forgets_it(lake: Lake, table: frazil.Table) -> None:
    assert table.count() == 100
    kept = lake.cache_statistics()
    assert kept["manifests"].entries > 0
    assert kept["manifests"].size_in_bytes > 0
    lake.clear_caches()
    assert all(each.entries == 0 == each.size_in_bytes for each in lake.cache_statistics().values())
    assert table.count() == 100


def test_a_read_of_many_files_is_kept_until_the_virtual_machine_needs_room(
    table: frazil.Table, prepared: Callable[[], int]
) -> None:
    """There is room here for the plan, and none for what Spark keeps of its file."""
    plan = table.scan().plan()
    room = READ_BYTES + memory_of_plan(plan) + BYTES_PER_FILE // 2
    table.io.caches.resize({"cache.reads-bytes": str(room)})
    for _ in range(2):
        assert table.scan().to_df().agg(F.sum("id")).collect() == [(4_950,)]
    assert prepared() == 1
    [kept] = [item.value for item in table.io.caches["reads"]._items.values()]
    for reference in kept.rows:
        reference.clear()
    assert table.scan().to_df().agg(F.sum("id")).collect() == [(4_950,)]
    assert prepared() == 2
