"""EXECUTE IMMEDIATE, beside Spark's own over the same rows as a temporary view."""

import pytest
from pyspark.errors import AnalysisException

from ci_share import in_circles
from frazil.errors import SqlSyntaxError, ValidationError
from frazil.spark.sql.execute_immediate import is_immediate

ROWS = "SELECT * FROM VALUES (1L, 'a'), (2L, 'b'), (3L, 'c'), (4L, 'd') AS v(id, n)"
QUERIES = [
    "EXECUTE IMMEDIATE 'SELECT * FROM {t} WHERE id = ?' USING 1",
    # A variable is none of the table's columns of its name.
    "EXECUTE IMMEDIATE 'SELECT * FROM {t} WHERE id = ?' USING id",
    "EXECUTE IMMEDIATE query USING id -- 3",
    "EXECUTE IMMEDIATE 'SELECT n FROM {t} WHERE id = :low OR n = :n' USING 1 AS low, 'd' AS n",
    "EXECUTE IMMEDIATE 'SELECT n FROM {t} WHERE id = :id' USING id",
    "EXECUTE IMMEDIATE 'SELECT n, ''INTO ?'' AS x FROM {t} WHERE id > ? AND n < ?' USING 1, 'd'",
    "EXECUTE IMMEDIATE 'SELECT typeof(?), typeof(?) FROM {t} LIMIT 1' USING 1Y, 1.50BD",
    "EXECUTE IMMEDIATE 'SELECT count(*) FROM {t}'",
    "EXECUTE IMMEDIATE 'SELECT 1 AS one'",
]
INTO = [
    "EXECUTE IMMEDIATE query INTO found, name USING id",
    "EXECUTE IMMEDIATE query INTO found, name USING 99",
    "EXECUTE IMMEDIATE 'SELECT max(id), max(n) FROM {t} -- of all' INTO found, name",
]
CHANGES = [
    "EXECUTE IMMEDIATE 'INSERT INTO {t} VALUES (?, ?)' USING 9, 'i'",
    "EXECUTE IMMEDIATE 'DELETE FROM {t} WHERE id = ?' USING id",
    "EXECUTE IMMEDIATE 'UPDATE {t} SET n = :n WHERE id = :id' USING 'new' AS n, 1 AS id",
    "EXECUTE IMMEDIATE 'MERGE INTO {t} AS t USING (SELECT ? AS k) s ON t.id = s.k "
    "WHEN MATCHED THEN UPDATE SET n = ? WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.k, ?)' "
    "USING 4L, 'm', 'x'",
]
CHANGED = [(1, "new"), (2, "b"), (4, "m"), (9, "i")]


@pytest.fixture
def variables(spark, session):
    """Variables that are named as columns are, and others."""
    given = {"id": "BIGINT DEFAULT 3", "query": "STRING", "found": "BIGINT", "name": "STRING"}
    for name, kind in given.items():
        spark.sql(f"DECLARE OR REPLACE VARIABLE {name} {kind}")
    yield
    for name in given:
        spark.sql(f"DROP TEMPORARY VARIABLE IF EXISTS {name}")


@pytest.fixture
def table(lake, spark, variables):
    """A table of the lake, and a temporary view of the same rows."""
    lake.sql(f"CREATE TABLE db.t AS {ROWS}")
    spark.sql(ROWS).createOrReplaceTempView("plain_t")
    yield "db.t"
    spark.catalog.dropTempView("plain_t")


def run(sql, text, table):
    """The rows of a statement, whose table has a name."""
    sql(f"SET VARIABLE query = 'SELECT id, n FROM {table} WHERE id = ?'")
    return sorted(map(tuple, sql(text.format(t=table)).collect()))


@pytest.mark.parametrize("text", in_circles([*INTO[:1], *QUERIES, *INTO[1:]], test=4))
def test_rows_are_those_of_spark(lake, spark, table, text):
    seen = []
    for sql, name in ((spark.sql, "plain_t"), (lake.sql, table)):
        spark.sql("SET VARIABLE (found, name) = (SELECT 0L, '')")
        seen.append((run(sql, text, name), run(sql, "SELECT found, name", name)))
    assert seen[0] == seen[1]


def test_changes(lake, table):
    for text in CHANGES:
        lake.sql(text.format(t=table))
    assert run(lake.sql, "SELECT * FROM {t}", table) == CHANGED


@pytest.mark.check
def test_in_a_lake_in_use_and_in_a_transaction(lake, spark, table):
    lake.attach(name="lake")
    try:
        spark.sql("USE lake")
        assert run(spark.sql, QUERIES[1], table) == [(3, "c")]
        spark.sql("BEGIN TRANSACTION")
        for text in CHANGES:
            spark.sql(text.format(t=table))
        assert run(spark.sql, "SELECT * FROM {t}", table) == CHANGED
        spark.sql("EXECUTE IMMEDIATE 'ROLLBACK'")
        assert run(spark.sql, QUERIES[-2], table) == [(4,)]
    finally:
        spark.sql("USE spark_catalog.default")
    with lake.transaction() as tx:
        tx.sql(CHANGES[0].format(t=table))
    assert lake.load_table(table).scan().count() == 5


@pytest.mark.parametrize(
    ("text", "error"),
    in_circles(
        [
            ("EXECUTE IMMEDIATE 'DELETE FROM db.t' INTO found", SqlSyntaxError),
            ("EXECUTE IMMEDIATE 'SELECT * FROM db.t WHERE id = ?' USING 1, 2", SqlSyntaxError),
            ("EXECUTE IMMEDIATE 'SELECT * FROM db.t WHERE id = :a' USING 1", SqlSyntaxError),
            ("EXECUTE IMMEDIATE 'SELECT * FROM db.t WHERE id = ?' USING n", AnalysisException),
            ("EXECUTE IMMEDIATE CAST(NULL AS STRING)", ValidationError),
        ],
        test=1,
    ),
)
def test_what_is_refused(lake, table, text, error):
    with pytest.raises(error):
        lake.sql(text)
    assert lake.load_table(table).scan().count() == 4


@pytest.mark.parametrize("word", ["SELECT", "EXECUTE"])
def test_comments_before_a_statement_take_no_time(word):
    """Each is read once, however many there are."""
    assert is_immediate("/* a */ -- b\n" * 40 + f"{word} IMMEDIATE 'x'") == (word == "EXECUTE")
