"""Values of parameters in statements that change rows: what they are to Spark's own queries."""

import datetime as dt
import time

import pytest
from parameter_changes import CHANGES, ROWS

from ci_share import in_circles, only_in_check

NAIVE = dt.datetime(2024, 1, 1, 10, 30, 0, 5)


@pytest.fixture
def table_settings():
    """Rows for changes with parameters."""
    return {"schema": "id int, v int, k int", "appends": [ROWS]}


@pytest.fixture
def model(spark):
    """The same rows for plain Spark."""
    spark.createDataFrame(ROWS, "id int, v int, k int").createOrReplaceTempView("model")
    yield
    spark.catalog.dropTempView("model")


@pytest.fixture
def in_new_york(monkeypatch):
    """Python's zone, which is another one than the session's."""
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(("text", "args", "plain"), in_circles(CHANGES, test=2))
def test_values_after_a_minus(lake, table, model, spark, text, args, plain):
    lake.sql(text, args)
    assert _sorted(lake.sql("SELECT * FROM db.t")) == _sorted(spark.sql(plain, args))


def _sorted(rows):
    return sorted(map(tuple, rows.collect()))


def test_values_that_become_tables(lake, table, spark):
    text = "CREATE TABLE db.made COMMENT :c AS SELECT v -:x AS w FROM db.t"
    lake.sql(text, {"c": "it's", "x": -1})
    assert lake.load_table("db.made").metadata.properties["comment"] == "it's"
    assert lake.sql("SELECT min(w) FROM db.made").collect()[0][0] == 11
    lake.sql("ALTER TABLE db.made SET TBLPROPERTIES ('a' = :a)", {"a": "b"})
    assert lake.load_table("db.made").metadata.properties["a"] == "b"


def test_frames_are_values_too(lake, table):
    found = lake.sql("SELECT id FROM db.t WHERE v > 12 -{x} AND k = 1 AND '{x}' <> 'a'", x=-1)
    assert _sorted(found) == [(5,)]


@pytest.mark.parametrize(
    "moment",
    in_circles(
        [NAIVE, dt.datetime(1500, 2, 28, 1), NAIVE.replace(tzinfo=dt.UTC), dt.datetime(1890, 1, 1)],
        test=2,
    ),
)
def test_a_time_means_one_moment_in_all_statements(lake, spark, in_new_york, moment):
    wanted = spark.sql("SELECT unix_micros(:at)", {"at": moment}).collect()[0][0]
    lake.sql("CREATE TABLE db.times (id INT, at TIMESTAMP, wall TIMESTAMP_NTZ)")
    lake.sql(
        "INSERT INTO db.times VALUES (1, :at, :at), (2, timestamp_micros(0), NULL)", {"at": moment}
    )
    lake.sql("INSERT INTO db.times SELECT 3, {at}, NULL", at=moment)
    kept = lake.sql("SELECT id, unix_micros(at) FROM db.times WHERE at = ?", [moment])
    assert _sorted(kept) == [(1, wanted), (3, wanted)]
    same = lake.sql("SELECT count(*) FROM db.times WHERE wall = :at", {"at": moment})
    assert same.collect()[0][0] == 1
    lake.sql("UPDATE db.times SET id = 7 WHERE wall = :at", {"at": moment})
    lake.sql("DELETE FROM db.times WHERE at = :at", {"at": moment})
    assert _sorted(lake.sql("SELECT id FROM db.times")) == [(2,)]


def test_times_without_a_zone_where_the_session_says_so(lake, spark, session, in_new_york):
    session(spark__sql__timestampType="TIMESTAMP_NTZ")
    wanted = spark.sql("SELECT :at", {"at": NAIVE}).collect()[0][0]
    lake.sql("CREATE TABLE db.times (wall TIMESTAMP_NTZ)")
    lake.sql("INSERT INTO db.times VALUES (:at)", {"at": NAIVE})
    assert lake.sql("SELECT * FROM db.times").collect()[0][0] == wanted == NAIVE


@pytest.mark.parametrize("escaped", ["true", only_in_check("false")])
def test_texts_are_what_they_are(lake, session, escaped):
    session(spark__sql__parser__escapedStringLiterals=escaped)
    texts = ["it's", "a\\nb", "${spark.sql.session.timeZone}", 'say "x"', "tab\tend", "\\"]
    lake.sql("CREATE TABLE db.texts (s STRING)")
    for text in texts:
        lake.sql("INSERT INTO db.texts VALUES (:s)", {"s": text})
    assert sorted(row.s for row in lake.sql("SELECT s FROM db.texts").collect()) == sorted(texts)
    lake.sql("DELETE FROM db.texts WHERE s IN (:a, :b)", {"a": texts[1], "b": texts[2]})
    assert lake.sql("SELECT s FROM db.texts").count() == 4
