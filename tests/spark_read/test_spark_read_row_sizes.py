"""What Spark's optimizer is told of the size of a table's rows, and what comes of it."""

import pytest
from py4j.protocol import Py4JError

from frazil.spark.files.parquet import row_sizes
from frazil.spark.session.by_session import BySession
from frazil.spark.session.facts import temporary_settings

ROWS = 20_000
WIDTH = 8 + 8 + 20
"""What Spark counts for a row of a long and a text; the first 8 are for the row."""
FEW_BYTES = {"spark.sql.autoBroadcastJoinThreshold": "300000"}


@pytest.fixture
def many(lake):
    """Rows that Parquet makes much smaller."""
    table = lake.create_table("db.many", "id bigint, v string", format_version=2)
    table.append(lake.spark.range(ROWS).selectExpr("id", "'same' as v").coalesce(1))
    return table


def size_of(frame):
    return int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))


def plan_of(frame):
    return frame._jdf.queryExecution().executedPlan().toString()


def test_many_rows_have_the_size_of_their_types(lake, many):
    with temporary_settings(lake.spark, FEW_BYTES):
        size = size_of(lake.sql("select * from db.many"))
        assert ROWS * WIDTH <= size <= ROWS * WIDTH * 1.13
        # A column has its share.
        size = size_of(lake.sql("select id from db.many"))
        assert ROWS * 16 <= size <= ROWS * 16 * 1.13
        assert size_of(many.scan().to_df()) >= ROWS * WIDTH
        assert size_of(many.to_df().where("id < 5")) >= ROWS * WIDTH


def test_rows_that_take_much_are_not_sent_to_every_task(lake, many):
    text = "select count(*) from db.many a join db.many b on a.id = b.id + 1"
    with temporary_settings(lake.spark, FEW_BYTES):
        frame = lake.sql(text)
        assert "SortMergeJoin" in plan_of(frame)
        assert frame.collect()[0][0] == ROWS - 1
    # Few bytes are, as ever.
    assert "BroadcastHashJoin" in plan_of(lake.sql(text))


def test_plans_name_no_relation_that_nobody_made(lake, many):
    with temporary_settings(lake.spark, FEW_BYTES):
        plan = plan_of(lake.sql("select id from db.many where id = 7"))
    assert "FileScan parquet [id#" in plan
    assert "frazil_" not in plan


@pytest.mark.check
def test_rows_with_deletes_and_places(lake, many):
    with temporary_settings(lake.spark, FEW_BYTES):
        many.delete("id % 1000 = 1")
        many.update({"v": "'other'"}, "id % 1000 = 2")
        rows = many.scan(columns=["id", "_pos", "_file"]).to_df()
        assert rows.count() == ROWS - ROWS // 1000
        assert rows.select("_file", "_pos").distinct().count() == ROWS - ROWS // 1000
        assert many.to_df().where("v = 'other'").count() == ROWS // 1000


def test_a_spark_that_has_other_classes_reads_the_rows_alike(lake, many, monkeypatch):
    def refuse(spark):
        raise Py4JError("there is no such class")

    monkeypatch.setattr(row_sizes, "_made", refuse)
    kept = BySession()
    monkeypatch.setattr(row_sizes, "_MAKERS", kept)
    with temporary_settings(lake.spark, FEW_BYTES):
        assert many.to_df().count() == ROWS
        assert size_of(many.to_df()) < ROWS * WIDTH
    # It is not asked again: what refuses would raise.
    assert kept.get_or_make(lake.spark, refuse) is None
