"""BEGIN, COMMIT and ROLLBACK of an attached session: statements and writers of all its threads."""

from concurrent.futures import ThreadPoolExecutor
from threading import Thread

import pytest
from pyspark.errors import AnalysisException

import frazil
from ci_share import one_in, only_in_check
from frazil.errors import UnsupportedError, ValidationError


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


def _same_id(name="a"):
    from pyspark.sql import functions as F

    return F.expr(f"{name}.id = s.id")


REFUSED = {
    "CALL lake.system.expire_snapshots('db.a')": UnsupportedError,
    "DROP TABLE lake.db.a": UnsupportedError,
    "CREATE NAMESPACE lake.more": UnsupportedError,
    "SELECT nope FROM lake.db.a": AnalysisException,
}


@pytest.mark.check
@pytest.mark.parametrize("statement", one_in(2, REFUSED))
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
def test_statements_that_spark_calls_back_for_are_parts_of_it(tables, spark):
    """Spark runs them, and asks Frazil meanwhile, in another thread of Python."""
    spark.sql("CREATE TEMPORARY VIEW some_rows AS SELECT * FROM lake.db.a")
    spark.sql("USE lake.db")
    spark.sql("BEGIN")
    spark.sql("INSERT INTO a SELECT * FROM some_rows LIMIT 1")
    spark.sql("DROP VIEW some_rows")
    spark.sql("ROLLBACK")
    spark.sql("USE spark_catalog")
    assert not spark.catalog.tableExists("some_rows")


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
    assert seen == [10]
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


def test_a_transaction_is_the_sessions_and_no_other_ones(tables, spark, tmp_path):
    """Its threads take turns in it; a thread may end what another one has begun."""
    before = len(tables.load_table("db.a").metadata.snapshots)
    own = spark.newSession()
    with (
        frazil.connect(own, warehouse=str(tmp_path / "lake")) as there,
        ThreadPoolExecutor(4) as pool,
    ):
        there.attach(name="lake")
        spark.sql("BEGIN")
        texts = [f"INSERT INTO lake.db.a VALUES ({number}, 'x')" for number in range(10, 14)]
        list(pool.map(spark.sql, texts))
        assert (count(spark, "a"), count(own, "a")) == (9, 5)
        own.sql("DELETE FROM lake.db.b WHERE id = 1")
        assert count(own, "b") == 4
        with pytest.raises(ValidationError, match="no transaction is open"):
            own.sql("COMMIT")
        list(pool.map(spark.sql, ["COMMIT"]))
        assert (count(spark, "a"), count(own, "a"), count(spark, "b")) == (9, 9, 4)
        assert len(tables.load_table("db.a").metadata.snapshots) == before + 4


SCRIPT = "BEGIN INSERT INTO lake.db.a VALUES (6, 'x'); DELETE FROM lake.db.b WHERE id = 1; END"


@pytest.mark.parametrize("use", [only_in_check(""), "USE lake.db"])
def test_a_script_and_what_it_runs_are_in_it(tables, spark, session, use):
    session(spark__sql__scripting__enabled="true")
    if use:
        spark.sql(use)
    spark.sql("BEGIN")
    spark.sql(SCRIPT).collect()
    spark.sql("EXECUTE IMMEDIATE 'DELETE FROM lake.db.a WHERE id = 5'").collect()
    assert (count(spark, "a"), seen_by_others(tables, "a")) == (5, 5)
    assert (count(spark, "b"), seen_by_others(tables, "b")) == (4, 5)
    spark.sql("ROLLBACK")
    assert (count(spark, "a"), count(spark, "b")) == (5, 5)


ON_ANOTHER_LAKE = (
    "INSERT INTO other.db.there VALUES (9, 'x')",
    "INSERT INTO other.db.there.branch_main VALUES (9, 'x')",
    "INSERT OVERWRITE other.db.there SELECT * FROM lake.db.a",
    "FROM lake.db.a INSERT INTO other.db.there SELECT *",
    "WITH s AS (SELECT 9 AS id, 'x' AS n) INSERT INTO other.db.there SELECT * FROM s",
    "UPDATE other.db.there SET n = 'x'",
    "DELETE FROM other.db.there WHERE id IN (SELECT id FROM lake.db.a)",
    "TRUNCATE TABLE other.db.there",
    "MERGE INTO other.db.there t USING lake.db.a s ON t.id = s.id WHEN MATCHED THEN DELETE",
    "ALTER TABLE other.db.there ADD COLUMN w INT",
    "ALTER TABLE other.db.there SET TBLPROPERTIES ('x' = 'y')",
    "ALTER TABLE other.db.there CREATE BRANCH b",
    "ALTER TABLE other.db.there RENAME TO other.db.x",
    "COMMENT ON TABLE other.db.there IS 'x'",
    "CREATE TABLE other.db.x (id INT)",
    "CREATE TABLE other.db.x AS SELECT * FROM lake.db.a",
    "CREATE TABLE other.db.x LIKE lake.db.a",
    "CREATE OR REPLACE TABLE other.db.there AS SELECT * FROM lake.db.a",
    "DROP TABLE other.db.there",
    "CREATE VIEW other.db.v AS SELECT * FROM lake.db.a",
    "CREATE NAMESPACE other.more",
    "DROP NAMESPACE other.db CASCADE",
    "COMMENT ON NAMESPACE other.db IS 'x'",
)
WRITERS = {
    "append": lambda rows: rows.writeTo("other.db.there").append(),
    "insertInto": lambda rows: rows.write.insertInto("other.db.there"),
    "saveAsTable": lambda rows: rows.write.mode("overwrite").saveAsTable("other.db.there"),
    "mergeInto": lambda rows: (
        rows.alias("s")
        .mergeInto("other.db.there", _same_id("there"))
        .whenMatched()
        .delete()
        .merge()
    ),
    "truncateTable": lambda rows: rows.sparkSession.catalog.truncateTable("other.db.there"),
    "dropTable": lambda rows: rows.sparkSession.catalog.dropTable("other.db.there"),
}
SINCE_4_2 = ("truncateTable", "dropTable")


def test_what_changes_another_lake_is_refused(tables, other, spark, rows, tmp_path):
    rows.writeTo("other.db.there").create()
    before = {path: path.read_bytes() for path in (tmp_path / "other").rglob("*") if path.is_file()}
    spark.sql("USE lake.db")
    acts = {text: (lambda text=text: spark.sql(text)) for text in ON_ANOTHER_LAKE}
    acts |= {
        name: (lambda act=act: act(rows))
        for name, act in WRITERS.items()
        if name not in SINCE_4_2 or hasattr(spark.catalog, name)
    }
    for act in acts.values():
        spark.sql("BEGIN")
        with pytest.raises(ValidationError, match="one of the lake lake, and this is about other"):
            act()
        spark.sql("ROLLBACK")
    after = {path: path.read_bytes() for path in (tmp_path / "other").rglob("*") if path.is_file()}
    assert after == before


def test_a_merge_is_part_of_the_transaction_that_it_is_run_in(tables, spark, rows):
    merged = rows.alias("s").mergeInto("lake.db.a", _same_id()).whenMatched().delete()
    spark.sql("BEGIN")
    merged.merge()
    assert (count(spark, "a"), seen_by_others(tables, "a")) == (0, 5)
    spark.sql("ROLLBACK")
    assert count(spark, "a") == 5


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
