"""Files that others added and that hold none of a merge's keys are told without a job of Spark."""

import pyarrow as pa

from frazil.format.predicates.expressions import AlwaysTrue
from frazil.spark.row_level.rivals.key_test import KeyTest
from frazil.spark.row_level.target import Target
from frazil.spark.session import costs
from frazil.spark.session.costs import Cost

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
    real = table.catalog.commit_table

    def commit_table(*given, **more):
        table.catalog.commit_table = real
        others = spark.createDataFrame([(15, "rival"), (85, "rival")], "id int, v string")
        rival.append(others.coalesce(1))
        spark.sparkContext.setJobGroup("beside", "")
        return real(*given, **more)

    table.catalog.commit_table = commit_table
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
