"""Statements and methods of a Spark Connect client that has no Frazil.

The steps are one program of one client; each says what Spark answers over tables of its own, or
what the specification of a statement says.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

import pyspark
import pytest

from programs import run_program


@dataclass(frozen=True)
class Step:
    """A step of a client, and its answer.

    Attributes:
        answer: the rows; None where they do not matter.
        error: what the text of its error has.
    """

    does: str
    answer: Any = None
    error: str | None = None


pytestmark = pytest.mark.skipif(
    pyspark.__version__ < "4.3", reason="Connect is not served by Sparks that hide options"
)


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
    Step("py:s.sql('UPDATE lake.db.t SET n = :n WHERE id = 3', {'n': 'z'}).collect()", []),
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
    Step(read("'tag': 'one'", name="lake.db.t.refs"), None, "read it without a version"),
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
    Step("CREATE TEMPORARY VIEW tv AS SELECT id FROM lake.db.t", []),
    Step("CREATE TEMPORARY FUNCTION top() RETURNS BIGINT RETURN SELECT max(id) FROM lake.db.t", []),
    Step("INSERT INTO lake.db.t VALUES (30, 's')", []),
    Step("SELECT max(id) FROM tv", [[30]]),
    Step("SELECT top()", [[30]]),
    Step("EXECUTE IMMEDIATE 'SELECT max(id) FROM lake.db.t'", [[30]]),
    Step("SELECT max(id) FROM IDENTIFIER('lake.db' || '.t')", [[30]]),
    Step(
        "BEGIN INSERT INTO lake.db.t VALUES (31, 's'); DELETE FROM lake.db.t WHERE id = 30; "
        "SELECT max(id), count(*) FROM lake.db.t; END",
        [[31, 5]],
    ),
    Step("EXECUTE IMMEDIATE 'UPDATE lake.db.t SET n = ? WHERE id = ?' USING 'x', 31", []),
    Step("SELECT n FROM lake.db.t WHERE id = 31", [["x"]]),
    Step(
        "WITH c AS (SELECT * FROM lake.db.t) SELECT max(id) FROM c WHERE EXISTS "
        "(WITH d AS (SELECT * FROM lake.db.u) SELECT 1 FROM d)",
        [[31]],
    ),
    Step("SELECT min(_pos), count(_file) FROM lake.db.u", [[0, 2]]),
    Step("SELECT * FROM lake.db.u WHERE _pos = 0", [[2, "b"]]),
    Step("py:s.table('lake.db.u').where('_pos = 0').collect()[0][:]", [2, "b"]),
    Step("py:s.table('lake.db.u').selectExpr('max(_pos)', 'count(_FILE)').first()[:]", [1, 2]),
    Step("py:s.table('lake.db.u').alias('x').select('x._pos', 'x.id').columns", ["_pos", "id"]),
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
    # Variables, of the session and of scripts; a column goes before, and a lambda's own name.
    Step("DECLARE which BIGINT DEFAULT 3", []),
    Step("DECLARE id BIGINT DEFAULT 101", []),
    Step("CREATE TABLE lake.db.s AS SELECT * FROM lake.db.u", []),
    Step("UPDATE lake.db.s SET n = n || which WHERE session.which = id AND id <> 101", []),
    Step("DELETE FROM lake.db.s WHERE exists(array(2), which -> which = id)", []),
    Step("SELECT * FROM lake.db.s", [[3, "c3"]]),
    Step(
        "BEGIN DECLARE new BIGINT DEFAULT 7; INSERT INTO lake.db.s VALUES (new, 'i'); "
        "MERGE INTO lake.db.s t USING (SELECT new + 1 AS id) x ON t.id = x.id AND t.id > new "
        "WHEN NOT MATCHED THEN INSERT (id, n) VALUES (x.id, 'm' || new); "
        "DELETE FROM lake.db.s WHERE id IN (SELECT id FROM lake.db.s WHERE id = new); END",
        [],
    ),
    Step("SELECT * FROM lake.db.s ORDER BY id", [[3, "c3"], [8, "m7"]]),
    Step(
        "BEGIN FOR r AS (SELECT id FROM lake.db.s WHERE n = 'm7') DO "
        "DELETE FROM lake.db.s WHERE id = r.id; END FOR; SELECT count(*) FROM lake.db.s; END",
        [[1]],
    ),
    # USE is Spark's own.
    Step("USE lake.db", []),
    Step("SELECT current_catalog(), current_schema()", [["lake", "db"]]),
    Step("2:SELECT current_catalog()", [["spark_catalog"]]),
    Step("SELECT count(*) FROM u", [[2]]),
    Step("WITH u AS (SELECT max(id) m FROM u) SELECT * FROM u", [[3]]),
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
    Step("DELETE FROM lake.db.t WHERE nope = 1", None, "there is no column 'nope'"),
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
    Step("USE lake.db", []),
    Step("INSERT INTO u SELECT id + 500, n FROM other.db.v", []),
    Step("UPDATE u SET n = 'o' WHERE id - 500 IN (SELECT id FROM other.db.v)", []),
    Step("SELECT id, n FROM u WHERE id BETWEEN 500 AND 600 ORDER BY 1", [[502, "o"], [503, "o"]]),
    Step("BEGIN", []),
    Step("DELETE FROM u WHERE id > 500", []),
    Step("SELECT count(*) FROM u JOIN other.db.v USING (id)", [[2]]),
    Step("2:INSERT INTO other.db.v VALUES (9, 'i')", []),
    Step("INSERT INTO other.db.v VALUES (8, 'h')", None, "is one of the lake lake"),
    Step("ROLLBACK", []),
    Step("SELECT count(*) FROM u WHERE id BETWEEN 500 AND 600", [[2]]),
    Step("SELECT max(id), count(*) FROM other.db.v", [[9, 3]]),
]


@pytest.fixture(scope="module")
def answers(served, client, tmp_path_factory):
    """What the client got for each step."""
    place = tmp_path_factory.mktemp("client")
    steps = place / "steps.json"
    steps.write_text(json.dumps([step.does for step in STEPS]))
    left_out = {key: None for key in os.environ if key.startswith(("SPARK_", "PYSPARK_"))}
    said = run_program(client, served.connect, steps, cwd=place, variables=left_out)
    return [json.loads(line) for line in said.splitlines()]


@pytest.mark.check
@pytest.mark.parametrize("number", range(len(STEPS)), ids=lambda number: f"{number:02}")
def test_a_client_without_frazil(answers, number):
    """Each step is answered as Spark answers it."""
    step, found = STEPS[number], answers[number]
    failed = isinstance(found, dict)
    if step.error is not None:
        assert failed, step.does
        assert step.error in found["text"], (step.does, found)
        assert "py4j" not in found["text"].partition("JVM stacktrace")[0], found["text"]
        return
    assert not failed, (step.does, found["error"], found["text"][:600])
    if step.answer is not None:
        assert found == step.answer, step.does
