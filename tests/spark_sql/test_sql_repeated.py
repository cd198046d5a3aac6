"""Queries that are run again: what was found out serves them, and what has changed is seen."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from py4j.protocol import Py4JError
from pyspark.sql.types import LongType

import frazil
from ci_share import in_circles, one_in, only_in_soak

QUERIES = [
    "SELECT * FROM db.t WHERE id = 33",
    "SELECT t.id, u.word FROM db.t JOIN db.u ON t.k = u.k WHERE t.id > 25",
    "SELECT id FROM db.t WHERE k IN (SELECT k FROM db.u WHERE word = 'w1') AND id < 10",
    "WITH c AS (SELECT k, count(*) AS n FROM db.t WHERE id < 12 GROUP BY k) SELECT * FROM c",
    "SELECT id, row_number() OVER (ORDER BY id) AS r FROM db.t WHERE id > 30 ORDER BY id LIMIT 3",
    "SELECT a.id, b.id FROM db.t a JOIN db.t b ON a.id = b.k WHERE a.id < 3",
    "SELECT id, id AS id, k AS K FROM db.v WHERE id >= 38",
    "SELECT id FROM db.t WHERE id > 1000",
    "SELECT t.id, (SELECT max(word) FROM db.u WHERE u.k = t.k) AS w FROM db.t WHERE id < 4",
]
FILES = 4


def with_rows(lake, spark):
    rows = spark.range(40).selectExpr("id", "id % 5 AS k")
    table = lake.create_table("db.t", rows)
    for start in range(0, 40, 40 // FILES):
        table.append(rows.where(f"id >= {start} AND id < {start + 40 // FILES}").coalesce(1))
    lake.create_table_as_select("db.u", spark.range(5).selectExpr("id AS k", "'w' || id AS word"))
    lake.sql("CREATE VIEW db.v AS SELECT * FROM db.t WHERE id % 2 = 0")
    return lake


@pytest.fixture
def filled(lake, spark):
    return with_rows(lake, spark)


@pytest.fixture(scope="module")
def kept(shared_lake, spark):
    """Tables that no test changes."""
    return with_rows(shared_lake, spark)


@pytest.fixture
def nothing_is_asked(monkeypatch):
    """Makes it an error to ask Spark's optimizer what a query needs."""

    def start():
        def fail(*_):
            raise AssertionError("the optimizer was asked again")

        monkeypatch.setattr("frazil.spark.sql.query.asked_of_tables", fail)

    return start


def rows_of(frame):
    return sorted(map(repr, frame.collect()))


@pytest.mark.parametrize("query", in_circles(one_in(2, QUERIES), test=1))
def test_the_second_time_nothing_is_asked(kept, query, nothing_is_asked, no_leftovers):
    first = kept.sql(query)
    expected, files = rows_of(first), set(first.inputFiles())
    nothing_is_asked()
    for _ in range(2):
        again = kept.sql(query)
        assert again.columns == first.columns
        assert again.schema == first.schema
        assert rows_of(again) == expected
        assert set(again.inputFiles()) == files


@pytest.mark.parametrize("missing", in_circles(["_plan_of", "_is_lasting", "_settings_of"], test=1))
def test_a_spark_that_lacks_what_is_asked_for(filled, missing, monkeypatch):
    def fail(*_):
        raise Py4JError("there is no such method")

    monkeypatch.setattr(f"frazil.spark.sql.pruning.known_queries.{missing}", fail)
    query = "SELECT id FROM db.t WHERE id = 33"
    assert [[row.id for row in filled.sql(query).collect()] for _ in range(2)] == [[33], [33]]


def test_reserved_columns(kept):
    query = "SELECT _file, _pos, id FROM db.t WHERE id = 7"
    first = kept.sql(query)
    assert rows_of(kept.sql(query)) == rows_of(first)
    assert [row.id for row in first.collect()] == [7]


def test_order_and_limits_stay(kept):
    query = "SELECT id FROM db.t WHERE id > 3 ORDER BY k DESC, id LIMIT 4"
    assert [[row.id for row in kept.sql(query).collect()] for _ in range(3)] == [[4, 9, 14, 19]] * 3


def test_two_results_can_be_joined(kept):
    query = "SELECT id, k FROM db.t WHERE id < 10"
    one, two, three = (kept.sql(query) for _ in range(3))
    for left, right in ((one, two), (two, one), (two, three)):
        joined = left.join(right, left.id == right.k)
        assert joined.count() == 10
        assert sorted(row[0] for row in joined.select(left.id).distinct().collect()) == [*range(5)]
    assert one.union(two).count() == 20
    assert two.exceptAll(one).count() == 0


@pytest.mark.check
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("INSERT INTO db.t VALUES (33, 9)", [(33, 3), (33, 9)]),
        ("DELETE FROM db.t WHERE id = 33", []),
        only_in_soak("UPDATE db.t SET k = 8 WHERE id = 33", [(33, 8)]),
        ("ALTER TABLE db.t ADD COLUMN x INT", [(33, 3, None)]),
        only_in_soak("ALTER TABLE db.t ALTER COLUMN k AFTER id", [(33, 3)]),
        ("CREATE OR REPLACE TABLE db.t AS SELECT 33 AS id, 'new' AS k", [(33, "new")]),
        ("CALL system.rollback_to_snapshot('db.t', {first})", []),
    ],
)
def test_a_table_that_has_changed(filled, change, expected):
    query = "SELECT * FROM db.t WHERE id = 33"
    assert [tuple(row) for row in (filled.sql(query), filled.sql(query))[1].collect()] == [(33, 3)]
    first = filled.load_table("db.t").metadata.snapshots[0].snapshot_id
    filled.sql(change.format(first=first))
    for _ in range(2):
        assert sorted(tuple(row) for row in filled.sql(query).collect()) == expected


def test_a_view_that_has_changed(filled):
    query = "SELECT id FROM db.v WHERE id < 4"
    for _ in range(2):
        assert [row.id for row in filled.sql(query).collect()] == [0, 2]
    filled.sql("CREATE OR REPLACE VIEW db.v AS SELECT * FROM db.t WHERE id % 2 = 1")
    for _ in range(2):
        assert [row.id for row in filled.sql(query).collect()] == [1, 3]


@pytest.mark.check
def test_values_of_variables_and_functions_are_those_of_the_call(filled, spark):
    spark.sql("DECLARE OR REPLACE VARIABLE wanted BIGINT DEFAULT 3")
    spark.sql("CREATE OR REPLACE TEMPORARY FUNCTION one_of_sql() RETURNS BIGINT RETURN 3")
    spark.udf.register("one_of_python", lambda: 3, LongType())
    queries = [
        "SELECT id FROM db.t WHERE id = wanted",
        "SELECT id FROM db.t WHERE id = one_of_sql()",
        "SELECT id FROM db.t WHERE id = one_of_python()",
    ]
    try:
        for query in queries:
            assert [[row.id for row in filled.sql(query).collect()] for _ in range(2)] == [[3], [3]]
        spark.sql("SET VARIABLE wanted = 35")
        spark.sql("CREATE OR REPLACE TEMPORARY FUNCTION one_of_sql() RETURNS BIGINT RETURN 35")
        spark.udf.register("one_of_python", lambda: 35, LongType())
        for query in queries:
            assert [row.id for row in filled.sql(query).collect()] == [35], query
    finally:
        spark.sql("DROP TEMPORARY VARIABLE wanted")
        spark.sql("DROP TEMPORARY FUNCTION one_of_sql")
        spark.sql("DROP TEMPORARY FUNCTION one_of_python")


@pytest.mark.check
def test_what_is_in_use_is_that_of_the_call(filled, session):
    filled.sql("CREATE TABLE db.names (name STRING, n INT)")
    for n, name in enumerate(("db", "one_more", "UTC", "Asia/Tokyo")):
        filled.sql(f"INSERT INTO db.names VALUES ('{name}', {n})")
    filled.sql("CREATE NAMESPACE one_more")

    def told_twice(call):
        query = f"SELECT n FROM lake.db.names WHERE name = {call}"
        return [[row.n for row in filled.sql(query).collect()] for _ in range(2)]

    for n, namespace in enumerate(("db", "one_more")):
        filled.sql(f"USE {namespace}")
        assert told_twice("current_database()") == [[n], [n]]
    for n, zone in enumerate(("UTC", "Asia/Tokyo"), start=2):
        session(spark__sql__session__timeZone=zone)
        assert told_twice("current_timezone()") == [[n], [n]]


@pytest.mark.check
def test_the_zone_is_that_of_the_call(filled, session):
    filled.sql("CREATE TABLE db.moments (at TIMESTAMP, n INT)")
    filled.sql("INSERT INTO db.moments VALUES (TIMESTAMP '2024-01-01 00:00:00 UTC', 1)")
    filled.sql("INSERT INTO db.moments VALUES (TIMESTAMP '2024-01-01 05:00:00 UTC', 2)")
    query = "SELECT n FROM db.moments WHERE at = '2024-01-01 00:00:00'"
    for zone, n in (("UTC", 1), ("America/New_York", 2), ("UTC", 1)):
        session(spark__sql__session__timeZone=zone)
        assert [[row.n for row in filled.sql(query).collect()] for _ in range(2)] == [[n], [n]]


@pytest.mark.check
def test_temporary_views_frames_and_parameters(filled, spark):
    query = "SELECT id FROM db.t JOIN keys USING (id)"
    for low in (3, 35):
        spark.range(low, low + 2).createOrReplaceTempView("keys")
        for _ in range(2):
            assert sorted(row.id for row in filled.sql(query).collect()) == [low, low + 1]
    spark.catalog.dropTempView("keys")
    framed = "SELECT t.id FROM db.t JOIN {keys} AS k ON t.id = k.id"
    for low in (3, 35, 3):
        found = filled.sql(framed, keys=spark.range(low, low + 2))
        assert sorted(row.id for row in found.collect()) == [low, low + 1]
    given = "SELECT id, :x AS x FROM db.t WHERE id = :x"
    for x in (3, "35", 3, 3.0):
        found = [tuple(row) for row in filled.sql(given, args={"x": x}).collect()]
        assert found == [(int(x), x)]
        assert type(found[0][1]) is type(x)
    for x in (3, 35, 3):
        found = filled.sql("SELECT id FROM db.t WHERE id = ?", args=[x]).collect()
        assert [row.id for row in found] == [x]


@pytest.mark.check
def test_versions_and_other_lakes(filled, spark, tmp_path):
    table = filled.load_table("db.t")
    query = "SELECT count(k) AS n, sum(id) AS s FROM db.t VERSION AS OF {} WHERE id >= 0"
    ids = [snapshot.snapshot_id for snapshot in table.metadata.snapshots]
    for _ in range(2):
        counts = [filled.sql(query.format(each)).collect()[0].n for each in ids]
        assert counts == [10, 20, 30, 40]
    other = frazil.connect(spark, warehouse=str(tmp_path / "other"), name="lake")
    other.create_namespace("db")
    other.create_table_as_select("db.t", spark.range(33, 34).selectExpr("id", "77L AS k"))
    again = "SELECT k FROM db.t WHERE id = 33"
    for _ in range(2):
        assert [row.k for row in filled.sql(again).collect()] == [3]
        assert [row.k for row in other.sql(again).collect()] == [77]
    other.close()


@pytest.mark.check
def test_in_a_transaction_what_it_has_changed_is_seen(filled):
    query = "SELECT k FROM db.t WHERE id = 33"
    assert [[row.k for row in filled.sql(query).collect()] for _ in range(2)] == [[3], [3]]
    filled.load_table("db.t").set_properties({"write.delete.mode": "merge-on-read"})
    with filled.load_table("db.t").transaction() as tx:
        tx.delete("id = 33")
        assert [row.k for row in filled.sql(query).collect()] == [3]
    assert filled.sql(query).collect() == []


@pytest.mark.check
def test_threads_that_run_one_query(kept, no_leftovers):
    query = "SELECT t.id FROM db.t JOIN db.u ON t.k = u.k WHERE t.id < 10 AND u.word = 'w1'"
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: rows_of(kept.sql(query)), range(16)))
    assert found == [found[0]] * 16
    assert len(found[0]) == 2


def test_a_side_without_files_is_empty_to_the_optimizer(kept):
    query = "SELECT * FROM db.t JOIN db.u ON t.k = u.k WHERE u.k > 100"
    assert kept.sql(query).collect() == []
    plan = kept.sql(f"EXPLAIN {query}").collect()[0][0]
    assert "LocalTableScan <empty>" in plan, plan
    assert "FileScan" not in plan
