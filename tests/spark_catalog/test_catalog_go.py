"""A Spark Connect client that is no Python: Go's, built here where there is a Go."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from absent import skip_without

pytestmark = pytest.mark.soak
SOURCE = Path(__file__).with_name("go_client")
STEPS = [
    ("CREATE NAMESPACE lake.go", []),
    ("USE lake.go", []),
    ("CREATE TABLE t (id BIGINT, n STRING)", []),
    ("INSERT INTO t VALUES (1, 'a'), (2, 'b')", []),
    (
        "MERGE INTO t USING (SELECT 2 id, 'm' n) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *",
        [],
    ),
    ("DELETE FROM t WHERE id = 1", []),
    ("SELECT * FROM t", [[2, "m"]]),
    ("table:lake.go.t", [[2, "m"]]),
    ("SHOW NAMESPACES IN lake LIKE 'go'", [["go"]]),
    ("SHOW TABLES", [["go", "t", False]]),
    ("SHOW COLUMNS IN t", [["id"], ["n"]]),
    ("CREATE TABLE made AS SELECT id, n FROM t", []),
    ("SELECT count(*) FROM lake.go.made.snapshots", [[1]]),
    ("ALTER TABLE made CREATE TAG first", []),
    ("INSERT INTO made VALUES (3, 'c')", []),
    ("SELECT id FROM made VERSION AS OF 'first'", [[2]]),
    ("SELECT id FROM made ORDER BY id", [[2], [3]]),
    ("CREATE VIEW seen AS SELECT max(id) AS most FROM made", []),
    ("SELECT most FROM seen", [[3]]),
    ("SHOW VIEWS", [["go", "seen", False]]),
    # Two clients in transactions of their own.
    ("BEGIN", []),
    ("2:USE lake", []),
    ("2:BEGIN", []),
    ("INSERT INTO made VALUES (4, 'd')", []),
    ("2:INSERT INTO lake.go.made VALUES (5, 'e')", []),
    ("SELECT max(id) FROM made", [[4]]),
    ("2:SELECT max(id) FROM lake.go.made", [[5]]),
    ("ROLLBACK", []),
    ("2:COMMIT", []),
    ("SELECT id FROM made ORDER BY id", [[2], [3], [5]]),
    ("SELECT count(*) FROM lake.go.t.snapshots", [[3]]),
    ("CALL lake.system.expire_snapshots(table => 'go.t', retain_last => 3)", None),
    ("SELECT nope FROM t", "UNRESOLVED_COLUMN"),
    ("table:lake.go.none", "TABLE_OR_VIEW_NOT_FOUND"),
    ("DELETE FROM none WHERE id = 1", "TABLE_OR_VIEW_NOT_FOUND"),
    ("INSERT INTO t VALUES (1)", "INSERT_COLUMN_ARITY_MISMATCH"),
    ("DELETE FROM t WHERE id =", "PARSE_SYNTAX_ERROR"),
]
KILLED = [
    "CREATE NAMESPACE lake.go_killed",
    "CREATE TABLE lake.go_killed.t (id BIGINT)",
    "USE lake.go_killed",
    "BEGIN",
    "INSERT INTO t VALUES (1)",
    "SELECT count(*) FROM t",
    "wait",
]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The client, built."""
    go = shutil.which("go")
    if go is None:
        skip_without("there is no Go (Debian: apt-get install golang)")
    built = tmp_path_factory.mktemp("go") / "client"
    made = subprocess.run(
        [go, "build", "-o", str(built), "."],
        cwd=SOURCE,
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        skip_without(f"Go's modules cannot be had: {made.stderr[-500:]}")
    return built


def test_a_client_in_go(served, program):
    """Statements, a table by its name, and errors that read well."""
    said = subprocess.run(
        [program, f"sc://127.0.0.1:{served.connect}", *(step for step, _ in STEPS)],
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    answers = map(json.loads, said.stdout.splitlines())
    for (step, expected), found in zip(STEPS, answers, strict=True):
        if isinstance(expected, str):
            assert expected in found["error"], step
            assert "py4j" not in found["error"], step
        elif expected is not None:
            assert found == expected, step


def test_one_that_is_killed_has_committed_nothing(served, program):
    """Its transaction is open; the next client sees the table as it was, and changes it."""
    address = f"sc://127.0.0.1:{served.connect}"
    with subprocess.Popen([program, address, *KILLED], stdout=subprocess.PIPE, text=True) as killed:
        try:
            said = [json.loads(killed.stdout.readline()) for _ in KILLED[:-1]]
        finally:
            killed.kill()
    assert said == [[], [], [], [], [], [[1]]]
    after = ["SELECT count(*) FROM lake.go_killed.t", "INSERT INTO lake.go_killed.t VALUES (2)"]
    run = {"capture_output": True, "text": True, "timeout": 600, "check": True}
    found = subprocess.run([program, address, *after, "table:lake.go_killed.t"], **run)
    assert [json.loads(line) for line in found.stdout.splitlines()] == [[[0]], [], [[2]]]
