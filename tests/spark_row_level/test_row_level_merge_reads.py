"""What a merge reads, by the scans that Spark tells of."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

from ci_share import only_in_soak
from frazil.format.predicates.expressions import AlwaysTrue
from frazil.spark.row_level.merging.matches import matching
from frazil.spark.row_level.merging.source import Source
from frazil.spark.row_level.rivals.key_test import KeyTest
from frazil.spark.row_level.target import Target
from frazil.spark.session import costs
from frazil.spark.session.costs import Cost
from rival_commits import before_the_commit

POSITION = "_tmp_metadata_row_index"


def executions(spark):
    """What Spark keeps of the queries that ran: their numbers, the newest ones only."""
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    ran = spark._jsparkSession.sharedState().statusStore().executionsList()
    return {ran.apply(place).executionId() for place in range(ran.size())}


def scans_since(spark, seen):
    """Of each scan of Parquet files: the columns that it read, and of how many files."""
    store = spark._jsparkSession.sharedState().statusStore()
    found = []
    for execution in sorted(executions(spark) - seen):
        values, nodes = store.executionMetrics(execution), store.planGraph(execution).allNodes()
        for node in (nodes.apply(place) for place in range(nodes.size())):
            if not node.name().startswith("Scan parquet"):
                continue
            columns = re.search(r"ReadSchema: struct<(.*?)>", node.desc())[1]
            metrics = [node.metrics().apply(place) for place in range(node.metrics().size())]
            (files,) = [each for each in metrics if each.name() == "number of files read"]
            names = frozenset(part.partition(":")[0] for part in columns.split(","))
            found.append((names, int(values.get(files.accumulatorId()).get())))
    return found


@pytest.mark.check
@pytest.mark.parametrize("mode", ["copy-on-write", only_in_soak("merge-on-read")])
def test_only_touched_files_are_read_whole(lake, spark, mode):
    table = lake.create_table(
        "db.reads",
        "k bigint, v string, w string, p int",
        partition_by=["p"],
        properties={"write.merge.mode": mode},
    )
    rows = "select id as k, 'old' as v, 'w' as w, int(id % 2) as p from range({}, {}, 1, 1)"
    for start in (0, 30, 60):
        table.append(spark.sql(rows.format(start, start + 30)))
    # The second key lies between those of a file of its partition, but in none.
    source = spark.sql("select * from values (31L, 1, 'new'), (64L, 1, 'added') s(k, p, v)")
    seen = executions(spark)
    done = (
        table.merge(source, ["k", "p"])
        .when_matched_update({"v": "source.v"})
        .when_not_matched_insert({"k": "k", "v": "v", "p": "p"})
        .execute()
    )
    assert (done.files_read, done.files_skipped, done.rows_updated) == (2, 4, 1)
    assert {each.reason.value: each.files for each in done.skipped} == {
        "partition value": 3,
        "column bounds": 1,
    }
    whole = {"k", "v", "w", "p"}
    scans = [(names - {POSITION}, files) for names, files in scans_since(spark, seen)]
    assert ({"k", "p"}, 2) in scans
    assert (whole, 1) in scans
    assert set(map(frozenset, [{"k", "p"}, whole])) >= {names for names, _ in scans}
    assert all(files <= (2 if names == {"k", "p"} else 1) for names, files in scans)


# Files that others added and that hold none of a merge's keys are told without a job of Spark.


FILES = ([1, 2, 3], [4, None, 6], [7, 8], [None])


def made(lake, **more):
    table = lake.create_table("db.keys", "id int, v string", **more)
    for ids in FILES:
        rows = [(each, "x") for each in ids]
        table.append(lake.spark.createDataFrame(rows, "id int, v string").coalesce(1))
    return table


def left(table, *keys, nulls=False):
    """The ids in the files that may hold one of the keys."""
    table.refresh()
    spark, head = table.spark, table.metadata.current_snapshot
    target = Target.of(spark, table.metadata, table.io, head, where=AlwaysTrue())
    test = KeyTest(table.schema.find_field("id"), pa.array(keys, pa.int64()), nulls)
    rows = test.left_of(target).rows_with_files(table.schema.fields)
    return sorted((row.id for row in rows.collect()), key=lambda n: (n is None, n))


def test_files_without_a_key_are_left_out(lake):
    table = made(lake)
    assert left(table, 2, 8, 99) == [1, 2, 3, 7, 8]
    assert left(table, 5, 2**40) == []
    assert left(table, 5, nulls=True) == [4, 6, None, None]
    assert left(table) == []


def test_a_column_that_became_wider(lake):
    table = made(lake)
    table.update_schema().update_column("id", "long").commit()
    table.append(lake.spark.createDataFrame([(2**40, "y")], "id bigint, v string"))
    assert left(table, 2**40, 3) == [1, 2, 3, 2**40]


def test_files_older_than_the_column(lake):
    """Their rows have its initial default."""
    table = lake.create_table("db.keys", "v string", format_version=3)
    table.append(lake.spark.createDataFrame([("x",)], "v string"))
    table.update_schema().add_column("id", "int", default=7).commit()
    assert left(table, 7) == [7]
    assert left(table, 8) == []


def test_partitions_and_many_rows_are_left_to_spark(lake, monkeypatch):
    table = made(lake, partition_by=("id",))
    assert left(table, 99) == [1, 2, 3, 4, 6, 7, 8, None, None]
    lake.drop_table("db.keys")
    table = made(lake)
    monkeypatch.setattr(costs, "ADDED_KEYS", Cost(here=5, a_task=1, threads=1))
    assert left(table, 99) == [1, 2, 3, 4, 6, 7, 8, None, None]


def test_a_merge_beside_rows_of_others_runs_no_job_for_them(lake):
    """The rival's file lies within the bounds of the merge's keys, and has none of them."""
    spark = lake.spark
    table = lake.create_table("db.keys", "id int, v string", format_version=3)
    table.append(spark.createDataFrame([(n, "x") for n in range(0, 100, 10)], "id int, v string"))
    rival = lake.load_table("db.keys")

    def come():
        others = spark.createDataFrame([(15, "rival"), (85, "rival")], "id int, v string")
        rival.append(others.coalesce(1))
        spark.sparkContext.setJobGroup("beside", "")

    before_the_commit(table, come)
    source = spark.createDataFrame([(10, "new"), (90, "new"), (50, "new")], "id int, v string")
    table.upsert(source, keys="id", retry=0)
    jobs = spark.sparkContext.statusTracker().getJobIdsForGroup("beside")
    spark.sparkContext.setJobGroup("after", "")
    found = sorted(tuple(row) for row in lake.load_table("db.keys").scan().to_df().collect())
    assert (10, "new") in found
    assert (15, "rival") in found
    assert len(found) == 12
    assert table.refresh().metadata.current_snapshot.summary["frazil.row-level-conflicts.snapshots"]
    assert list(jobs) == []


# A source goes to every task by the bytes of its rows, whatever their types look like.


TEXT = "x" * 1000
VALUES = {
    "string": ("'{t}'", 1000),
    "binary": ("cast('{t}' as binary)", 1000),
    "array<bigint>": ("sequence(1L, 500L)", 4000),
    "array<string>": ("array_repeat('{t}', 3)", 3000),
    "array<array<string>>": ("array(array('{t}', null), null)", 1000),
    "map<string, double>": ("map('{t}', 1D)", 1000),
    "map<int, array<string>>": ("map(1, array('{t}'), 2, array('{t}'))", 2000),
    "struct<a: int, b: string>": ("named_struct('a', 1, 'b', '{t}')", 1000),
    "array<struct<a: array<string>>>": ("array(named_struct('a', array('{t}', '{t}')))", 2000),
    "variant": ("parse_json('\"{t}\"')", 1000),
    "null string": ("if(id < 0, '{t}', null)", 0),
}
"""Of each type a value, and the bytes that it surely takes."""

ROWS = 50


@pytest.mark.parametrize("keys", ["collected", "too long"])
def test_rows_are_measured(spark, monkeypatch, keys):
    if keys == "too long":
        monkeypatch.setattr("frazil.spark.session.costs.SOURCE_KEY_BYTES", 0)
    columns = [f"{value.format(t=TEXT)} as v{n}" for n, (value, _) in enumerate(VALUES.values())]
    df = spark.range(ROWS).selectExpr("id", *columns)
    bytes_of_row = sum(size for _, size in VALUES.values())
    source = Source.of(df, [], matched=["id", "v0"])
    assert (source.collected is None) == (keys == "too long")
    assert ROWS * bytes_of_row <= source.size.total <= 1.5 * ROWS * bytes_of_row
    assert bytes_of_row <= source.size.largest <= 1.5 * bytes_of_row
    assert ROWS * 1000 <= source.matched_size.total <= 1.1 * ROWS * 1000
    assert Source.of(df.limit(0), []).size.total == 0


@pytest.fixture
def sent(monkeypatch):
    """Whether the source, and whether its rows beside their places, went to every task."""
    told = []

    def spied(name):
        original = getattr(matching.Matching, name)

        def answer(self, *args):
            told.append((name, original(self, *args)))
            return told[-1][1]

        monkeypatch.setattr(matching.Matching, name, answer)

    spied("sends_pairs")
    monkeypatch.setattr(costs, "MATCHED_BYTES", 1 << 20)
    return told


@pytest.mark.parametrize(("length", "wanted"), [(3, True), (100_000, False)])
def test_a_large_row_that_matches_often_is_counted_as_often(lake, spark, sent, length, wanted):
    """The source is sent, of 100 kB; beside the rows that they match, its rows are of 2 MB."""
    table = lake.create_table(
        "db.t", "k int, g int, v string", properties={"write.merge.mode": "merge-on-read"}
    )
    table.append(spark.range(100).selectExpr("int(id) as k", "int(id % 5) as g", "'old' as v"))
    values = f"if(id = 4, repeat('x', {length}), 'new')"
    source = spark.range(5).selectExpr("int(id) as g", f"{values} as v")
    merge = table.merge(source, "target.g = source.g").when_matched_update({"v": "source.v"})
    assert merge.execute().rows_updated == 100
    assert sent == [("sends_pairs", wanted)]
    assert table.to_df().selectExpr("sum(length(v))").first()[0] == 80 * 3 + 20 * length
