"""Kinds of statements by `spark.sql` of an attached session: what each does by `lake.sql`."""

CHANGES = [
    ("CREATE OR REPLACE TABLE lake.db.t AS SELECT 1 AS id, 'a' AS n", [(1, "a")]),
    ("INSERT OVERWRITE lake.db.t VALUES (2, 'b'), (3, 'c')", [(2, "b"), (3, "c")]),
    ("INSERT INTO lake.db.t VALUES (4, 'd')", [(2, "b"), (3, "c"), (4, "d")]),
    (
        "MERGE INTO lake.db.t USING (SELECT 4 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
        [(2, "b"), (3, "c")],
    ),
    ("UPDATE lake.db.t SET n = 'z' WHERE id = 3", [(2, "b"), (3, "z")]),
    ("ALTER TABLE lake.db.t ADD COLUMN x int", [(2, "b", None), (3, "z", None)]),
    ("ALTER TABLE lake.db.t ALTER COLUMN x TYPE bigint", [(2, "b", None), (3, "z", None)]),
    ("ALTER TABLE lake.db.t SET TBLPROPERTIES ('a' = 'b')", [(2, "b", None), (3, "z", None)]),
]
ANSWERS = {
    "SHOW TBLPROPERTIES lake.db.t ('a')": [("a", "b")],
    "SHOW NAMESPACES IN lake": [("db",)],
    "SELECT id FROM lake.db.v": [(2,), (3,)],
}


def found(frame):
    return sorted(tuple(row) for row in frame.collect())


def views_of_db(spark):
    """The views of the namespace; those of the session alone are shown in any."""
    rows = spark.sql("SHOW VIEWS IN lake.db").collect()
    return [row.viewName for row in rows if not row.isTemporary]


def test_each_kind_of_statement(spark, lake):
    lake.create_table("db.t", "gone int")
    spark.sql("USE lake")
    for statement, rows in CHANGES:
        spark.sql(statement)
        assert found(spark.table("lake.db.t")) == rows, statement
    spark.sql("CREATE VIEW lake.db.v AS SELECT id FROM lake.db.t")
    for question, rows in ANSWERS.items():
        assert found(spark.sql(question)) == rows, question
    columns = [tuple(row)[:2] for row in spark.sql("DESCRIBE lake.db.t").collect()]
    assert columns[:3] == [("id", "int"), ("n", "string"), ("x", "bigint")]
    [[text]] = spark.sql("SHOW CREATE TABLE lake.db.t").collect()
    assert "x BIGINT" in text
    [[plan]] = spark.sql("EXPLAIN SELECT * FROM lake.db.t").collect()
    assert "Physical Plan" in plan
    assert views_of_db(spark) == ["v"]
    spark.sql("DROP VIEW lake.db.v")
    assert views_of_db(spark) == []
    snapshots = found(spark.sql("CALL lake.system.ancestors_of('db.t')"))
    assert len(snapshots) == 5
    spark.sql(f"ALTER TABLE lake.db.t SET LOCATION '{lake.load_table('db.t').location}x'")
    assert lake.load_table("db.t").location.endswith("tx")
    spark.sql("BEGIN")
    spark.sql("DELETE FROM lake.db.t WHERE id = 2")
    assert lake.load_table("db.t").scan().count() == 2
    spark.sql("COMMIT")
    assert lake.load_table("db.t").scan().count() == 1
    spark.sql("TRUNCATE TABLE lake.db.t")
    assert found(spark.table("lake.db.t")) == []
    spark.sql("DROP TABLE lake.db.t")
    assert not lake.table_exists("db.t")
