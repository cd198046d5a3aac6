"""Statements, readers and the catalog over names of lakes, of Spark, and of both."""

import shutil

import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import frazil
from ci_share import one_in, one_of_each
from frazil.errors import (
    ConfigurationError,
    FrazilError,
    MissingFileError,
    UnsupportedError,
    ValidationError,
)


@pytest.fixture
def tables(lake, other, plain, spark, rows):
    """The same rows in two lakes and in Spark."""
    rows.writeTo("lake.db.t").create()
    rows.writeTo("other.db.t").create()
    rows.write.saveAsTable(f"{plain}.t")
    rows.createOrReplaceTempView("seen")
    yield
    spark.catalog.dropTempView("seen")


QUERIES = [
    "SELECT t.id, {t}.n FROM {t} WHERE id > 2",
    "SELECT a.id FROM {t} a JOIN other.db.t b USING (id) JOIN plain_db.t c USING (id)",
    "WITH t AS (SELECT 7 AS id) SELECT * FROM t UNION SELECT id FROM {t}",
    "SELECT (SELECT max(id) FROM {t}) AS m, s.n FROM seen s",
    "SELECT '{t}' AS text, `id` FROM {t} -- {t}",
]


@pytest.mark.check
@pytest.mark.parametrize("query", one_in(2, QUERIES))
def test_queries_over_two_lakes_and_spark(tables, spark, query):
    model = query.replace("other.db.t", "plain_db.t").replace("{t}", "plain_db.t")
    found, expected = spark.sql(query.replace("{t}", "lake.db.t")), spark.sql(model)
    assert found.columns == expected.columns
    rows = [sorted(str(row) for row in each.collect()) for each in (found, expected)]
    assert rows[0] == [row.replace("plain_db.t", "lake.db.t") for row in rows[1]]


@pytest.mark.check
def test_parameters_and_what_stands_in_braces(tables, spark, rows):
    text = "SELECT id FROM lake.db.t WHERE id = :i"
    assert spark.sql("SELECT * FROM {names} JOIN lake.db.t USING (id)", names=rows).count() == 5
    assert spark.sql(text, {"i": 3}).collect()[0].id == 3
    assert spark.sql("SELECT id FROM lake.db.t WHERE id = ?", [4]).collect()[0].id == 4
    given = rows.withColumnRenamed("n", "m")
    joined = spark.sql("SELECT {c} FROM {d} JOIN lake.db.t USING (id) WHERE id = {i}",
                       c=given.m, d=given, i=5)  # fmt: skip
    assert [tuple(row) for row in joined.collect()] == [("n2",)]
    spark.sql("INSERT INTO lake.db.t SELECT id + 10, n FROM {d} WHERE id = {i}", d=rows, i=2)
    assert spark.table("lake.db.t").where("id = 12").count() == 1


@pytest.mark.check
def test_a_change_in_one_lake_from_a_query_over_another(tables, spark, plain):
    spark.sql("INSERT INTO lake.db.t SELECT id + 10, n FROM other.db.t")
    spark.sql("WITH a AS (SELECT * FROM other.db.t) INSERT INTO lake.db.t SELECT 99, n FROM a")
    spark.sql("CREATE TABLE lake.db.u AS SELECT * FROM other.db.t WHERE id = 1")
    spark.sql("MERGE INTO other.db.t USING lake.db.t s ON t.id = s.id WHEN MATCHED THEN DELETE")
    spark.sql(f"INSERT INTO {plain}.t SELECT * FROM lake.db.u")
    counts = [spark.table(t).count() for t in ("lake.db.t", "lake.db.u", "other.db.t", "seen")]
    assert counts == [15, 1, 0, 5]
    assert spark.table(f"{plain}.t").count() == 6
    with pytest.raises(ValidationError, match="one lake"):
        spark.sql("ALTER TABLE lake.db.u RENAME TO other.db.u")
    assert spark.catalog.tableExists("lake.db.u")


def test_use(tables, spark):
    spark.sql("USE lake.db")
    assert spark.table("t").count() == spark.sql("SELECT * FROM t").count() == 5
    assert spark.catalog.currentCatalog() == "lake"
    assert spark.catalog.currentDatabase() == "db"
    said = spark.sql("SELECT current_catalog(), current_schema(), max(id) > 0 FROM t").collect()
    assert [tuple(row) for row in said] == [("lake", "db", True)]
    spark.sql("CREATE TABLE v AS SELECT * FROM db.t WHERE id < 3")
    assert spark.read.table("v.snapshots").count() == 1
    assert spark.sql("SHOW TABLES").count() == 2
    # As in Spark: a temporary view goes first, and a whole name means the table.
    spark.sql("CREATE TEMPORARY VIEW v AS SELECT 1 AS one FROM t")
    try:
        assert spark.table("v").columns == spark.sql("SELECT * FROM v").columns == ["one"]
        assert spark.table("lake.db.v").columns == ["id", "n"]
        with pytest.raises(ValidationError, match="temporary view"):
            spark.range(1).writeTo("v").append()
    finally:
        spark.catalog.dropTempView("v")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.table("plain_db.t")
    assert spark.table("spark_catalog.plain_db.t").count() == 5
    assert spark.table("other.db.t").count() == 5
    with pytest.raises(AnalysisException, match="SCHEMA_NOT_FOUND"):
        spark.sql("USE nowhere")
    spark.sql("USE spark_catalog.plain_db")
    assert spark.sql("SELECT count(*) FROM t").collect()[0][0] == 5
    assert spark.catalog.currentCatalog() == "spark_catalog"
    spark.sql("USE default")
    spark.catalog.setCurrentCatalog("lake")
    spark.catalog.setCurrentDatabase("db")
    assert spark.table("t").count() == 5
    spark.sql("SET CATALOG spark_catalog")
    told = "SELECT DISTINCT current_catalog(), current_database() FROM lake.db.t"
    assert [tuple(row) for row in spark.sql(told).collect()] == [("spark_catalog", "default")]
    spark.sql("SET CATALOG 'lake'")
    assert spark.sql("SELECT current_catalog()").collect()[0][0] == "lake"
    spark.sql("SET CATALOG spark_catalog")
    assert spark.catalog.currentDatabase() == "default"


@pytest.mark.parametrize(
    ("statement", "does"),
    [
        ("EXECUTE IMMEDIATE 'USE lake.db'", "a text"),
        ("EXECUTE IMMEDIATE concat('USE ', 'la', 'ke.db')", "a text that is put together"),
        ("/* of all */ BEGIN USE lake.db; SELECT count(*) FROM lake.db.t; END", "a script"),
    ],
)
def test_use_within_what_spark_runs_is_use(tables, spark, statement, does):
    """Statements that only a lake knows follow it, and Spark's own place is found again."""
    spark.sql("USE spark_catalog.plain_db")
    spark.sql(statement)
    assert spark.catalog.currentCatalog() == "lake", does
    assert spark.catalog.currentDatabase() == "db"
    spark.sql("CREATE VIEW few AS SELECT * FROM t WHERE id < 3")
    assert spark.table("lake.db.few").count() == spark.sql("SELECT * FROM few").count() == 2
    spark.sql("ALTER TABLE t WRITE ORDERED BY id")
    spark.sql("EXECUTE IMMEDIATE 'DELETE FROM t WHERE id = 1'")
    assert spark.sql("SELECT count(*) FROM lake.db.t").collect()[0][0] == 4
    with pytest.raises(AnalysisException, match="SCHEMA_NOT_FOUND"):
        spark.sql("EXECUTE IMMEDIATE 'USE lake.nowhere'")
    assert spark.catalog.currentDatabase() == "db"
    spark.sql("EXECUTE IMMEDIATE 'USE spark_catalog.plain_db'")
    assert spark.catalog.currentCatalog() == "spark_catalog"
    assert spark.sql("SELECT count(*) FROM t").collect()[0][0] == 5
    spark.sql("USE spark_catalog.default")


def test_options_of_readers(tables, lake, spark, rows):
    table = lake.load_table("db.t")
    first = table.current_snapshot
    table.create_tag("one")
    rows.writeTo("lake.db.t").append()
    table.refresh()
    last = table.current_snapshot.snapshot_id
    rows.writeTo("lake.db.t").append()
    read = spark.read.format("iceberg")
    place = table.location
    options = {
        "snapshot-id": first.snapshot_id,
        "as-of-timestamp": first.timestamp_ms,
        "tag": "one",
        "versionAsOf": "one",
        "branch": "main",
    }
    for option, value in options.items():
        expected = 15 if option == "branch" else 5
        assert spark.read.option(option, value).table("lake.db.t").count() == expected
        assert spark.read.format("iceberg").load(place, **{option: value}).count() == expected
    assert (
        spark.read.option("start-snapshot-id", first.snapshot_id)
        .option("end-snapshot-id", last)
        .table("lake.db.t")
        .count()
        == 5
    )
    assert read.load("lake.db.t.tag_one").count() == 5
    assert read.load("lake.db.t.history").count() == 3
    assert read.option("split-size", 1).load("lake.db.t").count() == 15
    with pytest.raises(ConfigurationError, match="snapshot_id"):
        spark.read.option("snapshot_id", 1).table("lake.db.t")
    with pytest.raises(ValidationError, match="give one"):
        spark.read.options(tag="one", branch="main").table("lake.db.t")
    with pytest.raises(UnsupportedError, match="schema"):
        spark.read.schema("id int").table("lake.db.t")


def test_the_catalog(tables, spark):
    catalog = spark.catalog
    spark.sql("CREATE TABLE lake.db.u (id INT NOT NULL COMMENT 'key', b BIGINT) "
              "PARTITIONED BY (id, bucket(2, b))")  # fmt: skip
    assert {each.name for each in catalog.listCatalogs()} >= {"lake", "other", "spark_catalog"}
    assert {row[0] for row in spark.sql("SHOW CATALOGS").collect()} >= {"lake", "spark_catalog"}
    own = [each for each in catalog.listTables("lake.db") if not each.isTemporary]
    assert [(t.name, t.catalog, t.namespace) for t in own] == [
        ("t", "lake", ["db"]), ("u", "lake", ["db"])
    ]  # fmt: skip
    assert [t.name for t in catalog.listTables("lake.db", "u*") if not t.isTemporary] == ["u"]
    columns = catalog.listColumns("lake.db.u")
    assert [(c.name, c.description, c.dataType, c.nullable) for c in columns] == [
        ("id", "key", "int", False),
        ("b", None, "bigint", True),
    ]
    assert [(c.isPartition, c.isBucket) for c in columns] == [(True, False), (False, True)]
    assert catalog.getTable("lake.db.u").catalog == "lake"
    exists = [catalog.tableExists(n) for n in ("lake.db.u", "lake.db.no", "plain_db.t", "lake.x.y")]
    assert exists == [True, False, True, False]
    assert [catalog.databaseExists(n) for n in ("lake.db", "lake.no", "plain_db", "no")] == [
        True, False, True, False
    ]  # fmt: skip
    assert catalog.getDatabase("lake.db").catalog == "lake"
    catalog.refreshTable("lake.db.u")
    assert not catalog.isCached("lake.db.u")
    catalog.cacheTable("lake.db.u")
    assert catalog.isCached("lake.db.u")
    catalog.uncacheTable("lake.db.u")
    assert not catalog.isCached("lake.db.u")
    for missing in (catalog.getTable, catalog.listColumns):
        with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
            missing("lake.db.no")
    if hasattr(catalog, "createDatabase"):  # Since Spark 4.2.
        catalog.createDatabase("lake.more", ifNotExists=True)
        assert catalog.databaseExists("lake.more")
        catalog.dropDatabase(dbName="lake.more", cascade=True)
    catalog.setCurrentCatalog("lake")
    assert [each.name for each in catalog.listDatabases()] == ["db"]
    assert catalog.tableExists("db.u")


@pytest.mark.check
def test_pandas_on_spark(tables, spark):
    import pyspark.pandas as ps

    # Spark 4.0 refuses this where `spark.sql.ansi.enabled` is true, which it is.
    with ps.option_context("compute.fail_on_ansi_mode", False):
        frame = ps.read_table("lake.db.t")
        assert sorted(frame["id"].to_list()) == [1, 2, 3, 4, 5]
        frame.to_table("lake.db.of_pandas", format="iceberg")
    assert spark.table("lake.db.of_pandas").count() == 5


@pytest.mark.check
def test_names_with_dots_and_backticks(lake, spark, rows):
    spark.sql("CREATE TABLE lake.db.`my.table` (`a.b` INT)")
    spark.range(2).selectExpr("CAST(id AS INT) AS `a.b`").writeTo("lake.db.`my.table`").append()
    assert spark.table("`lake`.`db`.`my.table`").select("`a.b`").count() == 2
    rows.withColumnRenamed("n", "a b").writeTo("lake.db.odd").partitionedBy(F.col("a b")).create()
    assert spark.sql("SELECT `a b` FROM lake.db.odd").count() == 5
    assert spark.catalog.tableExists("lake.db.`my.table`")


ERRORS = [
    "SELECT * FROM nothing",
    "SELECT * FROM no.lake.table",
    "SELEC 1",
    "SELECT 'lake",
    "INSERT INTO plain_db.t VALUES (1)",
    "USE nowhere",
]


@pytest.mark.check
@pytest.mark.parametrize("text", one_in(3, ERRORS))
def test_errors_about_names_of_spark_are_sparks(tables, spark, lake, other, text):
    with pytest.raises((AnalysisException, ParseException)) as here:
        spark.sql(text)
    lake.detach()
    other.detach()
    with pytest.raises((AnalysisException, ParseException)) as there:
        spark.sql(text)
    assert type(here.value) is type(there.value)
    assert str(here.value) == str(there.value)
    lake.attach(name="lake")


@pytest.mark.check
def test_a_format_of_no_lake_is_sparks(lake, spark):
    # It has no type of its own in PySpark: the class of the source is not found.
    with pytest.raises(Exception, match="data source: iceberg"):
        spark.read.format("iceberg").load("db.t")
    assert SparkSession.read.__doc__


READS = {
    "table": lambda spark, place: spark.table("gone.db.old"),
    "sql": lambda spark, place: spark.sql("SELECT n, count(*) AS c FROM gone.db.old GROUP BY n"),
    "join": lambda spark, place: spark.sql(
        "SELECT /*+ BROADCAST(o) */ s.id FROM seen s JOIN gone.db.old o USING (id)"
    ),
    "folder": lambda spark, place: spark.read.format("iceberg").load(place),
    "handle": lambda spark, place: frazil.open_table(place, spark=spark).to_df(),
    "by hand": lambda spark, place: spark.table("gone.db.by_hand"),
}
ACTIONS = {
    "collect": lambda rows: rows.collect(),
    "show": lambda rows: rows.show(),
    "first": lambda rows: rows.first(),
    "isEmpty": lambda rows: rows.isEmpty(),
    "tail": lambda rows: rows.tail(1),
    "toPandas": lambda rows: rows.toPandas(),
    "toArrow": lambda rows: rows.toArrow(),
    "toLocalIterator": lambda rows: list(rows.toLocalIterator()),
    "foreach": lambda rows: rows.foreach(id),
    "localCheckpoint": lambda rows: rows.localCheckpoint(),
}


@pytest.fixture(scope="module")
def outlived(spark, tmp_path_factory):
    """DataFrames of tables whose files are gone by now."""
    with frazil.connect(spark, warehouse=str(tmp_path_factory.mktemp("lake"))) as lake:
        lake.create_namespace("db")
        lake.attach(name="gone")
        rows = spark.sql("SELECT CAST(id AS INT) AS id, 'a' AS n FROM range(3)")
        rows.createOrReplaceTempView("seen")
        rows.writeTo("gone.db.old").create()
        by_hand = lake.create_table("db.by_hand", rows)
        brought = f"{by_hand.location}/data/brought"
        rows.write.orc(brought)
        by_hand.maintenance.add_files(brought, format="orc")
        place = lake.load_table("db.old").location
        found = {name: read(spark, place) for name, read in READS.items()}
        for table in ("old", "by_hand"):
            spark.sql(f"DROP TABLE gone.db.{table} PURGE")
        yield found
        spark.catalog.dropTempView("seen")


def lost(name):
    """What is said of a file of the table that is gone."""
    return pytest.raises(MissingFileError, match=rf"table at \S+/db/{name} does not exist: it was")


@pytest.mark.parametrize("read", one_of_each(READS, test=1))
def test_a_dataframe_that_outlives_its_files(outlived, read):
    with lost("by_hand" if read == "by hand" else "old"):
        outlived[read].collect()


@pytest.mark.parametrize("action", one_of_each(ACTIONS, test=1))
def test_each_action_of_a_dataframe_that_outlives_its_files(outlived, action):
    with lost("old"):
        ACTIONS[action](outlived["table"])


@pytest.mark.parametrize("read", one_of_each(["table", "by hand"], test=1))
def test_rows_that_are_written_outlive_their_files(outlived, spark, tmp_path, read):
    """Without an attached lake too: a command of ours reads them."""
    with frazil.connect(spark, warehouse=str(tmp_path)) as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.t", outlived[read])
        with pytest.raises(MissingFileError, match="nothing was committed: the rows come"):
            table.append(outlived[read])
        assert table.refresh().current_snapshot is None


@pytest.mark.check
def test_lost_files_of_sparks_own_tables_are_sparks_error(lake, rows, tmp_path, spark):
    place = str(tmp_path / "plain")
    rows.write.parquet(place)
    plain = spark.read.parquet(place)
    shutil.rmtree(place)
    with pytest.raises(Exception, match="FILE_NOT_EXIST") as told:
        plain.collect()
    assert not isinstance(told.value, FrazilError)


def test_options_of_readers_of_changes(tables, lake, spark):
    """Between which snapshots, by the Java runtime's names."""
    first = lake.load_table("db.t").current_snapshot
    spark.sql("DELETE FROM lake.db.t WHERE id = 1")
    spark.sql("INSERT INTO lake.db.t SELECT * FROM lake.db.t WHERE id = 2")
    options = {
        "start-snapshot-id": (first.snapshot_id, {"DELETE", "INSERT"}, 2),
        "end-snapshot-id": (first.snapshot_id, {"INSERT"}, 1),
        "start-timestamp": (first.timestamp_ms, {"DELETE", "INSERT"}, 2),
        "end-timestamp": (first.timestamp_ms, {"INSERT"}, 1),
    }
    for option, (value, kinds, snapshots) in options.items():
        found = spark.read.option(option, value).table("lake.db.t.changes")
        assert {row[0] for row in found.select("_change_type").collect()} == kinds
        assert found.select("_change_ordinal").distinct().count() == snapshots
        text = f"SELECT * FROM db.t.changes WITH (`{option}` = '{value}')"
        assert lake.sql(text).count() == found.count()
    assert spark.read.format("iceberg").load("lake.db.t.changes").count() > 7
    with pytest.raises(ConfigurationError, match="start-snapshot-id"):
        spark.read.option("tag", "one").table("lake.db.t.changes")
    with pytest.raises(FrazilError, match="no snapshot 77"):
        spark.read.option("start-snapshot-id", 77).table("lake.db.t.changes")
