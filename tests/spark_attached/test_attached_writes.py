"""Writers into a lake's table, each beside the same writer into a table of Spark's own."""

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F
from pyspark.sql.functions import partitioning as P

from ci_share import in_circles, only_in_soak
from frazil.errors import (
    ConfigurationError,
    SchemaMismatchError,
    UnsupportedError,
    ValidationError,
)

SAVES = {
    "a new table": lambda df, t: df.write.saveAsTable(t),
    "by columns": lambda df, t: df.write.partitionBy("n").saveAsTable(t),
    "added by name": lambda df, t: (
        df.write.saveAsTable(t),
        df.select("n", "id").write.mode("append").saveAsTable(t),
    ),
    "replaced": lambda df, t: (
        df.write.saveAsTable(t),
        df.selectExpr("n", "id * 2L AS twice").write.mode("overwrite").saveAsTable(t),
    ),
    "ignored": lambda df, t: (
        df.write.saveAsTable(t),
        df.write.mode("ignore").saveAsTable(t),
    ),
    "by places": lambda df, t: (
        df.write.saveAsTable(t),
        df.selectExpr("id + 10 AS x", "n AS y").write.insertInto(t),
    ),
    "in place of all": lambda df, t: (
        df.write.saveAsTable(t),
        df.where("id = 1").write.insertInto(t, overwrite=True),
    ),
}


def contents(spark, name):
    return sorted(map(tuple, spark.table(name).collect())), spark.table(name).columns


@pytest.mark.parametrize(
    "name",
    in_circles(
        [only_in_soak(n) if n in ("by columns", "ignored") else n for n in SAVES], test=1, check=2
    ),
)
def test_what_is_saved_is_what_spark_saves(lake, plain, spark, rows, name):
    for table in ("lake.db.t", f"{plain}.t"):
        SAVES[name](rows, table)
    assert sorted(contents(spark, "lake.db.t")[1]) == sorted(contents(spark, f"{plain}.t")[1])
    columns = contents(spark, "lake.db.t")[1]
    theirs = sorted(map(tuple, spark.table(f"{plain}.t").select(*columns).collect()))
    assert contents(spark, "lake.db.t")[0] == theirs


def test_write_to(lake, spark, rows):
    rows.writeTo("lake.db.t").using("iceberg").partitionedBy(
        P.bucket(4, "id"), F.col("n")
    ).tableProperty("format-version", "3").tableProperty("a", "b").create()
    table = lake.load_table("db.t")
    assert [str(field.transform) for field in table.metadata.spec.fields] == [
        "bucket[4]",
        "identity",
    ]
    assert table.metadata.format_version == 3
    assert table.metadata.properties["a"] == "b"
    rows.selectExpr("n", "id + 10 AS id").writeTo("lake.db.t").append()
    assert spark.table("lake.db.t").count() == 10
    rows.where("id = 1").writeTo("lake.db.t").overwrite(F.col("id") > 10)
    assert sorted(row.id for row in spark.table("lake.db.t").collect()) == [1, 1, 2, 3, 4, 5]
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        rows.writeTo("lake.db.t").create()
    rows.selectExpr("id AS only").writeTo("lake.db.t").replace()
    assert spark.table("lake.db.t").columns == ["only"]
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        rows.writeTo("lake.db.none").replace()
    rows.writeTo("lake.db.none").createOrReplace()
    assert spark.table("lake.db.none").count() == 5


def test_partitions_that_rows_go_to_are_overwritten(lake, spark, rows, session):
    rows.writeTo("lake.db.t").partitionedBy("n").create()
    rows.where("id = 1").writeTo("lake.db.t").overwritePartitions()
    assert sorted(row.id for row in spark.table("lake.db.t").collect()) == [1, 2, 3, 5]
    one = rows.where("id = 3")
    one.write.format("iceberg").option("overwrite-mode", "dynamic").mode("overwrite").save(
        "lake.db.t"
    )
    assert sorted(row.id for row in spark.table("lake.db.t").collect()) == [1, 2, 3, 5]
    one.write.option("partitionOverwriteMode", "DYNAMIC").insertInto("lake.db.t", overwrite=True)
    assert sorted(row.id for row in spark.table("lake.db.t").collect()) == [1, 2, 3, 5]
    with pytest.raises(UnsupportedError, match="replaced as a whole"):
        one.write.option("partitionOverwriteMode", "dynamic").saveAsTable(
            "lake.db.t", mode="overwrite"
        )
    with pytest.raises(ValidationError, match="contradict"):
        one.write.options(
            **{"partitionOverwriteMode": "static", "overwrite-mode": "dynamic"}
        ).insertInto("lake.db.t", overwrite=True)
    session(spark__sql__sources__partitionOverwriteMode="dynamic")
    rows.where("id = 2").write.insertInto("lake.db.t", overwrite=True)
    assert sorted(row.id for row in spark.table("lake.db.t").collect()) == [1, 2, 3]
    one.write.format("iceberg").mode("overwrite").save("lake.db.t")
    assert [row.id for row in spark.table("lake.db.t").collect()] == [3]
    static = rows.where("id = 1").write.option("partitionOverwriteMode", "static")
    static.insertInto("lake.db.t", overwrite=True)
    assert [row.id for row in spark.table("lake.db.t").collect()] == [1]


@pytest.mark.check
def test_options_of_the_java_runtime(lake, spark, rows):
    rows.writeTo("lake.db.t").create()
    lake.load_table("db.t").create_branch("audit")
    rows.writeTo("lake.db.t").options(**{"branch": "audit", "snapshot-property.Job": "j"}).append()
    rows.writeTo("lake.db.t.branch_audit").append()
    table = lake.load_table("db.t")
    assert spark.table("lake.db.t").count() == 5
    assert spark.read.option("branch", "audit").table("lake.db.t").count() == 15
    assert table.metadata.snapshots[1].summary["Job"] == "j"
    wider = rows.withColumn("x", F.lit(1.5))
    with pytest.raises(SchemaMismatchError, match="no column 'x'"):
        wider.writeTo("lake.db.t").append()
    wider.write.option("mergeSchema", "true").mode("append").saveAsTable("lake.db.t")
    assert spark.table("lake.db.t").where("x = 1.5").count() == 5
    for option, value in (("overwrite-mode", "odd"), ("nope", "1"), ("merge-schema", "1")):
        with pytest.raises(ConfigurationError):
            rows.writeTo("lake.db.t").option(option, value).overwrite(F.lit(True))
    assert spark.table("lake.db.t").count() == 10


MERGES = [
    ("resolved columns", {(1, "z"), (2, "n2"), (3, "n0"), (4, "n1"), (5, "n2")}),
    ("conditions", {(2, "n2"), (3, "n0"), (4, "n1"), (5, "gone")}),
]


@pytest.mark.check
@pytest.mark.parametrize(("kind", "expected"), MERGES)
def test_merge(lake, spark, rows, kind, expected):
    rows.writeTo("lake.db.t").create()
    source = spark.createDataFrame([(1, "z"), (9, "new")], "id int, n string")
    named = source.alias("s")
    on = F.expr("lake.db.t.id = s.id") if kind == "conditions" else F.expr("t.id = s.id")
    match kind:
        case "resolved columns":
            source.mergeInto("lake.db.t", source.id == F.col("t.id")).whenMatched().update(
                {"n": source.n}
            ).merge()
        case _:
            on = F.expr("t.id = s.id")
            named.mergeInto("lake.db.t", on).whenMatched(
                F.col("s.n") == "z"
            ).delete().whenNotMatched(F.col("s.id") > 10).insertAll().whenNotMatchedBySource(
                F.col("t.id") == 5
            ).update({"n": F.lit("gone")}).merge()
    assert set(map(tuple, spark.table("lake.db.t").collect())) == expected


def test_merge_adds_columns(lake, spark, rows):
    rows.writeTo("lake.db.t").create()
    source = spark.createDataFrame([(7, "z", 1)], "id int, n string, x int").alias("s")
    source.mergeInto(
        "lake.db.t", F.expr("t.id = s.id")
    ).withSchemaEvolution().whenNotMatched().insertAll().merge()
    assert spark.table("lake.db.t").where("x = 1").collect()[0].id == 7


OF_PARQUET = {
    "saveAsTable": lambda df: df.write.format("parquet").saveAsTable("lake.db.t"),
    "saveAsTable(format)": lambda df: df.write.saveAsTable("lake.db.t", format="Parquet"),
    "overwrite": lambda df: df.write.format("parquet").mode("overwrite").saveAsTable("lake.db.t"),
    "writeTo": lambda df: df.writeTo("lake.db.t").using("parquet").create(),
    "told": lambda df: df.writeTo("lake.db.t").using("parquet").tableProperty(
        "current-snapshot-id", "7").tableProperty("a", "b").create(),
}  # fmt: skip


@pytest.mark.parametrize("name", in_circles(OF_PARQUET, test=1))
def test_parquet_is_the_format_of_its_files(lake, spark, rows, name):
    OF_PARQUET[name](rows)
    properties = lake.load_table("db.t").metadata.properties
    assert properties["write.format.default"] == "parquet"
    assert "current-snapshot-id" not in properties
    assert spark.table("lake.db.t").count() == rows.count()


REFUSED = {
    "another format": (lambda df: df.write.format("orc").saveAsTable("lake.db.t"), "iceberg"),
    "avro": (lambda df: df.writeTo("lake.db.t").using("avro").create(), "writes no avro"),
    "a format of Spark": (lambda df: df.write.saveAsTable("lake.db.t", format="csv"), "USING csv"),
    "a sorted table": (lambda df: df.write.bucketBy(2, "id").sortBy("id").saveAsTable("lake.db.t"),
                       "sortBy"),
    "a folder": (lambda df: df.write.format("iceberg").save("/tmp/nowhere"), "by its name"),
    "clusters": (lambda df: df.writeTo("lake.db.t").clusterBy("id"), "clusterBy"),
    "a transform": (lambda df: df.writeTo("lake.db.t").partitionedBy(F.upper("n")), "partition"),
    "a mode": (lambda df: df.write.saveAsTable("lake.db.t", mode="odd"), "odd"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_makes_nothing(lake, rows, name):
    run, words = REFUSED[name]
    with pytest.raises((UnsupportedError, ValidationError, AnalysisException, ValueError)) as error:
        run(rows)
    assert words in str(error.value)
    assert not lake.table_exists("db.t")
