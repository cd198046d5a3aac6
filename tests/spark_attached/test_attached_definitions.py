"""Definitions in an attached session that no USE has moved, and what Spark keeps of a query."""

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ci_share import in_circles
from frazil.errors import UnsupportedError, ValidationError

REPLACED = [
    ("CREATE TABLE lake.db.d AS SELECT 1 AS a, 'x' AS b", "lake.db.d", [(1, "x")]),
    (
        "REPLACE TABLE lake.db.d AS SELECT a * 10 AS a, 'new' AS c FROM lake.db.d",
        "lake.db.d",
        [(10, "new")],
    ),
    ("CREATE OR REPLACE TABLE lake.db.d AS SELECT 2 AS z", "lake.db.d", [(2,)]),
    ("CREATE OR REPLACE TABLE lake.db.d (q STRING) TBLPROPERTIES ('k' = '1')", "lake.db.d", []),
    ("CREATE OR REPLACE TABLE lake.db.fresh AS SELECT 3 AS z", "lake.db.fresh", [(3,)]),
    ("ALTER TABLE lake.db.fresh RENAME TO db.b", "lake.db.b", [(3,)]),
    ("ALTER TABLE lake.db.b RENAME TO lake.db.c", "lake.db.c", [(3,)]),
    ("ALTER TABLE lake.db.c RENAME TO e", "lake.db.e", [(3,)]),
    ("CREATE VIEW lake.db.v AS SELECT * FROM lake.db.e", "lake.db.v", [(3,)]),
    ("CREATE OR REPLACE VIEW lake.db.v AS SELECT z + 1 AS z FROM lake.db.e", "lake.db.v", [(4,)]),
    ("ALTER VIEW lake.db.v RENAME TO db.w", "lake.db.w", [(4,)]),
    ("ALTER VIEW lake.db.w RENAME TO y", "lake.db.y", [(4,)]),
]


def test_tables_and_views_are_replaced_and_renamed(lake, other, spark):
    for text, name, rows in REPLACED:
        spark.sql(text)
        assert [tuple(row) for row in spark.table(name).collect()] == rows, text
    for new in ("other.db.e", "spark_catalog.db.e"):
        with pytest.raises(ValidationError):
            spark.sql(f"ALTER TABLE lake.db.e RENAME TO {new}")
    assert spark.table("lake.db.e").count() == 1


@pytest.mark.check
@pytest.mark.parametrize("words", ["REPLACE TABLE", "CREATE OR REPLACE TABLE"])
def test_a_table_is_replaced_by_one_commit(lake, spark, words):
    """Its query reads the table of before, and one that fails leaves it."""
    spark.sql("CREATE TABLE lake.db.one AS SELECT 1 AS a")

    def states():
        metadata = lake.load_table("db.one").metadata
        return [entry.metadata_file for entry in metadata.metadata_log], len(metadata.snapshots)

    files, snapshots = states()
    failing = "SELECT CAST(raise_error('not so') AS INT) AS b FROM lake.db.one"
    with pytest.raises(Exception, match="not so"):
        spark.sql(f"{words} lake.db.one AS {failing}")
    assert states() == (files, snapshots)
    spark.sql(f"{words} lake.db.one AS SELECT a + 1 AS b FROM lake.db.one")
    assert [len(states()[0]), states()[1]] == [len(files) + 1, snapshots + 1]
    assert [row.asDict() for row in spark.table("lake.db.one").collect()] == [{"b": 2}]


def test_tables_by_the_catalogs_method(lake, spark):
    schema = T.StructType([T.StructField("id", T.LongType(), metadata={"comment": "of rows"})])
    spark.sql("USE lake.db")
    made = spark.catalog.createTable("one", schema=schema, description="first", k="v")
    assert (made.columns, made.count()) == (["id"], 0)
    spark.catalog.createTable("lake.db.two", source="iceberg", schema=schema)
    with pytest.warns(FutureWarning):
        spark.catalog.createExternalTable("three", schema=schema)
    assert [name[-1] for name in lake.list_tables("db")] == ["one", "three", "two"]
    metadata = lake.load_table("db.one").metadata
    assert {"comment": "first", "k": "v"}.items() <= metadata.properties.items()
    assert metadata.schema.fields[0].doc == "of rows"
    spark.catalog.createTable("five", source="PARQUET", schema=schema)
    assert lake.load_table("db.five").metadata.properties["write.format.default"] == "parquet"
    for source in ("orc", "csv"):
        with pytest.raises(UnsupportedError, match=f"USING {source}"):
            spark.catalog.createTable("four", source=source, schema=schema)
    with pytest.raises(ValidationError, match="schema"):
        spark.catalog.createTable("four")
    with pytest.raises(AnalysisException):
        spark.catalog.createTable("one", schema=schema)


KEPT = [
    ("CREATE TEMPORARY VIEW kept COMMENT 'x' AS SELECT * FROM {t}", "SELECT id, n FROM kept"),
    ("CREATE TEMPORARY VIEW kept (p COMMENT 'x', q) AS SELECT * FROM {t}", "SELECT p, q FROM kept"),
    ("CREATE TEMP VIEW kept (p) COMMENT 'x' AS SELECT id FROM {t}",
     "SELECT p FROM kept"),
    ("CACHE TABLE kept OPTIONS ('storageLevel' 'MEMORY_ONLY') AS SELECT * FROM {t}",
     "SELECT id FROM kept"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "query"), in_circles(reversed(KEPT), test=2))
def test_temporary_views_and_their_clauses(lake, plain, spark, rows, text, query):
    rows.writeTo("lake.db.t").create()
    found = []
    rows.createOrReplaceTempView("plain_rows")
    for name in ("plain_rows", "lake.db.t"):
        spark.sql(text.format(t=name))
        shape = [(f.name, f.metadata.get("comment")) for f in spark.table("kept").schema]
        found.append((shape, sorted(map(tuple, spark.sql(query).collect()))))
        with pytest.raises(AnalysisException, match="already exists"):
            spark.sql(f"CACHE TABLE kept AS SELECT 1 FROM {name}")
        spark.catalog.uncacheTable("kept")
        spark.catalog.dropTempView("kept")
    spark.catalog.dropTempView("plain_rows")
    assert found[0] == found[1]


def test_merges_by_the_tables_whole_name(lake, spark, rows):
    rows.writeTo("lake.db.t").create()
    source = spark.createDataFrame([(1, "z"), (9, "new")], "id int, n string").alias("s")
    whole = F.col("lake.db.t.id")
    for condition in (whole == source.id, F.expr("lake.db.t.id = s.id"), whole == F.col("s.id")):
        n = F.when(F.col("db.t.n") == "z", F.lit("y")).otherwise(source.n)
        merged = source.mergeInto("lake.db.t", condition).whenMatched(whole < 9)
        merged.update({"lake.db.t.n": n}).merge()
        found = spark.sql("SELECT n FROM lake.db.t WHERE id = 1").collect()
        assert found == [("z",)] or found == [("y",)]


PURGES = {
    "lake.purge_table": lambda lake, spark: lake.purge_table("db.t"),
    "lake.sql": lambda lake, spark: lake.sql("DROP TABLE db.t PURGE"),
    "spark.sql": lambda lake, spark: spark.sql("DROP TABLE lake.db.t PURGE"),
    "IF EXISTS": lambda lake, spark: spark.sql("DROP TABLE IF EXISTS lake.db.t PURGE"),
}


@pytest.mark.check
def test_a_purge_that_is_refused_drops_nothing(lake, spark, rows, tmp_path):
    writer = rows.writeTo("lake.db.t").tableProperty("gc.enabled", "false")
    writer.create()
    before = sorted(tmp_path.rglob("*"))
    for name, purge in PURGES.items():
        with pytest.raises(ValidationError, match=r"gc\.enabled"):
            purge(lake, spark)
        assert sorted(tmp_path.rglob("*")) == before, name
        assert spark.table("lake.db.t").count() == 5, name
