"""BEGIN, COMMIT and ROLLBACK of an attached session: statements and writers of a thread."""

from __future__ import annotations

from threading import Thread

import pytest
from pyspark.errors import AnalysisException

from frazil.errors import UnsupportedError, ValidationError

pytestmark = pytest.mark.spark


@pytest.fixture
def tables(lake, spark, rows):
    """The tables `lake.db.a` and `lake.db.b`, of five rows each."""
    for name in "ab":
        rows.writeTo(f"lake.db.{name}").create()
    return lake


def count(spark, name):
    return spark.sql(f"SELECT count(*) FROM lake.db.{name}").collect()[0][0]


def seen_by_others(lake, name):
    return lake.load_table(f"db.{name}").scan().aggregate("count(*)").to_df().collect()[0][0]


@pytest.mark.check
def test_statements_and_writers_become_one_commit(tables, spark, rows):
    before = [len(tables.load_table(f"db.{name}").metadata.snapshots) for name in "ab"]
    spark.sql("BEGIN TRANSACTION")
    rows.writeTo("lake.db.a").append()
    spark.sql("DELETE FROM lake.db.b WHERE id > 2")
    rows.write.mode("append").insertInto("lake.db.b")
    rows.withColumnRenamed("n", "m").writeTo("lake.db.c").create()
    spark.sql("INSERT INTO lake.db.c VALUES (9, 'x')")
    merged = spark.sql("SELECT 1 AS id, 'one' AS n").alias("s").mergeInto("lake.db.a", _same_id())
    merged.whenMatched().updateAll().merge()
    assert (count(spark, "a"), count(spark, "b"), count(spark, "c")) == (10, 7, 6)
    assert spark.table("lake.db.a").where("n = 'one'").count() == 2
    assert spark.read.format("iceberg").load("lake.db.b").count() == 7
    assert spark.catalog.tableExists("lake.db.c")
    assert {each.name for each in spark.catalog.listTables("lake.db")} >= {"a", "b", "c"}
    assert not tables.table_exists("db.c")
    assert (seen_by_others(tables, "a"), seen_by_others(tables, "b")) == (5, 5)
    spark.sql("COMMIT")
    assert (count(spark, "a"), count(spark, "b"), count(spark, "c")) == (10, 7, 6)
    assert seen_by_others(tables, "b") == 7
    assert [len(tables.load_table(f"db.{name}").metadata.snapshots) for name in "ab"] > before


def _same_id():
    from pyspark.sql import functions as F

    return F.expr("a.id = s.id")


@pytest.mark.check
def test_rolled_back(tables, spark, rows, tmp_path):
    before = set(tmp_path.rglob("*.parquet"))
    spark.sql("USE lake.db")
    spark.sql("START TRANSACTION")
    spark.sql("UPDATE a SET n = 'x'")
    rows.writeTo("b").overwritePartitions()
    assert spark.sql("SELECT DISTINCT n FROM a").collect() == [("x",)]
    spark.sql("ROLLBACK")
    assert spark.table("a").where("n = 'x'").count() == 0
    assert set(tmp_path.rglob("*.parquet")) == before


REFUSED = {
    "CALL lake.system.expire_snapshots('db.a')": UnsupportedError,
    "DROP TABLE lake.db.a": UnsupportedError,
    "CREATE NAMESPACE lake.more": UnsupportedError,
    "SELECT nope FROM lake.db.a": AnalysisException,
}


@pytest.mark.check
@pytest.mark.parametrize("statement", REFUSED)
def test_after_an_error_only_rollback(tables, spark, rows, statement):
    spark.sql("BEGIN")
    rows.writeTo("lake.db.a").append()
    with pytest.raises(REFUSED[statement]):
        spark.sql(statement)
    if not statement.startswith("CALL"):
        with pytest.raises(ValidationError, match="run ROLLBACK"):
            rows.writeTo("lake.db.a").append()
        with pytest.raises(ValidationError, match="rolled back"):
            spark.sql("COMMIT")
    else:
        spark.sql("ROLLBACK")
    assert count(spark, "a") == 5


def test_a_writer_that_fails_counts_as_a_statement(tables, spark, rows):
    spark.sql("BEGIN")
    with pytest.raises(Exception, match="id"):
        rows.selectExpr("'x' AS id", "n").writeTo("lake.db.a").append()
    with pytest.raises(ValidationError, match="rolled back"):
        spark.sql("COMMIT")


@pytest.mark.check
def test_other_threads_other_lakes_and_streams(tables, other, spark, rows):
    rows.writeTo("other.db.there").create()
    spark.sql("USE lake.db")
    spark.sql("BEGIN")
    rows.writeTo("lake.db.a").append()
    both = "SELECT count(*) FROM other.db.there o JOIN a ON o.id = a.id"
    assert spark.sql(both).collect()[0][0] == 10
    assert spark.table("other.db.there").count() == 5
    seen = []
    thread = Thread(target=lambda: seen.append(count(spark, "a")))
    thread.start()
    thread.join()
    assert seen == [5]
    with pytest.raises(ValidationError, match="one of the lake lake"):
        rows.writeTo("other.db.t").create()
    with pytest.raises(UnsupportedError, match="cannot hold a stream"):
        spark.readStream.table("lake.db.a")
    with pytest.raises(ValidationError, match="not nested"):
        spark.sql("BEGIN")
    rows.createOrReplaceTempView("own_rows")
    assert spark.sql("SELECT count(*) FROM own_rows").collect()[0][0] == 5
    spark.catalog.dropTempView("own_rows")
    spark.sql("ROLLBACK")


def test_which_lake(tables, other, spark):
    with pytest.raises(ValidationError, match="say USE"):
        spark.sql("BEGIN TRANSACTION")
    spark.sql("USE other.db")
    with pytest.raises(ValidationError, match="no transaction is open"):
        spark.sql("COMMIT")


@pytest.mark.check
def test_detaching_rolls_back(tables, spark, rows, tmp_path):
    before = set(tmp_path.rglob("*.parquet"))
    spark.sql("BEGIN")
    rows.writeTo("lake.db.a").append()
    tables.detach()
    assert set(tmp_path.rglob("*.parquet")) == before
    tables.attach(name="lake")
    assert count(spark, "a") == 5
    with pytest.raises(ValidationError, match="no transaction is open"):
        spark.sql("COMMIT")
