"""Clients of a server that have no Frazil: of Spark Connect, and of JDBC.

The steps are one program of one client; each says what Spark answers over tables of its own, or
what the specification of a statement says. All clients ask one server, which starts slowly.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from typing import Any

import pyspark
import pytest
from jdbc_client import Driver, rows_of
from test_catalog_health import answer

from programs import Program, ended_program, run_program


@dataclass(frozen=True)
class Step:
    """A step of a client, and its answer.

    Attributes:
        answer: the rows; None where they do not matter.
        error: what the text of its error has.
        older: a Spark that can do it, and what a client of those before does instead.
    """

    does: str
    answer: Any = None
    error: str | None = None
    older: tuple[str, str] = ("", "")

    @property
    def here(self) -> str:
        """What a client of this Spark does."""
        since, instead = self.older
        return instead if pyspark.__version__ < since else self.does


pytestmark = pytest.mark.check
OF_NO_SPARK = {key: None for key in os.environ if key.startswith(("SPARK_", "PYSPARK_"))}


def read(options: str, then: str = "where('id = 77').count()", name: str = "lake.db.t") -> str:
    """A read with options."""
    return f"py:s.read.options(**{{{options}}}).table('{name}').{then}"


FIRST = "SELECT snapshot_id, unix_millis(committed_at) FROM lake.db.t.snapshots ORDER BY 2 LIMIT 1"
TWO = "s.range(2).selectExpr('id + 100 AS id', \"'w' AS n\")"
DAY = "s.sql(\"SELECT 7L AS id, DATE'2020-01-07' AS d, 'w' AS n\")"
ODD = "'x' + chr(92) + 'b'"
MERGED = (
    "s.range(2).selectExpr('id + 101 AS id', \"'w' AS n\").alias('s')"
    ".mergeInto('lake.db.w', col('w.id') == col('s.id'))"
    ".whenMatched(col('s.id') > 0).update({'n': concat(col('s.n'), lit('!'))})"
    ".whenNotMatched().insertAll().whenNotMatchedBySource(col('w.id') < 101).delete()"
)
STREAM = (
    "s.readStream.table('lake.db.u').writeStream.option('checkpointLocation', getcwd() + '/cp')"
    ".trigger(availableNow=True).toTable('lake.db.copy')"
)
PARQUET = [["write.format.default", "parquet"]]
STEPS = [
    # Definitions, names and rows.
    Step("CREATE NAMESPACE lake.db", []),
    Step("SHOW NAMESPACES IN lake LIKE 'db'", [["db"]]),
    Step("CREATE TABLE lake.db.t (id BIGINT, n STRING) USING iceberg", []),
    Step("INSERT INTO lake.db.t VALUES (1, 'a'), (2, 'b'), (3, 'c')", []),
    Step("SELECT * FROM lake.db.t ORDER BY id", [[1, "a"], [2, "b"], [3, "c"]]),
    Step("SELECT count(*) FROM lake.db.t", [[3]]),
    Step("SHOW TABLES IN lake.db", [["db", "t", False]]),
    Step("DESCRIBE lake.db.t", [["id", "bigint", None], ["n", "string", None]]),
    Step("SELECT x.k FROM lake.db.t AS x(k, v) WHERE x.v > 'a' ORDER BY k", [[2], [3]]),
    Step("SELECT lake.db.t.id FROM lake.db.t WHERE db.t.n = 'b' AND t.id = 2", [[2]]),
    Step("CREATE TABLE lake.db.u AS SELECT * FROM lake.db.t WHERE id > 1", []),
    Step("SELECT count(*) FROM lake.db.u.snapshots", [[1]]),
    # Changes, each of them once.
    Step("DELETE FROM lake.db.t WHERE id = 2", []),
    Step("UPDATE lake.db.t SET n = 'z' WHERE id = :which", None, "which"),
    Step(
        "py:s.sql('UPDATE lake.db.t SET n = :n WHERE id = 3', {'n': 'z'}).collect()",
        [],
        older=("4.1", "UPDATE lake.db.t SET n = 'z' WHERE id = 3"),
    ),
    Step(
        "MERGE INTO lake.db.t t USING (SELECT 9 id, 'm' n) s ON t.id = s.id "
        "WHEN NOT MATCHED THEN INSERT *",
        [],
    ),
    Step("SELECT * FROM lake.db.t ORDER BY id", [[1, "a"], [3, "z"], [9, "m"]]),
    Step("SELECT count(*) FROM lake.db.t.snapshots", [[4]]),
    Step("EXECUTE IMMEDIATE 'INSERT INTO lake.db.t VALUES (20, \\'e\\')'", []),
    Step("SELECT count(*) FROM lake.db.t.snapshots", [[5]]),
    Step("py:'ExternalCommand' in s.sql('EXPLAIN DELETE FROM lake.db.t').collect()[0][0]", True),
    Step("py:s.sql('SELECT 1 FROM lake.db.t').schema.names", ["1"]),
    Step("SELECT count(*) FROM lake.db.t.snapshots", [[5]]),
    Step(
        "CALL lake.system.rewrite_data_files(table => 'db.t', options => map('rewrite-all','true'))"
    ),
    Step("SELECT count(*) FROM lake.db.t.snapshots", [[6]]),
    # Versions, views, branches.
    Step("py:s.sql('ALTER TABLE lake.db.t CREATE BRANCH old').collect()", []),
    Step("INSERT INTO lake.db.t.branch_old VALUES (77, 'br')", []),
    Step("SELECT count(*) FROM lake.db.t VERSION AS OF 'old' WHERE id = 77", [[1]]),
    Step("SELECT count(*) FROM lake.db.t.branch_old WHERE id = 77", [[1]]),
    Step("ALTER TABLE lake.db.t CREATE TAG one", []),
    Step("DELETE FROM lake.db.t.branch_old WHERE id = 1", []),
    Step(read("'versionAsOf': 'old'"), 1),
    Step(read("'branch': 'old'"), 1),
    Step(read("'BRANCH': 'old'", "schema.names"), ["id", "n"]),
    Step(read("'tag': 'one'", "count()"), 4),
    Step(read(f"'snapshot-id': s.sql('{FIRST}').first()[0]", "count()"), 3),
    Step(read(f"'as-of-timestamp': s.sql('{FIRST}').first()[1]", "count()"), 3),
    Step(read(f"'snapshot-id': s.sql('{FIRST}').first()[0]", "where('id = 2').count()"), 1),
    # A table read twice in one plan, as it was and as it is.
    Step(read("'branch': 'old'", "union(s.table('lake.db.t')).where('id in (1, 77)').count()"), 2),
    Step(
        "py:s.table('lake.db.t').union(s.read.option('branch', 'old').table('lake.db.t'))"
        ".where('id in (1, 77)').count()",
        2,
    ),
    Step(read("'tag': 'one'", "count()", "lake.db.t.files"), 1),
    Step(read("'tag': 'one'", "where(\"name = 'main'\").count()", "lake.db.t.refs"), 1),
    Step(read("'tag': 'one'", name="lake.db.t.all_files"), None, "read it without a version"),
    Step(read("'branch': 'none'"), None, "none"),
    Step(read("'branch': 'old', 'tag': 'one'"), None, "say which rows: give one of them"),
    Step(read("'branch': 'old', 'versionAsOf': 'one'"), None, "say which rows: give one of them"),
    Step(read("'tag': 'one'", name="lake.db.t.branch_old"), None, "the name says a version"),
    Step(read("'snapshot-id': 'x'"), None, "no whole number"),
    Step(read(f"'start-snapshot-id': s.sql('{FIRST}').first()[0]", "where('id = 20').count()"), 1),
    Step(read("'start-snapshot-id': 1, 'tag': 'one'"), None, "say which rows"),
    Step(read("'nope': 1"), None, "no options of a read"),
    Step("SELECT count(*) FROM lake.db.t WITH ('branch' = 'old') WHERE id = 77", [[1]]),
    Step("CREATE VIEW lake.db.v AS SELECT id FROM lake.db.t WHERE id < 5", []),
    Step("SELECT * FROM lake.db.v ORDER BY id", [[1], [3]]),
    Step(read("'branch': 'old'", name="lake.db.v"), None, "is a view, which has no versions"),
    Step("py:s.table('lake.db.v').count()", 2),
    # What follows the tables, and what names them in another way.
    Step("INSERT INTO lake.db.t VALUES (30, 's')", []),
    Step(
        "BEGIN INSERT INTO lake.db.t VALUES (31, 's'); DELETE FROM lake.db.t WHERE id = 30; "
        "SELECT max(id), count(*) FROM lake.db.t; END",
        [[31, 5]],
        older=(
            "4.1",
            "py:[s.sql(t).collect() for t in ("
            "\"INSERT INTO lake.db.t VALUES (31, 's')\", 'DELETE FROM lake.db.t WHERE id = 30', "
            "'SELECT max(id), count(*) FROM lake.db.t')][-1]",
        ),
    ),
    Step(
        "EXECUTE IMMEDIATE 'UPDATE lake.db.t SET n = ? WHERE id = ?' USING 'x', 31",
        [],
        older=("4.1", "EXECUTE IMMEDIATE 'UPDATE lake.db.t SET n = \"x\" WHERE id = 31'"),
    ),
    Step("SELECT n FROM lake.db.t WHERE id = 31", [["x"]]),
    Step("py:s.table('lake.db.u').where('_pos = 0').collect()[0][:]", [2, "b"]),
    Step("py:s.table('lake.db.u').selectExpr('max(_pos)', 'count(_FILE)').first()[:]", [1, 2]),
    Step(
        "py:s.table('lake.db.u').alias('x').select('x._pos', 'x.id').columns",
        ["_pos", "id"],
        older=("4.2", "py:s.table('lake.db.u').select('_pos', 'id').columns"),
    ),
    Step("py:s.table('lake.db.u').selectExpr('1 AS _pos').first()[0]", 1),
    # Methods.
    Step("py:s.table('lake.db.t').where('id > 5').count()", 3),
    Step(f"py:{TWO}.writeTo('lake.db.t').append()"),
    Step(f"py:{TWO}.write.mode('append').saveAsTable('lake.db.t')"),
    Step(f"py:{TWO}.write.insertInto('lake.db.t')"),
    Step("SELECT count(*) FROM lake.db.t WHERE n = 'w'", [[6]]),
    Step("py:s.catalog.createTable('lake.db.made', schema=s.range(1).schema).columns", ["id"]),
    Step("SELECT count(*) FROM lake.db.made.snapshots", [[0]]),
    Step("DROP TABLE lake.db.made", []),
    Step(f"py:{TWO}.write.format('parquet').saveAsTable('lake.db.made')"),
    Step("SHOW TBLPROPERTIES lake.db.made ('write.format.default')", PARQUET),
    Step(f"py:{TWO}.writeTo('lake.db.made').using('parquet').createOrReplace()"),
    Step("DROP TABLE lake.db.made", []),
    Step("CREATE TABLE lake.db.made (id UUID, b FIXED(2)) USING parquet", []),
    Step("INSERT INTO lake.db.made SELECT uuid(), X'0001'", []),
    Step("SHOW TBLPROPERTIES lake.db.made ('write.format.default')", PARQUET),
    Step("DROP TABLE lake.db.made", []),
    Step(f"py:{TWO}.writeTo('lake.db.made').using('orc').create()", None, "writes no orc"),
    Step("CREATE TABLE lake.db.made (id INT, CHECK (id > 0))", None, "support table constraint"),
    Step(f"py:{TWO}.writeTo('lake.db.w').using('iceberg').tableProperty('a', 'b').create()"),
    Step(f"py:{TWO}.writeTo('lake.db.w').using('iceberg').create()", None, "ALREADY_EXISTS"),
    Step(f"py:{TWO}.write.mode('overwrite').saveAsTable('lake.db.w')"),
    Step(f"py:{TWO}.writeTo('lake.db.w').overwrite(col('id') == 100)"),
    Step("SELECT id, count(*) FROM lake.db.w GROUP BY 1 ORDER BY 1", [[100, 1], [101, 2]]),
    Step("SELECT count(*) FROM lake.db.w.snapshots", [[3]]),
    Step(f"py:{TWO}.writeTo('lake.db.w').using('iceberg').createOrReplace()"),
    Step(f"py:{TWO}.writeTo('lake.db.w').overwrite(lit(True))"),
    Step(f"py:{TWO}.writeTo('lake.db.w').overwritePartitions()"),
    Step("SELECT count(*) FROM lake.db.w", [[2]]),
    Step(
        f"py:{TWO}.writeTo('lake.db.none').overwritePartitions()", None, "TABLE_OR_VIEW_NOT_FOUND"
    ),
    Step(f"py:{MERGED}.merge()"),
    Step("SELECT * FROM lake.db.w ORDER BY id", [[101, "w!"], [102, "w"]]),
    Step(f"py:{MERGED}.whenMatched(col('nope') > 1).delete().merge()", None, "UNRESOLVED_COLUMN"),
    Step("CREATE TABLE lake.db.p (id BIGINT, d DATE, n STRING) PARTITIONED BY (d)", []),
    Step(f"py:{DAY}.writeTo('lake.db.p').append()"),
    Step("INSERT INTO lake.db.p VALUES (8, DATE'2020-01-08', 'x\\\\b')", []),
    Step(f"py:{DAY}.writeTo('lake.db.p').overwrite(col('d') == lit('2020-01-07').cast('date'))"),
    Step("SELECT id, n FROM lake.db.p ORDER BY id", [[7, "w"], [8, "x\\b"]]),
    Step(f"py:{DAY}.writeTo('lake.db.p').overwrite(col('n').startswith('w') & (col('id') > 1))"),
    Step("SELECT id, n FROM lake.db.p ORDER BY id", [[7, "w"], [8, "x\\b"]]),
    Step(f"py:{DAY}.writeTo('lake.db.p').overwrite((col('n') == {ODD}) | (col('id') == 7))"),
    Step("SELECT id, n FROM lake.db.p ORDER BY id", [[7, "w"]]),
    Step(f"py:{DAY}.write.partitionBy('d').mode('append').saveAsTable('lake.db.p')"),
    # Where partitions are to be replaced, nothing else is.
    Step("py:s.conf.set('spark.sql.sources.partitionOverwriteMode', 'dynamic')"),
    Step("INSERT OVERWRITE lake.db.p VALUES (9, DATE'2020-01-09', 'q')", []),
    Step(f"py:{DAY}.write.mode('overwrite').insertInto('lake.db.p')"),
    Step("SELECT id, n FROM lake.db.p ORDER BY id", [[7, "w"], [9, "q"]]),
    Step("INSERT INTO lake.db.p VALUES (10, DATE'2020-01-07', 'x')", []),
    Step(f"py:{DAY}.writeTo('lake.db.p').option('snapshot-property.a', 'b').overwritePartitions()"),
    Step("SELECT id, n FROM lake.db.p ORDER BY id", [[7, "w"], [9, "q"]]),
    Step("SELECT count(*) FROM lake.db.p.snapshots WHERE summary['a'] = 'b'", [[1]]),
    Step("py:s.conf.unset('spark.sql.sources.partitionOverwriteMode')"),
    Step("py:sorted(t.name for t in s.catalog.listTables('lake.db'))", ["p", "t", "u", "w"]),
    Step("py:[c.name for c in s.catalog.listColumns('lake.db.t')]", ["id", "n"]),
    Step(
        "py:[s.catalog.tableExists(f'lake.db.{n}') for n in ('t', 'v', 'x')]", [True, True, False]
    ),
    # Streams: of a table, into a table, and again from where the first one ended.
    Step("py:s.readStream.table('lake.db.u').isStreaming", True),
    Step(f"py:{STREAM}.awaitTermination(120)", True),
    Step("SELECT * FROM lake.db.copy ORDER BY id", [[2, "b"], [3, "c"]]),
    Step("INSERT INTO lake.db.u VALUES (5, 'later')", []),
    Step(f"py:{STREAM}.awaitTermination(120)", True),
    Step("SELECT * FROM lake.db.copy ORDER BY id", [[2, "b"], [3, "c"], [5, "later"]]),
    Step("SELECT count(*) FROM lake.db.copy.snapshots", [[2]]),
    Step(f"py:{STREAM.replace('lake.db.copy', 'lake.db.v')}", None, "is a view"),
    Step("py:s.readStream.table('lake.db.v').isStreaming", None, "a stream follows a table"),
    Step("py:s.readStream.table('lake.db.none').isStreaming", None, "TABLE_OR_VIEW_NOT_FOUND"),
    Step("DELETE FROM lake.db.u WHERE id = 5", []),
    # USE is Spark's own.
    Step("USE lake.db", []),
    Step("SELECT current_catalog(), current_schema()", [["lake", "db"]]),
    Step("2:SELECT current_catalog()", [["spark_catalog"]]),
    Step("SELECT count(*) FROM u", [[2]]),
    Step("WITH u AS (SELECT max(id) m FROM u) SELECT * FROM u", [[3]]),
    Step("SELECT count(*) FROM u a JOIN db.u b ON a.id = b.id", [[2]]),
    Step("SELECT count(_file), max(_pos) >= 0 FROM db.u", [[2, True]]),
    Step("INSERT INTO u VALUES (4, 'd')", []),
    Step("SELECT count(*) FROM u", [[3]]),
    Step("CREATE TEMPORARY VIEW here AS SELECT count(*) n FROM u", []),
    Step("CREATE NAMESPACE lake.there", []),
    Step("CREATE TABLE lake.there.u (id BIGINT)", []),
    Step("USE lake.there", []),
    Step("SELECT n, (SELECT count(*) FROM u) FROM here", [[3, 0]]),
    Step("USE spark_catalog.default", []),
    # Errors are Spark's, or say what is wrong.
    Step("SELECT * FROM lake.db.none", None, "TABLE_OR_VIEW_NOT_FOUND"),
    Step("INSERT INTO lake.db.none VALUES (1)", None, "TABLE_OR_VIEW_NOT_FOUND"),
    Step("SELECT nope FROM lake.db.t", None, "UNRESOLVED_COLUMN"),
    Step("DELETE FROM lake.db.t WHERE nope = 1", None, "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
    Step("INSERT INTO lake.db.u VALUES (1, 'b', 'c')", None, "nothing was written"),
    Step("SELECT * FROM lake.db.t VERSION AS OF 1", None, "no snapshot 1"),
    Step("SELEC * FROM lake.db.t", None, "PARSE_SYNTAX_ERROR"),
    Step("SELECT count(*) FROM lake.db.u", [[3]]),
    # Two clients in transactions of their own.
    Step("BEGIN TRANSACTION", None, "say USE and which of lake, other first"),
    Step("USE lake", []),
    Step("2:USE lake", []),
    Step("BEGIN TRANSACTION", []),
    Step("2:BEGIN", []),
    Step("INSERT INTO lake.db.t VALUES (1001, 'one')", []),
    Step("2:INSERT INTO lake.db.u VALUES (1002, 'two')", []),
    Step("SELECT count(*) FROM lake.db.t WHERE id > 1000", [[1]]),
    Step("2:SELECT count(*) FROM lake.db.t WHERE id > 1000", [[0]]),
    Step("2:SELECT count(*) FROM lake.db.u WHERE id > 1000", [[1]]),
    Step("DELETE FROM lake.db.t WHERE id = 1", []),
    Step(
        "MERGE INTO lake.db.t t USING (SELECT 9 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
        [],
    ),
    Step("SELECT count(*), min(id) FROM lake.db.t WHERE id < 20", [[1, 3]]),
    Step("ROLLBACK", []),
    Step("SELECT count(*), min(id) FROM lake.db.t WHERE id < 20", [[3, 1]]),
    Step("2:COMMIT", []),
    Step("2:SELECT count(*) FROM lake.db.t WHERE id > 1000", [[0]]),
    Step("SELECT count(*) FROM lake.db.u WHERE id > 1000", [[1]]),
    # Two lakes.
    Step("SHOW CATALOGS LIKE '*e*'", [["lake"], ["other"]]),
    Step("CREATE NAMESPACE other.db", []),
    Step("USE other.db", []),
    Step("SELECT current_catalog(), current_schema()", [["other", "db"]]),
    Step("CREATE TABLE v (id BIGINT, n STRING)", []),
    Step("INSERT INTO v SELECT id, n FROM lake.db.u WHERE id IN (2, 3)", []),
    Step("SELECT v.id, u.n FROM v JOIN lake.db.u u USING (id) ORDER BY 1", [[2, "b"], [3, "c"]]),
]


@pytest.fixture(scope="module")
def answers(served, client, bare_python, tmp_path_factory):
    """What the client got for each step, in an environment that has no Frazil."""
    place = tmp_path_factory.mktemp("client")
    steps = place / "steps.json"
    steps.write_text(json.dumps([step.here for step in STEPS]))
    options = {"cwd": place, "variables": OF_NO_SPARK, "python": bare_python}
    said = run_program(client, served.connect, steps, **options)
    return [json.loads(line) for line in said.splitlines()]


def test_the_clients_environment_has_no_frazil(bare_python, tmp_path):
    """It has PySpark."""
    run_program("import pyspark.sql.connect.session", cwd=tmp_path, python=bare_python)
    failed = ended_program("import frazil", cwd=tmp_path, python=bare_python, code=1)
    assert failed.errors[-1].strip() == "ModuleNotFoundError: No module named 'frazil'"


@pytest.mark.parametrize("number", range(len(STEPS)), ids=lambda number: f"{number:02}")
def test_a_client_without_frazil(answers, number):
    """Each step is answered as Spark answers it."""
    step, found = STEPS[number], answers[number]
    failed = isinstance(found, dict)
    if step.error is not None:
        assert failed, step.does
        assert step.error in found["text"], (step.does, found)
        assert "py4j" not in found["text"], found["text"]
        return
    assert not failed, (step.does, found["error"], found["text"][:600])
    if step.answer is not None:
        assert found == step.answer, step.does


def test_a_server_that_runs_is_well(served):
    """It says so, and nothing else."""
    assert answer(served.health) == (200, '{"status": "ok"}')


def test_a_client_that_is_killed_has_committed_nothing(served, client, tmp_path):
    """Its transaction is open; the next client sees the table as it was."""

    def steps(*does):
        place = tmp_path / f"{len(does)}.json"
        place.write_text(json.dumps(does))
        return place

    killed = steps(
        "CREATE NAMESPACE lake.killed",
        "CREATE TABLE lake.killed.t (id BIGINT)",
        "INSERT INTO lake.killed.t VALUES (1)",
        "USE lake",
        "BEGIN",
        "INSERT INTO lake.killed.t VALUES (2)",
        "SELECT count(*) FROM lake.killed.t",
        "py:__import__('time').sleep(600)",
    )
    with Program(client, served.connect, killed, cwd=tmp_path, variables=OF_NO_SPARK) as running:
        running.wait_until(lambda: len(running.lines) == 7)
        assert json.loads(running.lines[-1]) == [[2]]
    after = steps("SELECT id FROM lake.killed.t", "INSERT INTO lake.killed.t VALUES (3)")
    said = run_program(client, served.connect, after, cwd=tmp_path, variables=OF_NO_SPARK)
    assert [json.loads(line) for line in said.splitlines()] == [[[1]], []]


SLOWLY = (
    "INSERT INTO lake.while.t SELECT id + 10 FROM range(0, 2, 1, 1) "
    "WHERE java_method('java.lang.Thread', 'sleep', CAST(1500 + id AS BIGINT)) IS NOT NULL"
)


@pytest.mark.parametrize("before", [(), ("USE lake", "BEGIN")], ids=["alone", "transaction"])
def test_a_client_that_is_killed_while_a_statement_runs(served, client, tmp_path, before):
    """The statement is committed whole or not at all; in a transaction it is not."""

    def steps(*does):
        place = tmp_path / f"{len(does)}.json"
        place.write_text(json.dumps(does))
        return place

    made = (
        "CREATE NAMESPACE IF NOT EXISTS lake.while",
        "DROP TABLE IF EXISTS lake.while.t",
        "CREATE TABLE lake.while.t (id BIGINT)",
        "INSERT INTO lake.while.t VALUES (1)",
    )
    first = (*made, *before)
    killed = steps(*first, SLOWLY)
    with Program(client, served.connect, killed, cwd=tmp_path, variables=OF_NO_SPARK) as running:
        running.wait_until(lambda: len(running.lines) == len(first))
        assert [json.loads(line) for line in running.lines[-2:]] == [[], []]
        time.sleep(1)
    after = steps(
        "py:__import__('time').sleep(6)",
        "SELECT count(*), max(id) FROM lake.while.t",
        "INSERT INTO lake.while.t VALUES (3)",
        "USE lake",
        "BEGIN",
        "DELETE FROM lake.while.t WHERE id = 1",
        "COMMIT",
        "SELECT count(*) FROM lake.while.t",
    )
    said = run_program(client, served.connect, after, cwd=tmp_path, variables=OF_NO_SPARK)
    _, seen, *others, last = [json.loads(line) for line in said.splitlines()]
    whole = [[3, 11]]
    assert seen in ([[[1, 1]]] if before else [[[1, 1]], whole]), seen
    assert (others, last) == ([[]] * 5, [seen[0][:1]])


# -- Hive's JDBC driver, whose classes are among PySpark's own: statements, lists and sessions -----


@pytest.fixture(scope="module")
def connect(spark, served):
    """Makes connections, which are closed at the end."""
    made = []

    def one(path=""):
        made.append(Driver(spark._jvm, served.thrift, path))
        return made[-1]

    yield one
    for each in made:
        each.connection.close()


@pytest.fixture(scope="module")
def listed(connect):
    """A connection, with a namespace of two tables and a view."""
    made = connect()
    for text in (
        "CREATE NAMESPACE lake.lists",
        "CREATE TABLE lake.lists.a_b (id BIGINT NOT NULL COMMENT 'its number', d DECIMAL(9, 2), "
        "s STRUCT<x: INT>, ts TIMESTAMP)",
        "CREATE TABLE lake.lists.axb AS SELECT 1 AS one",
        "CREATE VIEW lake.lists.v AS SELECT one FROM lake.lists.axb",
        "CREATE TEMPORARY VIEW passing AS SELECT 1 AS one",
    ):
        made.run(text)
    return made


def test_catalogs_and_schemas(listed):
    """The lake is one of the catalogs, and its namespaces are schemas."""
    assert rows_of(listed.lists.getCatalogs()) == [("lake",), ("other",), ("spark_catalog",)]
    every = rows_of(listed.lists.getSchemas(), "TABLE_CATALOG", "TABLE_SCHEM")
    assert {("lake", "lists"), ("spark_catalog", "default")} <= set(every)
    some = listed.lists.getSchemas("lake", "l%s")
    assert rows_of(some, "TABLE_CATALOG", "TABLE_SCHEM") == [("lake", "lists")]
    assert rows_of(listed.lists.getSchemas("nowhere", None)) == []


TABLES = [
    (("lake", "lists", "%", None), [("a_b", "TABLE"), ("axb", "TABLE"), ("v", "VIEW")]),
    (("lake", "lists", "a\\_b", None), [("a_b", "TABLE")]),
    (("lake", "lists", "A_B", ["TABLE"]), [("a_b", "TABLE"), ("axb", "TABLE")]),
    (("lake", "li%", "%", ["VIEW"]), [("v", "VIEW")]),
    ((None, None, "passing", None), [("passing", "VIEW")]),
    ((None, "default", "%", None), []),
]


@pytest.mark.parametrize(("asked", "expected"), TABLES)
def test_tables(spark, listed, asked, expected):
    """By patterns, and by their kinds; the driver does not tell the server of a catalog."""
    *names, kinds = asked
    types = None
    if kinds is not None:
        types = spark.sparkContext._gateway.new_array(spark._jvm.java.lang.String, len(kinds))
        for place, kind in enumerate(kinds):
            types[place] = kind
    found = listed.lists.getTables(*names, types)
    assert rows_of(found, "TABLE_NAME", "TABLE_TYPE") == expected


COLUMNS = [
    ("id", "-5", "BIGINT", "0", "its number", "NO"),
    ("d", "3", "DECIMAL(9,2)", "2", "", "YES"),
    ("s", "2002", "STRUCT<X:INT>", None, "", "YES"),
    ("ts", "93", "TIMESTAMP", "6", "", "YES"),
]


def test_columns(listed):
    """With the types that Spark's own lists say."""
    asked = (
        "COLUMN_NAME", "DATA_TYPE", "TYPE_NAME", "DECIMAL_DIGITS", "REMARKS", "IS_NULLABLE"
    )  # fmt: skip
    assert rows_of(listed.lists.getColumns("lake", "lists", "a\\_b", "%"), *asked) == COLUMNS
    some = listed.lists.getColumns(None, "lists", "%", "one")
    assert rows_of(some, "TABLE_NAME", "ORDINAL_POSITION") == [("axb", "1"), ("v", "1")]


def test_statements(connect):
    """What a program of a database does, from USE to a CALL."""
    one = connect()
    one.run("CREATE NAMESPACE lake.said")
    one.run("USE lake.said")
    one.run("CREATE TABLE t (id BIGINT, n STRING)")
    one.run("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    one.run("DELETE FROM t WHERE id = 2")
    one.run(
        "MERGE INTO t USING (SELECT 9 id, 'm' n) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"
    )
    # A table beside itself, and hidden columns, are read by plan.
    beside = one.run("SELECT count(*), max(a._pos) >= 0 FROM t a JOIN t b ON a.id = b.id")
    assert beside == [("3", "true")]
    one.run("CREATE TABLE u AS SELECT * FROM t")
    assert one.run("SHOW TABLES") == [("said", "t", "false"), ("said", "u", "false")]
    [(first, *_)] = one.run("SELECT snapshot_id FROM t.snapshots ORDER BY committed_at LIMIT 1")
    assert one.run(f"SELECT count(*) FROM t VERSION AS OF {first}") == [("3",)]
    one.run("CREATE VIEW v AS SELECT max(id) AS top FROM t")
    assert one.run("SELECT * FROM v") == [("9",)]
    assert one.run("CALL lake.system.rollback_to_snapshot('said.t', " + first + ")") != []
    assert one.run("SELECT count(*) FROM t") == [("3",)]
    assert "UNRESOLVED_COLUMN" in one.fails("SELECT nope FROM t")
    assert "TABLE_OR_VIEW_NOT_FOUND" in one.fails("DELETE FROM nothing WHERE id = 1")
    wrong = one.fails("INSERT INTO t VALUES (1)")
    # The driver puts the server's trace after the words.
    assert "nothing was written" in wrong.splitlines()[0], wrong[:500]


def test_a_session_may_begin_in_a_namespace(listed, connect):
    """As `jdbc:hive2://host:port/lake.lists` says."""
    assert connect("lake.lists").run("SELECT current_catalog(), one FROM axb") == [("lake", "1")]


def test_clients_share_the_tables_that_are_cached(connect):
    """Of their own session each; the first read after a commit keeps the rows anew."""
    one, other = connect(), connect()
    one.run("CREATE NAMESPACE lake.kept")
    one.run("CREATE TABLE lake.kept.t AS SELECT id, concat('n', id) AS n FROM range(3)")
    query = "EXPLAIN SELECT n FROM lake.kept.t WHERE id > 1"
    assert "InMemory" not in one.run(query)[0][0]
    one.run("CACHE TABLE lake.kept.t")
    assert ["InMemory" in each.run(query)[0][0] for each in (one, other)] == [True, True]
    other.run("INSERT INTO lake.kept.t VALUES (7, 'z')")
    for each in (one, other):
        assert each.run("SELECT max(n) FROM lake.kept.t WHERE id > 0") == [("z",)]
        assert "InMemory" in each.run(query)[0][0]
    other.run("UNCACHE TABLE lake.kept.t")
    assert "InMemory" not in one.run(query)[0][0]


def test_two_clients_interleave_their_transactions(connect):
    """Neither sees what the other one has begun; a ROLLBACK is of one alone."""
    one, two = connect(), connect()
    one.run("CREATE NAMESPACE lake.turns")
    one.run("CREATE TABLE lake.turns.t (id BIGINT)")
    one.run("USE lake")
    two.run("USE lake")
    one.run("BEGIN")
    two.run("BEGIN")
    one.run("INSERT INTO lake.turns.t VALUES (1)")
    two.run("INSERT INTO lake.turns.t VALUES (2)")
    count = "SELECT max(id) FROM lake.turns.t"
    assert (one.run(count), two.run(count)) == ([("1",)], [("2",)])
    one.run("ROLLBACK")
    two.run("COMMIT")
    assert one.run("SELECT id FROM lake.turns.t") == [("2",)]
