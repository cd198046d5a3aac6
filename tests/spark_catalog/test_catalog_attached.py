"""What Spark itself does with a lake's tables in an attached session: later, or in a scope."""

from __future__ import annotations

import itertools
import re

import pyspark
import pytest

from ci_share import in_circles, these
from frazil.errors import ValidationError
from frazil.spark.plans.machine import JavaObject, machine_of
from programs import run_program


@pytest.fixture
def lake(spark, lake):
    """The lake of one test, attached as `lake`, with a table of three rows."""
    lake.attach(name="lake")
    spark.sql("CREATE TABLE lake.db.t (id BIGINT, n STRING)")
    spark.sql(
        "INSERT INTO lake.db.t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b'), (3, 'c')"
    )
    yield lake
    lake.detach()


def rows(spark, text):
    """The rows of a statement."""
    return [tuple(row) for row in spark.sql(text).collect()]


HELD = [
    ("EXECUTE IMMEDIATE 'SELECT max(id) FROM lake.db.t'", [(3,)]),
    # A sub-query may be called as a statement begins.
    (
        "EXECUTE IMMEDIATE 'WITH s AS (SELECT max(id) AS top FROM lake.db.t) "
        "SELECT top, two FROM s JOIN (SELECT 2 AS two) merge'",
        [(3, 2)],
    ),
    (
        "EXECUTE IMMEDIATE 'WITH c AS (SELECT id FROM lake.db.t), t AS (SELECT max(id) AS top "
        "FROM c) SELECT top FROM t'",
        [(3,)],
    ),
    ("SELECT max(id) FROM IDENTIFIER('lake.db' || '.t')", [(3,)]),
    ("BEGIN DECLARE m INT DEFAULT 2; SELECT id FROM lake.db.t WHERE id > m; END", [(3,)]),
    (
        "BEGIN INSERT INTO lake.db.t VALUES (9, 'i'); SELECT max(id) FROM lake.db.t; END",
        [(9,)],
    ),
    pytest.param(
        "BEGIN INSERT INTO lake.db.t VALUES (9, 'i'); CALL lake.system.rewrite_data_files("
        "table => 'db.t', options => map('min-input-files', '2')); "
        "SELECT count(*) FROM lake.db.t.files; END",
        [(1,)],
        marks=pytest.mark.check,
    ),
    # A change is found in a script also where it has CTEs.
    pytest.param(
        "BEGIN DELETE FROM lake.db.t WHERE id IN (WITH t AS (SELECT 3 AS id) SELECT id FROM t); "
        "WITH t AS (SELECT max(id) AS m FROM lake.db.t) SELECT m FROM t; END",
        [(2,)],
        marks=pytest.mark.check,
    ),
]


@pytest.mark.parametrize(("text", "expected"), HELD)
def test_statements_within_statements(spark, lake, session, text, expected):
    """Spark runs what a statement holds, over the rows of then."""
    # Spark 4.0 has scripts where they are switched on.
    session(spark__sql__scripting__enabled="true")
    assert rows(spark, text) == expected


SCOPES = [
    # A CTE has the name of a table that is read beside it.
    ("SELECT id FROM t WHERE id IN (WITH t AS (SELECT 2L AS id) SELECT id FROM t)", [(2,)]),
    ("SELECT x.id FROM (WITH t AS (SELECT 7L AS id) SELECT id FROM t) x, t WHERE t.id = 1", [(7,)]),
    (
        "SELECT count(*), (WITH t AS (SELECT 8L AS id), u AS (SELECT id FROM t) "
        "SELECT max(u.id) FROM u JOIN t USING (id)) FROM t",
        [(3, 8)],
    ),
    (
        "WITH u AS (WITH t AS (SELECT 9L AS id) SELECT id FROM t) "
        "SELECT u.id, max(t.id) FROM u, t GROUP BY u.id",
        [(9, 3)],
    ),
    (
        "SELECT max(x.id), max(t.id) FROM t, (WITH t AS (SELECT 1L AS id) SELECT id FROM "
        "(WITH t AS (SELECT id + 4 AS id FROM t) SELECT id FROM t)) x",
        [(5, 3)],
    ),
]


@pytest.mark.parametrize(("text", "expected"), in_circles(SCOPES, test=2))
def test_a_cte_stands_for_its_name_in_its_query_alone(spark, lake, text, expected):
    spark.sql("USE lake.db")
    assert rows(spark, text) == expected
    assert [tuple(row) for row in lake.sql(text).collect()] == expected


def test_a_view_whose_cte_has_the_name_of_a_table_around_it(spark, lake):
    spark.sql("USE lake.db")
    spark.sql("CREATE VIEW v AS WITH t AS (SELECT 77L AS id) SELECT t.id, o.id AS oid FROM t "
              "JOIN (SELECT * FROM lake.db.t WHERE id = 1) o")  # fmt: skip
    assert rows(spark, "SELECT t.id, v.id, v.oid FROM t, v WHERE t.id = 2") == [(2, 77, 1)]


def test_statements_of_the_lake_follow_the_use_of_its_session_until_their_own(spark, lake):
    lake.create_namespace("other")
    spark.sql("USE lake.db")
    lake.sql("DELETE FROM t WHERE id = 1")
    with lake.transaction() as transaction:
        transaction.sql("DELETE FROM t WHERE id = 2")
        assert [tuple(row) for row in transaction.sql("SELECT * FROM t").collect()] == [(3, "c")]
    assert rows(lake, "SHOW CURRENT NAMESPACE") == [(lake.catalog.name, "db")]
    lake.sql("USE other")
    assert rows(lake, "SHOW TABLES") == []
    assert rows(spark, "SHOW TABLES") == [("db", "t", False)]
    lake.sql(f"USE {lake.catalog.name}")
    assert rows(lake, "SELECT * FROM t") == [(3, "c")]
    spark.sql("USE spark_catalog.default")
    with pytest.raises(ValidationError, match="no namespace"):
        lake.sql("DELETE FROM t WHERE id = 3")


VARIABLES = [
    ("DELETE FROM lake.db.t WHERE id = which", [(1, "a"), (3, "c")]),
    *in_circles(
        [
            (
                "UPDATE lake.db.t SET n = n || which WHERE id = session.which AND n <> 'which'",
                [(1, "a"), (2, "b2"), (3, "c")],
            ),
            (
                "MERGE INTO lake.db.t t USING (SELECT which AS id) s "
                "ON t.id = s.id AND t.id = which "
                "WHEN MATCHED AND which > 1 THEN UPDATE SET n = s.id || which",
                [(1, "a"), (2, "22"), (3, "c")],
            ),
            (
                "DELETE FROM lake.db.t WHERE id IN (SELECT id FROM lake.db.t WHERE id = which)",
                [(1, "a"), (3, "c")],
            ),
            (
                "BEGIN DECLARE n INT DEFAULT 1; DECLARE id INT DEFAULT 1; DECLARE m INT DEFAULT 3; "
                "DELETE FROM lake.db.t WHERE n = 'b' OR id = m; END",
                [(1, "a")],
            ),
        ],
        test=0,
    ),
]


@pytest.mark.parametrize(("text", "expected"), VARIABLES)
def test_variables_in_changes(spark, lake, text, expected):
    """Of the session or of a script; a column goes before."""
    if text.startswith("BEGIN") and pyspark.__version__ < "4.1":
        pytest.skip("Spark 4.0 tells no variables of scripts")
    spark.sql("DECLARE OR REPLACE VARIABLE which BIGINT DEFAULT 2")
    try:
        spark.sql(text).collect()
        assert sorted(rows(spark, "SELECT * FROM lake.db.t")) == expected
    finally:
        spark.sql("DROP TEMPORARY VARIABLE which")


def test_a_temporary_view_and_a_function_follow_the_table(spark, lake):
    """As in Spark, whose views are read at each use."""
    spark.sql("CREATE TEMPORARY VIEW follows AS SELECT id FROM lake.db.t")
    spark.sql("CREATE TEMPORARY FUNCTION top() RETURNS BIGINT RETURN SELECT max(id) FROM lake.db.t")
    spark.sql(
        "CREATE TEMPORARY FUNCTION above(least BIGINT) RETURNS TABLE (id BIGINT) "
        "RETURN SELECT id FROM lake.db.t WHERE id > least"
    )
    spark.sql("INSERT INTO lake.db.t VALUES (4, 'd')")
    assert rows(spark, "SELECT max(id), top() FROM follows GROUP BY ALL") == [(4, 4)]
    assert rows(spark, "SELECT * FROM above(2) ORDER BY id") == [(3,), (4,)]
    spark.sql("DROP VIEW follows")
    spark.sql("DROP TEMPORARY FUNCTION top")
    spark.sql("DROP TEMPORARY FUNCTION above")


HIDDEN = [
    ("FROM lake.db.t |> WHERE _pos >= 0", [(1, "a"), (2, "b"), (3, "c")]),
    ("SELECT * FROM lake.db.t AS x(a, b) WHERE _pos = 1", [(2, "b")]),
    (
        "SELECT * FROM lake.db.t a NATURAL JOIN lake.db.u b WHERE a._pos > 0 AND b._pos >= 0",
        [(2, "b", 7)],
    ),
    (
        "SELECT * FROM (SELECT id, n FROM lake.db.t WHERE _pos < 9) "
        "PIVOT (sum(id) FOR n IN ('a', 'c'))",
        [(1, 3)],
    ),
]


@pytest.mark.check
@pytest.mark.skipif(pyspark.__version__ < "4.2", reason="Spark 4.1 finds none below an alias")
@pytest.mark.parametrize(("text", "expected"), HIDDEN)
def test_hidden_columns_are_found_by_name_and_by_no_star(spark, lake, text, expected):
    """Where all columns are meant, hidden ones are not."""
    spark.sql("CREATE TABLE lake.db.u AS SELECT id, 7 AS v FROM lake.db.t WHERE id = 2")
    assert sorted(rows(spark, text)) == expected


def test_a_change_runs_when_it_is_executed(spark, lake):
    """Once, and not where a plan is explained."""
    spark.sql("EXECUTE IMMEDIATE 'INSERT INTO lake.db.t VALUES (5, \\'e\\')'").collect()
    spark.sql("EXPLAIN SELECT * FROM lake.db.t").collect()
    assert rows(spark, "SELECT count(*) FROM lake.db.t.snapshots") == [(2,)]


EXPLAINED = [
    ("INSERT INTO lake.db.t VALUES (5, 'e')", "LocalTableScan"),
    ("DELETE FROM lake.db.t AS x WHERE x.id = 1", "Filter"),
    ("CALL lake.system.rewrite_data_files('db.t')", "ExternalCommand CALL"),
    (
        "WITH w AS (SELECT 1L AS id) UPDATE lake.db.t SET n = 'x' WHERE id IN (TABLE w)",
        "Join",
    ),
    ("UPDATE lake.db.t SET n = 'x'", "FileScan"),
    (
        "MERGE WITH SCHEMA EVOLUTION INTO lake.db.t t USING (SELECT 1 AS id) s "
        "ON t.id = s.id WHEN MATCHED THEN DELETE",
        "Filter",
    ),
    ("INSERT OVERWRITE lake.db.t (id) TABLE lake.db.t", "FileScan"),
    (
        "FROM lake.db.t INSERT INTO lake.db.t SELECT * INSERT INTO lake.db.t SELECT *",
        "Scan",
    ),
    ("CREATE TABLE lake.db.more AS SELECT 1 AS id", "ExternalCommand CREATE"),
    ("ALTER TABLE lake.db.t CREATE BRANCH b", "ExternalCommand ALTER"),
]
WAYS = ("attached", "lake", "EXTENDED")
EACH_WAY = [
    *((way, EXPLAINED[0]) for way in WAYS),
    *zip(itertools.cycle(WAYS), EXPLAINED[1:], strict=False),
]
"""The first statement in each way, and each of the others in one."""


@pytest.mark.parametrize(("way", "case"), these(EACH_WAY, WAYS, EXPLAINED, test=6))
def test_a_change_that_is_explained_does_not_run(spark, lake, way, case):
    text, expected = case
    before = (lake.load_table("db.t").metadata, lake.list_tables("db"))
    if way == "lake":
        text = text.replace("lake.", "")
    mode = "EXTENDED " if way == "EXTENDED" else ""
    sql = lake.sql if way == "lake" else spark.sql
    [row] = sql(f"EXPLAIN {mode}{text}").collect()
    assert "ExternalCommand" in row.plan
    assert expected in row.plan
    assert (lake.load_table("db.t").metadata, lake.list_tables("db")) == before


RETURNED = [
    ("INSERT INTO lake.db.t VALUES (5, 'e')", []),
    # What Spark runs has a column of its commands.
    ("EXECUTE IMMEDIATE 'INSERT INTO lake.db.t VALUES (5, \\'e\\')'", ["command_output"]),
]


@pytest.mark.parametrize(("text", "columns"), RETURNED)
def test_what_a_change_returned_does_not_run_it_again(spark, lake, text, columns, capsys):
    found = spark.sql(text)
    found.explain()
    found.explain(mode="extended")
    assert found.schema.names == columns
    assert (found.collect(), found.collect(), found.count()) == ([], [], 0)
    assert rows(spark, "SELECT count(*) FROM lake.db.t.snapshots") == [(2,)]


IDENTIFIERS = [
    ("DELETE FROM IDENTIFIER(:t) WHERE id = :id", {"t": "lake.db.t", "id": 2}, [1, 3]),
    ("DELETE FROM IDENTIFIER('lake.db' || '.t') WHERE id > 1", None, [1]),
    (
        "BEGIN DECLARE name STRING DEFAULT 'lake.db.t'; DELETE FROM IDENTIFIER(name) WHERE id = 1; "
        "INSERT INTO IDENTIFIER(name) VALUES (4, 'd'); END",
        None,
        [2, 3, 4],
    ),
    (
        "EXECUTE IMMEDIATE 'UPDATE IDENTIFIER(?) SET id = 8 WHERE id = ?' USING 'lake.db.t', 3",
        None,
        [1, 2, 8],
    ),
    ("TRUNCATE TABLE IDENTIFIER(?)", ["lake.db.t"], []),
    (
        "INSERT INTO IDENTIFIER(named) SELECT max(id) + 1, 'e' FROM IDENTIFIER(named)",
        None,
        [1, 2, 3, 4],
    ),
    (
        "MERGE INTO IDENTIFIER(named) t USING (SELECT 1 AS id) s ON t.id = s.id "
        "WHEN MATCHED THEN DELETE",
        None,
        [2, 3],
    ),
]
USES = ("", "USE lake.db")
EACH_NAME = [
    *zip(itertools.cycle(USES), IDENTIFIERS, strict=False),
    (USES[1], IDENTIFIERS[0]),
]


@pytest.mark.parametrize(("use", "case"), these(EACH_NAME, USES, IDENTIFIERS, test=4))
def test_names_that_expressions_say(spark, lake, session, use, case):
    text, args, expected = case
    if text.startswith("BEGIN") and pyspark.__version__ < "4.1":
        pytest.skip("Spark 4.0 tells no variables of scripts")
    session(spark__sql__scripting__enabled="true")
    spark.sql("DECLARE OR REPLACE VARIABLE named STRING DEFAULT 'lake.db.t'")
    if use:
        spark.sql(use)
    try:
        spark.sql(text, args).collect()
        assert sorted(row[0] for row in spark.sql("SELECT id FROM lake.db.t").collect()) == expected
    finally:
        spark.sql("USE spark_catalog.default")
        spark.sql("DROP TEMPORARY VARIABLE named")


def test_names_of_sparks_own_tables_that_expressions_say(spark, lake):
    spark.sql("CREATE TABLE spark_catalog.default.of_spark (id INT) USING parquet")
    try:
        spark.sql("INSERT INTO IDENTIFIER('spark_catalog.default.of_spark') VALUES (1)")
        spark.sql("INSERT INTO IDENTIFIER(?) SELECT max(id) FROM lake.db.t", ["default.of_spark"])
        assert sorted(rows(spark, "SELECT * FROM IDENTIFIER('of_spark')")) == [(1,), (3,)]
    finally:
        spark.sql("DROP TABLE spark_catalog.default.of_spark")


def test_a_plan_names_the_table(spark, lake):
    spark.sql("INSERT INTO lake.db.t SELECT * FROM lake.db.t WHERE id = 1")
    plan = spark.sql("EXPLAIN EXTENDED SELECT * FROM lake.db.t").collect()[0][0]
    assert "SubqueryAlias lake.db.t" in plan
    [location] = re.findall(r"Location: \S+ ?\(1 paths\)\[(\S+)\]", plan)
    assert location.endswith("/db.t")


class Listener(JavaObject):
    """A listener of queries as lineage tools have one, which keeps what it is told."""

    def __init__(self, machine):
        self.machine = machine
        self.heard = []

    def onSuccess(self, function, query, nanoseconds):
        self.heard.append(("ended", str(query.analyzed().toString())))

    def onFailure(self, function, query, error):
        self.heard.append(("failed", str(query.analyzed().toString())))

    class Java:
        implements = ["org.apache.spark.sql.util.QueryExecutionListener"]


@pytest.fixture
def plans_heard(spark, lake):
    """What a listener of the session hears while a function runs: how it ended, and plans."""
    listener = Listener(machine_of(spark))
    manager, bus = (
        spark._jsparkSession.listenerManager(),
        spark.sparkContext._jsc.sc().listenerBus(),
    )
    # What was before is told to others alone.
    bus.waitUntilEmpty()
    others = list(manager.listListeners())
    manager.register(listener)

    def heard(run):
        listener.heard.clear()
        run()
        bus.waitUntilEmpty()
        return list(listener.heard)

    yield heard
    # A proxy equals none: it cannot be taken back alone. Spark's own listener counts rows.
    manager.clear()
    for other in others:
        manager.register(other)
    bus.waitUntilEmpty()


READS = [
    "SELECT n FROM lake.db.t WHERE id = 2",
    "WITH c AS (SELECT n FROM lake.db.t WHERE id < 3) SELECT max(n) FROM c",
    # Metadata answers it: no file is read.
    "SELECT count(*), max(id) FROM lake.db.t",
    "SELECT committed_at FROM lake.db.t.snapshots",
    "SELECT * FROM (SELECT 2L AS id) s JOIN lake.db.t AS other USING (id)",
]


@pytest.mark.parametrize("text", in_circles(READS, test=3))
def test_a_listener_of_queries_hears_the_name_of_a_table_that_is_read(spark, plans_heard, text):
    (told,) = plans_heard(lambda: spark.sql(text).collect())
    assert told[0] == "ended"
    assert re.search(r"SubqueryAlias `?lake\.db\.t\b", told[1])


def test_a_listener_of_queries_hears_the_names_of_what_methods_read(spark, plans_heard):
    for rows in (spark.table("lake.db.t"), spark.read.table("lake.db.t")):
        ((_, plan),) = plans_heard(rows.filter("t.id = 2").collect)
        assert "SubqueryAlias `lake.db.t`\n" in plan


def test_a_listener_of_queries_hears_the_name_of_a_table_whose_read_fails(spark, plans_heard):
    def fail():
        with pytest.raises(pyspark.errors.PySparkException, match="USER_RAISED_EXCEPTION"):
            spark.sql("SELECT raise_error(n) FROM lake.db.t").collect()

    ((how, plan),) = plans_heard(fail)
    assert how == "failed"
    assert "SubqueryAlias lake.db.t\n" in plan


WRITES = [
    "INSERT INTO lake.db.t VALUES (4, 'd')",
    "UPDATE lake.db.t SET n = 'x' WHERE id = 1",
    *in_circles(
        [
            "INSERT OVERWRITE lake.db.t SELECT id, n FROM lake.db.t",
            "DELETE FROM lake.db.t WHERE id = 1",
            "MERGE INTO lake.db.t USING (SELECT 9L AS id) s ON t.id = s.id "
            "WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, 'q')",
        ],
        test=0,
    ),
]


@pytest.mark.parametrize("text", WRITES)
def test_a_listener_of_queries_hears_the_name_of_a_table_that_is_written(spark, plans_heard, text):
    """A change is several queries; that which writes files tells whose they are."""
    told = [plan for _, plan in plans_heard(lambda: spark.sql(text).collect())]
    (written,) = (plan for plan in told if "InsertIntoHadoopFsRelationCommand" in plan)
    assert "SubqueryAlias `db.t`\n" in written


def test_a_call_has_rows_of_its_own_to_a_listener_of_queries(spark, plans_heard):
    """Bin packing is no query of Spark's, and what it counted is a relation without a name."""
    text = "CALL lake.system.rewrite_data_files(table => 'db.t')"
    ((how, plan),) = plans_heard(lambda: spark.sql(text).collect())
    assert how == "ended"
    assert plan.startswith("LocalRelation [rewritten_data_files_count#")


def test_detach_gives_sparks_own_back(spark, lake):
    """The parser and the catalogs of the session are those of before."""
    state = spark._jsparkSession.sessionState()
    lake.detach()
    assert state.sqlParser().getClass().getName().endswith("SparkSqlParser")
    assert "lake" not in [each.name for each in spark.catalog.listCatalogs()]
    with pytest.raises(Exception, match=r"REQUIRES_SINGLE_PART_NAMESPACE|NOT_FOUND"):
        spark.sql("EXECUTE IMMEDIATE 'SELECT * FROM lake.db.t'")


def test_functions_of_others_have_their_errors_told(spark, lake, tmp_path):
    """An error of Spark's in a function that Spark calls keeps its words."""

    def fail(batch, _):
        batch.selectExpr("raise_error('these words')").collect()

    stream = spark.readStream.table("lake.db.t").writeStream.foreachBatch(fail)
    query = stream.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
    with pytest.raises(pyspark.errors.StreamingQueryException, match="these words"):
        query.awaitTermination()


@pytest.mark.check
def test_a_stream_that_a_thread_with_tags_starts(spark, lake, tmp_path):
    """As every statement of a client of Connect has one."""
    spark.sparkContext.addJobTag("mine")
    try:
        stream = spark.readStream.table("lake.db.t").writeStream.trigger(availableNow=True)
        query = stream.option("checkpointLocation", str(tmp_path)).toTable("lake.db.copy")
        query.awaitTermination()
    finally:
        spark.sparkContext.removeJobTag("mine")
    assert rows(spark, "SELECT count(*) FROM lake.db.copy") == [(3,)]


UNPINNED = """
import frazil
from frazil.spark.local.session import local_session

spark = local_session()
with frazil.connect(spark, warehouse="lake", name="lake") as lake:
    lake.attach(name="lake")
    spark.sql("CREATE NAMESPACE lake.db")
    spark.sql("CREATE TABLE lake.db.t AS SELECT 1 AS id")
    spark.sql("DELETE FROM lake.db.t WHERE id = 2")
    print(spark.sql("SELECT id FROM lake.db.t").collect()[0][0], spark.table("lake.db.t").count())
    print(spark.sql("EXECUTE IMMEDIATE 'SELECT * FROM lake.db.t'").collect()[0][0])
    print(spark.sql("SELECT * FROM IDENTIFIER('lake.db.t')").collect()[0][0])
    try:
        spark._jsparkSession.sql("SELECT * FROM lake.db.t")
    except Exception as error:
        print("NOT_FOUND" in str(error) or "REQUIRES_SINGLE_PART_NAMESPACE" in str(error))
from frazil.spark.catalog.server import SparkListening, SparkServer
try:
    SparkServer(spark, print, SparkListening(thrift=1, settings={}))
except frazil.errors.UnsupportedError as error:
    print(error)
"""


@pytest.mark.check
def test_threads_that_are_not_pinned(tmp_path):
    """Spark itself knows no lake there, methods and statements do; nothing is served."""
    variables = {"PYSPARK_PIN_THREAD": "false", "SPARK_LOCAL_IP": "127.0.0.1"}
    said = run_program(UNPINNED, cwd=tmp_path, variables=variables).splitlines()
    assert said[:4] == ["1 1", "1", "1", "True"]
    assert "PYSPARK_PIN_THREAD" in said[4]
