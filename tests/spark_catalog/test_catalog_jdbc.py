"""Hive's JDBC driver, whose classes are among PySpark's own: statements, lists and sessions."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JJavaError

pytestmark = pytest.mark.check

LISTED = ("TABLE", "VIEW")


class Client:
    """A connection of the driver."""

    def __init__(self, jvm, port, path=""):
        self.jvm = jvm
        url = f"jdbc:hive2://127.0.0.1:{port}/{path}"
        self.connection = jvm.org.apache.hive.jdbc.HiveDriver().connect(
            url, jvm.java.util.Properties()
        )

    def run(self, text):
        """The rows of a statement, as texts."""
        statement = self.connection.createStatement()
        try:
            has_rows = statement.execute(text)
            return rows_of(statement.getResultSet()) if has_rows else []
        finally:
            statement.close()

    def fails(self, text):
        """The words of a statement's error."""
        with pytest.raises(Py4JJavaError) as caught:
            self.run(text)
        return str(caught.value.java_exception.getMessage())

    @property
    def lists(self):
        """What the driver tells of what there is."""
        return self.connection.getMetaData()


def rows_of(result, *columns):
    """The rows of a result: some columns, or all."""
    said = result.getMetaData()
    names = columns or [said.getColumnLabel(i + 1) for i in range(said.getColumnCount())]
    found = []
    while result.next():
        found.append(tuple(result.getString(name) for name in names))
    return found


@pytest.fixture(scope="module")
def connect(spark, served):
    """Makes connections, which are closed at the end."""
    made = []

    def one(path=""):
        made.append(Client(spark._jvm, served.thrift, path))
        return made[-1]

    yield one
    for each in made:
        each.connection.close()


@pytest.fixture(scope="module")
def client(connect):
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


def test_catalogs_and_schemas(client):
    """The lake is one of the catalogs, and its namespaces are schemas."""
    assert rows_of(client.lists.getCatalogs()) == [("lake",), ("other",), ("spark_catalog",)]
    every = rows_of(client.lists.getSchemas(), "TABLE_CATALOG", "TABLE_SCHEM")
    assert {("lake", "lists"), ("spark_catalog", "default")} <= set(every)
    some = client.lists.getSchemas("lake", "l%s")
    assert rows_of(some, "TABLE_CATALOG", "TABLE_SCHEM") == [("lake", "lists")]
    assert rows_of(client.lists.getSchemas("nowhere", None)) == []


TABLES = [
    (("lake", "lists", "%", None), [("a_b", "TABLE"), ("axb", "TABLE"), ("v", "VIEW")]),
    (("lake", "lists", "a\\_b", None), [("a_b", "TABLE")]),
    (("lake", "lists", "A_B", ["TABLE"]), [("a_b", "TABLE"), ("axb", "TABLE")]),
    (("lake", "li%", "%", ["VIEW"]), [("v", "VIEW")]),
    ((None, None, "passing", None), [("passing", "VIEW")]),
    ((None, "default", "%", None), []),
]


@pytest.mark.parametrize(("asked", "expected"), TABLES)
def test_tables(spark, client, asked, expected):
    """By patterns, and by their kinds; the driver does not tell the server of a catalog."""
    *names, kinds = asked
    types = None
    if kinds is not None:
        types = spark.sparkContext._gateway.new_array(spark._jvm.java.lang.String, len(kinds))
        for place, kind in enumerate(kinds):
            types[place] = kind
    found = client.lists.getTables(*names, types)
    assert rows_of(found, "TABLE_NAME", "TABLE_TYPE") == expected


COLUMNS = [
    ("id", "-5", "BIGINT", "0", "its number", "NO"),
    ("d", "3", "DECIMAL(9,2)", "2", "", "YES"),
    ("s", "2002", "STRUCT<X:INT>", None, "", "YES"),
    ("ts", "93", "TIMESTAMP", "6", "", "YES"),
]


def test_columns(client):
    """With the types that Spark's own lists say."""
    asked = (
        "COLUMN_NAME", "DATA_TYPE", "TYPE_NAME", "DECIMAL_DIGITS", "REMARKS", "IS_NULLABLE"
    )  # fmt: skip
    assert rows_of(client.lists.getColumns("lake", "lists", "a\\_b", "%"), *asked) == COLUMNS
    some = client.lists.getColumns(None, "lists", "%", "one")
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


def test_a_session_may_begin_in_a_namespace(client, connect):
    """As `jdbc:hive2://host:port/lake.lists` says."""
    assert connect("lake.lists").run("SELECT current_catalog(), one FROM axb") == [("lake", "1")]


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
