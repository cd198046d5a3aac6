"""Tables whose rows are kept: which reads take them, and that no read takes those of before."""

import pytest
from pyspark.storagelevel import StorageLevel

import frazil
from ci_share import in_circles
from frazil.errors import UnsupportedError

ALL = "SELECT * FROM lake.db.t"
ONE = "SELECT 1 AS id, 'z' AS n"
READS = [
    ALL,
    "SELECT n FROM lake.db.t WHERE id > 2",
    "SELECT a.id FROM lake.db.t a JOIN lake.db.t b ON a.id = b.id WHERE b.n = 'n1'",
    "WITH x AS (SELECT id FROM lake.db.t) SELECT max(id) FROM x WHERE id IN (SELECT 3)",
    "EXECUTE IMMEDIATE 'SELECT sum(id) FROM lake.db.t WHERE n < \"n2\"'",
]
CHANGES = {
    "INSERT": (lambda spark, lake: spark.sql("INSERT INTO lake.db.t VALUES (9, 'i')"), 6),
    "a method": (lambda spark, lake: lake.load_table("db.t").delete("id < 3"), 3),
    "DELETE": (lambda spark, lake: spark.sql("DELETE FROM lake.db.t WHERE id = 1"), 4),
    "a writer": (lambda spark, lake: spark.sql(ONE).writeTo("lake.db.t").append(), 6),
    "columns": (lambda spark, lake: spark.sql("ALTER TABLE lake.db.t DROP COLUMN n"), 5),
}  # fmt: skip


@pytest.fixture(autouse=True)
def table(lake, spark, rows):
    """A table of several files, of which a condition leaves out some."""
    rows.repartition(3, "id").writeTo("lake.db.t").create()
    yield
    spark.catalog.clearCache()


def is_kept(rows):
    """Whether a query reads rows that Spark keeps."""
    return "InMemoryRelation" in plan_of(rows)


def plan_of(rows):
    """The plan of a query, with what Spark keeps in the places of what it would read."""
    return rows._jdf.queryExecution().withCachedData().toString()


def is_empty(spark):
    """Whether Spark keeps nothing."""
    return spark._jsparkSession.sharedState().cacheManager().isEmpty()


def test_reads_of_a_table_take_what_is_kept(spark, lake):
    expected = [sorted(map(tuple, spark.sql(each).collect())) for each in READS]
    assert not any(is_kept(spark.sql(each)) for each in READS)
    spark.sql("CACHE TABLE lake.db.t")
    assert [is_kept(spark.sql(each)) for each in READS] == [True] * len(READS)
    assert [sorted(map(tuple, spark.sql(each).collect())) for each in READS] == expected
    one, other = spark.table("lake.db.t"), spark.table("lake.db.t")
    joined = one.join(other, one.id == other.id).where(one.id > 1)
    assert is_kept(joined)
    assert joined.count() == 4
    assert is_kept(lake.sql("SELECT n FROM db.t WHERE id = 2"))
    assert not is_kept(spark.sql("SELECT id, _pos FROM lake.db.t"))
    spark.sql("UNCACHE TABLE lake.db.t")
    assert not is_kept(spark.sql(ALL))
    assert is_empty(spark)


@pytest.mark.parametrize("change", in_circles(CHANGES, test=2))
def test_no_read_takes_rows_of_before(spark, lake, change):
    run, count = CHANGES[change]
    spark.sql("CACHE LAZY TABLE lake.db.t OPTIONS ('storageLevel' 'MEMORY_ONLY')")
    assert len(spark.sql(ALL).collect()) == 5
    run(spark, lake)
    for text in (ALL, "SELECT * FROM lake.db.t WHERE id > 0"):
        found = spark.sql(text)
        assert len(found.collect()) == count
        assert found.columns == lake.load_table("db.t").to_df().columns
        assert is_kept(found)
    spark.sql("UNCACHE TABLE IF EXISTS lake.db.t")
    assert is_empty(spark)


def test_what_another_process_commits_is_seen(spark, lake, lake_settings):
    """Another connection knows nothing of what this one keeps."""
    spark.sql("CACHE TABLE lake.db.t")
    with frazil.connect(spark, **lake_settings) as other:
        other.load_table("db.t").delete("id = 5")
    assert spark.sql(ALL).count() == 4
    assert spark.table("lake.db.t").count() == 4
    assert is_kept(spark.sql(ALL))


def test_methods_of_the_catalog(spark, lake):
    assert not spark.catalog.isCached("lake.db.t")
    spark.catalog.cacheTable("lake.db.t", StorageLevel.MEMORY_ONLY)
    assert spark.catalog.isCached("lake.db.t")
    assert is_kept(spark.sql(ALL))
    assert "StorageLevel(memory, 1 replicas)" in plan_of(spark.sql(ALL))
    spark.catalog.uncacheTable("lake.db.t")
    assert not spark.catalog.isCached("lake.db.t")
    assert is_empty(spark)
    spark.catalog.cacheTable("lake.db.t")
    spark.catalog.clearCache()
    assert not spark.catalog.isCached("lake.db.t")
    assert not is_kept(spark.sql(ALL))


def test_what_is_dropped_or_read_at_a_version_is_not_kept(spark, lake):
    spark.sql("ALTER TABLE lake.db.t CREATE TAG one")
    spark.sql("CACHE TABLE lake.db.t")
    spark.sql("INSERT INTO lake.db.t VALUES (9, 'i')")
    assert spark.sql(f"{ALL} VERSION AS OF 'one'").count() == 5
    assert spark.table("lake.db.t.tag_one").count() == 5
    assert spark.sql("SELECT count(*) FROM lake.db.t.snapshots").collect()[0][0] == 2
    spark.sql("DROP TABLE lake.db.t")
    assert is_empty(spark)


def test_a_named_query_follows_its_table(spark, lake):
    """As a temporary view does."""
    spark.sql("CACHE TABLE kept AS SELECT id FROM lake.db.t WHERE id > 1")
    assert is_kept(spark.sql("SELECT * FROM kept"))
    spark.sql("INSERT INTO lake.db.t VALUES (9, 'i')")
    assert spark.sql("SELECT count(*) FROM kept").collect()[0][0] == 5
    assert is_kept(spark.sql("SELECT * FROM kept"))
    lake.load_table("db.t").delete("id = 9")
    assert spark.table("kept").count() == 4
    spark.sql("UNCACHE TABLE kept")
    assert is_empty(spark)
    spark.sql("DROP VIEW kept")


def test_views_and_transactions_are_refused(spark, lake):
    spark.sql("CREATE VIEW lake.db.v AS SELECT id FROM lake.db.t")
    with pytest.raises(UnsupportedError, match="a view of the lake"):
        lake.sql("CACHE TABLE db.v")
    with lake.transaction() as changes, pytest.raises(UnsupportedError, match="a transaction"):
        changes.sql("CACHE TABLE db.t")


def test_rows_in_a_transaction_are_its_own(spark, lake):
    spark.sql("CACHE TABLE lake.db.t")
    with lake.transaction() as changes:
        changes.sql("INSERT INTO db.t VALUES (9, 'i')")
        assert changes.sql("SELECT * FROM db.t").count() == 6
        assert spark.sql(ALL).count() == 5
    assert spark.sql(ALL).count() == 6
