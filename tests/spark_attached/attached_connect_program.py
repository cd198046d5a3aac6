"""An attached session over Spark Connect; run by `test_attached_connect`."""

from __future__ import annotations

import sys

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.connect.readwriter import DataFrameWriterV2
from pyspark.sql.functions import partitioning as P

import frazil
from frazil.errors import MissingFileError


def main(folder: str, address: str) -> None:
    """Do everything once; the first thing that goes wrong ends the program."""
    spark = SparkSession.builder.remote(address).getOrCreate()
    before = (type(spark).sql, type(spark).read)
    lake = frazil.connect(spark, warehouse=folder)
    lake.create_namespace("db")
    lake.attach(name="lake")
    rows = spark.sql("SELECT CAST(id AS INT) AS id, concat('n', id % 3) AS n FROM range(1, 6)")

    writer = rows.writeTo("lake.db.t").using("iceberg")
    assert isinstance(writer, DataFrameWriterV2)
    writer.partitionedBy(P.bucket(4, "id"), F.col("n")).tableProperty("a", "b").create()
    table = lake.load_table("db.t")
    assert [str(f.transform) for f in table.metadata.spec.fields] == ["bucket[4]", "identity"]
    rows.selectExpr("n", "id + 10 AS id").write.mode("append").saveAsTable("lake.db.t")
    rows.selectExpr("id + 20 AS x", "n AS y").write.insertInto("lake.db.t")
    assert spark.table("lake.db.t").count() == 15
    assert spark.sql("SELECT t.id FROM lake.db.t WHERE id = :i", {"i": 13}).collect()[0].id == 13
    first = table.metadata.snapshots[0].snapshot_id
    assert spark.read.option("snapshot-id", first).table("lake.db.t").count() == 5
    assert spark.read.format("iceberg").load("lake.db.t.snapshots").count() == 3

    source = spark.createDataFrame([(1, "z"), (99, "new")], "id int, n string").alias("s")
    clauses = source.mergeInto("lake.db.t", F.expr("t.id = s.id"))
    clauses = clauses.whenMatched().update({"n": F.col("s.n")}).whenNotMatched().insertAll()
    clauses.whenNotMatchedBySource(F.expr("t.id > 20")).delete().merge()
    assert sorted(row.id for row in spark.table("lake.db.t").collect()) == [
        1, 2, 3, 4, 5, 11, 12, 13, 14, 15, 99
    ]  # fmt: skip
    spark.sql("DELETE FROM lake.db.t WHERE id = 99")

    spark.sql("DECLARE OR REPLACE VARIABLE id INT DEFAULT 12")
    spark.sql("DECLARE OR REPLACE VARIABLE found STRING")
    text = "SELECT n FROM lake.db.t WHERE id = ? AND length(?) = 2 AND ? < current_timestamp()"
    values = "id + 1, X'00FF', TIMESTAMP '2024-03-01 12:00:00.5'"
    spark.sql(f"EXECUTE IMMEDIATE '{text}' INTO found USING {values}")
    assert spark.sql("SELECT found").collect()[0][0] == "n0"
    spark.sql("EXECUTE IMMEDIATE 'DELETE FROM lake.db.t WHERE id = :id' USING id")
    assert spark.table("lake.db.t").count() == 9
    lake.sql("EXECUTE IMMEDIATE 'INSERT INTO db.t (id, n) VALUES (?, ?)' USING 12, 'n2'")
    spark.sql("DROP TEMPORARY VARIABLE id")
    spark.sql("DROP TEMPORARY VARIABLE found")

    spark.sql("USE lake.db")
    assert spark.table("t").count() == 10
    assert spark.catalog.currentDatabase() == "db"
    assert [each.name for each in spark.catalog.listTables() if not each.isTemporary] == ["t"]
    spark.sql("USE spark_catalog.default")
    assert spark.catalog.tableExists("lake.db.t")
    assert [each.name for each in spark.catalog.listColumns("lake.db.t")] == ["id", "n"]
    cases = [lambda: spark.table("lake.db.no")]
    if hasattr(type(spark), "newSession"):
        cases.append(lambda: spark.newSession().table("lake.db.t").schema)
    for missing in cases:
        try:
            missing()
        except AnalysisException:
            continue
        raise AssertionError("what is not there was read")
    if hasattr(type(spark), "newSession"):
        assert spark.newSession().range(2).count() == 2
    old = spark.table("lake.db.t")
    spark.sql("DROP TABLE lake.db.t PURGE")
    for action in (old.collect, old.toPandas, lambda: list(old.toLocalIterator())):
        try:
            action()
        except MissingFileError:
            continue
        raise AssertionError("what is gone was read")
    lake.detach()
    assert (type(spark).sql, type(spark).read) == before
    print("right")


if __name__ == "__main__":
    main(*sys.argv[1:])
