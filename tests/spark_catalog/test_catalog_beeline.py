"""Beeline as a client of a server: what it prints, and what it is told of mistakes.

One server is asked by all, and what it logs is read at the end of a test.
"""

from __future__ import annotations

import json
import os
import re
from types import SimpleNamespace

import pytest
from beeline_client import Beeline
from failing_statements import BEFORE, FAILING, files_below

from programs import free_port, run_program

pytestmark = pytest.mark.check

OF_US = re.compile(r"py4j|Proxy\d|frazil_|frazil-", re.IGNORECASE)
"""How Python is called, and names that Frazil makes."""
OF_SPARKS_OWN = re.compile("ERROR (FileFormatWriter|ExecutionListenerBus): ")
"""Spark's writer logs a job that fails, and Spark 4.1 each analysis, with all around it."""
MARK = "java_method('java.io.File', 'createTempFile', 'begun', '.mark')"
WAITS = "java_method('java.lang.Thread', 'sleep', 20000L)"
OF_NO_SPARK = {key: None for key in os.environ if key.startswith(("SPARK_", "PYSPARK_"))}


@pytest.fixture(scope="module")
def place(server, tmp_path_factory):
    """A server of this module: its ports, its folder, and where it makes temporary files."""
    folder, connect, thrift = tmp_path_factory.mktemp("beeline"), free_port(), free_port()
    marks = folder / "marks"
    marks.mkdir()
    settings = {"spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={marks}"}
    ports = ("--connect", connect, "--thrift", thrift)
    with server(folder, *ports, **settings) as running:
        yield SimpleNamespace(
            connect=connect, thrift=thrift, folder=folder, marks=marks, running=running
        )


@pytest.fixture
def beeline(place, tmp_path):
    """Starts beelines."""
    started = []

    def start(*lines, path=""):
        file = tmp_path / f"{len(started)}.sql"
        started.append(Beeline(place.thrift, file, *lines, path=path))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()


STATEMENTS = [
    ("CREATE NAMESPACE lake.bee", []),
    ("SHOW NAMESPACES IN lake LIKE 'bee'", ["bee"]),
    ("USE lake.bee", []),
    ("SELECT current_catalog(), current_schema()", ["lake,bee"]),
    ("CREATE TABLE t (id BIGINT, n STRING)", []),
    ("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')", []),
    ("CREATE TABLE u AS SELECT * FROM t WHERE id > 1", []),
    ("SHOW TABLES", ["bee,t,false", "bee,u,false"]),
    ("SELECT * FROM u ORDER BY id", ["2,b", "3,c"]),
    ("ALTER TABLE t CREATE TAG before", []),
    (
        "MERGE INTO t USING (SELECT 9 AS id, 'm' AS n) s ON t.id = s.id "
        "WHEN NOT MATCHED THEN INSERT *",
        [],
    ),
    ("DELETE FROM t WHERE id = 1", []),
    ("UPDATE t SET n = 'z' WHERE id = 2", []),
    ("SELECT * FROM t ORDER BY id", ["2,z", "3,c", "9,m"]),
    ("SELECT id, n FROM t VERSION AS OF 'before' ORDER BY id", ["1,a", "2,b", "3,c"]),
    ("SELECT count(*) FROM t.snapshots", ["4"]),
    ("CREATE VIEW v AS SELECT max(id) AS top FROM t", []),
    ("SELECT * FROM v", ["9"]),
    (
        "CALL lake.system.expire_snapshots(table => 'bee.t', "
        "older_than => TIMESTAMP '2020-01-01 00:00:00')",
        ["0,0,0,0,0,0"],
    ),
    ("SELECT nope FROM t", []),
    ("SELECT 'goes on'", ["goes on"]),
]


def test_statements(beeline):
    """Each is answered as by Spark's own tables; the error says what is wrong, and no more."""
    printed, errors = beeline(*[text for text, _ in STATEMENTS]).end()
    assert printed == [row for _, rows in STATEMENTS for row in rows], errors
    [said] = [line for line in errors.splitlines() if line.startswith("Error:")]
    assert "UNRESOLVED_COLUMN.WITH_SUGGESTION" in said
    assert "`nope`" in said


def test_lists(beeline):
    """`!tables` and `!columns` show the lake's."""
    printed, errors = beeline(
        "CREATE NAMESPACE lake.lists",
        "CREATE TABLE lake.lists.one (id BIGINT, n STRING)",
        "CREATE VIEW lake.lists.seen AS SELECT 1 AS x",
        "!tables",
        "!columns one",
    ).end()
    found = [tuple(line.split(",")[:4]) for line in printed if line.startswith("lake,lists,")]
    assert found == [
        ("lake", "lists", "one", "TABLE"),
        ("lake", "lists", "seen", "VIEW"),
        ("lake", "lists", "one", "id"),
        ("lake", "lists", "one", "n"),
    ], (printed, errors)


def test_two_at_once(beeline):
    """What one uses is nothing to the other one, though their tables have one name."""
    both = [
        beeline(
            f"CREATE NAMESPACE lake.two_{name}",
            f"USE lake.two_{name}",
            "CREATE TABLE t (n STRING)",
            *[f"INSERT INTO t VALUES ('{name}{number}')" for number in range(3)],
            "SELECT concat_ws(' ', sort_array(collect_list(n))) FROM t",
        )
        for name in ("a", "b")
    ]
    ended = [each.end() for each in both]
    assert [printed for printed, _ in ended] == [["a0 a1 a2"], ["b0 b1 b2"]], ended


def test_one_that_is_killed_has_committed_nothing(place, beeline):
    """It is killed in a statement of its transaction; the next one sees the table as it was."""
    killed = beeline(
        "CREATE NAMESPACE lake.killed",
        "CREATE TABLE lake.killed.t (id BIGINT)",
        "USE lake",
        "BEGIN",
        "INSERT INTO lake.killed.t VALUES (1)",
        f"SELECT count(*) FROM lake.killed.t WHERE {MARK} = {WAITS}",
    )
    place.running.wait_until(
        lambda: killed.process.poll() is not None or list(place.marks.glob("begun*.mark"))
    )
    assert killed.process.poll() is None, killed.end()
    killed.process.kill()
    printed, errors = beeline(
        "SELECT count(*) FROM lake.killed.t",
        "INSERT INTO lake.killed.t VALUES (2)",
        "SELECT id FROM lake.killed.t",
    ).end()
    assert printed == ["0", "2"], errors


MISTAKES = {
    "SELECT nope FROM {t}": "UNRESOLVED_COLUMN",
    "SELECT * FROM {t} WHERE id = 'x' AND id + true > 1": "DATATYPE_MISMATCH",
    "SELECT * FORM {t}": "PARSE_SYNTAX_ERROR",
    "SELECT id FROM lake.nowhere.t": "TABLE_OR_VIEW_NOT_FOUND",
    "SELECT * FROM {t} VERSION AS OF 5": "no snapshot 5",
    "SELECT raise_error('boom') FROM {t}": "boom",
    "DELETE FROM {t} WHERE nope = 1": "UNRESOLVED_COLUMN",
    "DELETE FROM {t} WHERE id =": "PARSE_SYNTAX_ERROR",
    "DELETE FROM lake.nowhere.t WHERE id = 1": "TABLE_OR_VIEW_NOT_FOUND",
    "UPDATE {t} SET nope = 1": "UNRESOLVED_COLUMN",
    "UPDATE {t} SET id = nope": "UNRESOLVED_COLUMN",
    "UPDATE {t} SET": "PARSE_SYNTAX_ERROR",
    "MERGE INTO {t} t USING {t} s ON t.id = s.nope WHEN MATCHED THEN DELETE": "UNRESOLVED_COLUMN",
    "INSERT INTO {t} VALUES (1)": "INSERT_COLUMN_ARITY_MISMATCH.NOT_ENOUGH_DATA_COLUMNS",
    "INSERT INTO {t} VALUES (1, 'a', 2)": "INSERT_COLUMN_ARITY_MISMATCH.TOO_MANY_DATA_COLUMNS",
    "INSERT INTO {t} SELECT id, raise_error('boom') FROM {t}": "boom",
    "INSERT INTO {t} SELECT id, nope FROM {t}": "UNRESOLVED_COLUMN",
    "INSERT INTO {t} SELEC 1": "PARSE_SYNTAX_ERROR",
    "ALTER TABLE {t} ADD CONSTRAINT c CHECK (id > 0)": "UNSUPPORTED_FEATURE.TABLE_OPERATION",
    "CREATE TABLE {t} (id BIGINT)": "TABLE_OR_VIEW_ALREADY_EXISTS",
    "DROP TABLE lake.nowhere.t": "TABLE_OR_VIEW_NOT_FOUND",
    "ALTER TABLE {t} DROP COLUMN nope": "nope",
    "ALTER TABLE {t} CREATE BRANCH": "PARSE_SYNTAX_ERROR",
    "CALL lake.system.nothing()": "nothing",
}
"""Statements, and words of their errors."""
STATES = {
    "DATATYPE_MISMATCH": "42K09",
    "INSERT_COLUMN_ARITY_MISMATCH": "21S01",
    "PARSE_SYNTAX_ERROR": "42601",
    "TABLE_OR_VIEW_ALREADY_EXISTS": "42P07",
    "TABLE_OR_VIEW_NOT_FOUND": "42P01",
    "UNRESOLVED_COLUMN": "42703",
    "UNSUPPORTED_FEATURE": "0A000",
}
"""Spark's conditions among them, and what SQLSTATE its list of conditions gives them."""


def made(beeline, name):
    """A table of two rows."""
    text = f"lake.{name}.t"
    _, errors = beeline(
        f"CREATE NAMESPACE lake.{name}",
        f"CREATE TABLE {text} (id BIGINT, n STRING)",
        f"INSERT INTO {text} VALUES (1, 'a'), (2, 'b')",
    ).end()
    assert errors == ""
    return text


def log_since(place, before):
    """What the server has logged since, but for what in Spark logs where it is called."""
    log = "".join([*place.running.lines, *place.running.errors])[before:]
    events = re.split(r"^(?=\d\d/\d\d/\d\d )", log, flags=re.MULTILINE)
    return "".join(each for each in events if not OF_SPARKS_OWN.search(each))


def test_mistakes_over_jdbc(place, beeline):
    """All that beeline prints of them, with the server's traces, and all that the server logs."""
    table = made(beeline, "wrong_jdbc")
    before = len("".join([*place.running.lines, *place.running.errors]))
    printed, errors = beeline(*[text.format(t=table) for text in MISTAKES]).end()
    said = re.split(r"^Error: ", errors, flags=re.MULTILINE)[1:]
    assert len(said) == len(MISTAKES), errors
    for (text, words), each in zip(MISTAKES.items(), said, strict=True):
        assert words in each, text
        state = STATES.get(words.partition(".")[0])
        assert state is None or f"(state={state}," in each, (text, each)
    log = log_since(place, before)
    assert _lines_of_us("\n".join([*printed, errors])) == []
    assert _lines_of_us(log) == []


def test_mistakes_over_connect(place, client, beeline, tmp_path):
    """The whole text of each error, and all that the server logs of statements."""
    table = made(beeline, "wrong_connect")
    steps = tmp_path / "steps.json"
    texts = [each.format(t=table) for each in MISTAKES]
    lazy = [
        f"py:s.table('{table}').select('nope').schema",
        f"py:s.sql('SELECT id FROM {table}').where('nope > 1').columns",
    ]
    steps.write_text(json.dumps(texts))
    before = len("".join([*place.running.lines, *place.running.errors]))
    said = run_program(client, place.connect, steps, cwd=tmp_path, variables=OF_NO_SPARK)
    assert _lines_of_us(log_since(place, before)) == []
    # Of a DataFrame that is analysed Spark logs the trace, in which we are called.
    steps.write_text(json.dumps(lazy))
    said += run_program(client, place.connect, steps, cwd=tmp_path, variables=OF_NO_SPARK)
    found = [json.loads(line) for line in said.splitlines()]
    wanted = [*MISTAKES.items(), *[(text, "UNRESOLVED_COLUMN") for text in lazy]]
    for (text, words), answer in zip(wanted, found, strict=True):
        assert words in answer["text"], (text, answer)
        assert _lines_of_us(answer["text"]) == [], text
        if words.partition(".")[0] in STATES:
            # What Spark finds while it reads a statement is of the subclass.
            kinds = ("ParseException", "AnalysisException")
            exact = kinds[:1] if words == "PARSE_SYNTAX_ERROR" else kinds[1:]
            is_read = text.startswith(("SELECT", "py:")) or "nowhere" in text
            expected = exact if words == "PARSE_SYNTAX_ERROR" or not is_read else kinds
            assert answer["error"] in expected, (text, answer)


def _lines_of_us(text):
    return [line for line in text.splitlines() if OF_US.search(line)]


def test_statements_that_fail_leave_no_file(place, beeline):
    """As by `lake.sql`, of statements whose last row raises."""
    before = ["CREATE NAMESPACE lake.left", *(text.format(db="lake.left") for text in BEFORE)]
    assert beeline(*before).end() == ([], "")
    files = files_below(place.folder / "lake" / "left")
    _, errors = beeline(*[text.format(db="lake.left") for text in FAILING.values()]).end()
    assert errors.count("Error: ") == len(FAILING), errors
    assert files_below(place.folder / "lake" / "left") == files
