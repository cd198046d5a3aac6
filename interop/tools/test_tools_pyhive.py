"""PyHive, which speaks Hive's protocol without Java: two sessions of one server, side by side."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest

hive = pytest.importorskip("pyhive.hive")


@dataclass(frozen=True)
class Step:
    """A statement of a session, and its answer.

    Attributes:
        answer: the rows; None where they do not matter.
        error: what the text of its error has.
        session: which of the two.
    """

    statement: str
    answer: Any = None
    error: str | None = None
    session: int = 0


MERGED = (
    "MERGE INTO t USING (SELECT 2 AS id, 'm' AS n UNION ALL SELECT 9, 'new') s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET n = s.n WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, s.n)"
)
NO_COLUMN = "UNRESOLVED_COLUMN"
STEPS = [
    Step("SELECT current_catalog(), current_schema()", [("lake", "default")]),
    Step("CREATE NAMESPACE lake.db", []),
    Step("USE lake.db", []),
    Step("SHOW CATALOGS LIKE 'l*'", [("lake",)]),
    Step("SHOW NAMESPACES", [("db",), ("default",)]),
    Step("CREATE TABLE t (id BIGINT, n STRING, day DATE, fare DECIMAL(9, 2))", []),
    Step("INSERT INTO t VALUES (1, 'a', DATE'2024-03-01', 1.5), (2, 'b', NULL, NULL)", []),
    Step("INSERT INTO t (id, n) VALUES (3, 'it''s')", []),
    Step("SHOW TABLES", [("db", "t", False)]),
    Step(
        "DESCRIBE t",
        [
            ("id", "bigint", None),
            ("n", "string", None),
            ("day", "date", None),
            ("fare", "decimal(9,2)", None),
        ],
    ),
    Step(
        "SELECT * FROM t WHERE id < 3 ORDER BY id",
        [(1, "a", "2024-03-01", Decimal("1.50")), (2, "b", None, None)],
    ),
    Step("CREATE TABLE u AS SELECT id, n FROM t WHERE id > 1", []),
    Step("SELECT count(*) FROM u.snapshots", [(1,)]),
    Step("ALTER TABLE t CREATE TAG before", None),
    Step(MERGED, None),
    Step("DELETE FROM t WHERE id = 1", None),
    Step("UPDATE t SET n = concat(n, '!') WHERE id = 3", None),
    Step("SELECT id, n FROM t ORDER BY id", [(2, "m"), (3, "it's!"), (9, "new")]),
    Step(
        "SELECT id, n FROM t VERSION AS OF 'before' ORDER BY id", [(1, "a"), (2, "b"), (3, "it's")]
    ),
    Step("CREATE VIEW v AS SELECT id FROM t WHERE id > 2", []),
    Step("SELECT * FROM v ORDER BY id", [(3,), (9,)]),
    Step("SELECT * FROM lake.db.v ORDER BY id", [(3,), (9,)], session=1),
    Step("CALL lake.system.expire_snapshots(table => 'db.u', retain_last => 1)", None),
    # Errors.
    Step("SELECT nope FROM t", error=NO_COLUMN),
    Step("SELECT * FROM none", error="TABLE_OR_VIEW_NOT_FOUND"),
    Step("SELEC 1", error="PARSE_SYNTAX_ERROR"),
    Step("DELETE FROM t WHERE nope = 1", error="with name `nope` cannot be resolved"),
    Step("SELECT * FROM t VERSION AS OF 'never'", error="never"),
    Step("SELECT count(*) FROM t", [(3,)]),
    # USE and a transaction are of one session.
    Step("SELECT current_schema()", [("default",)], session=1),
    Step("USE lake.db", [], session=1),
    Step("BEGIN"),
    Step("INSERT INTO t (id) VALUES (100)"),
    Step("BEGIN", session=1),
    Step("INSERT INTO u (id) VALUES (200)", session=1),
    Step("SELECT count(*) FROM t", [(4,)]),
    Step("SELECT count(*) FROM t", [(3,)], session=1),
    Step("ROLLBACK"),
    Step("COMMIT", session=1),
    Step("SELECT count(*) FROM t", [(3,)], session=1),
    Step("SELECT id FROM u ORDER BY id", [(2,), (3,), (200,)]),
    Step("DROP TABLE u", []),
    Step("SHOW TABLES", [("db", "t", False)]),
]


def connected(port: int) -> Any:
    """A connection of which nobody knows anything."""
    place = {"use:database": "lake"}
    return hive.connect(host="127.0.0.1", port=port, username="me", configuration=place)


def test_two_sessions(thrift: int) -> None:
    """Each step is answered as Spark answers it; one that fails changes nothing."""
    connections = [connected(thrift), connected(thrift)]
    cursors = [each.cursor() for each in connections]
    for number, step in enumerate(STEPS):
        cursor, where = cursors[step.session], (number, step.statement)
        if step.error is not None:
            with pytest.raises(hive.Error) as caught:
                cursor.execute(step.statement)
            said = caught.value.args[0].status.errorMessage
            assert step.error in said, where
            assert "py4j" not in said, where
            continue
        cursor.execute(step.statement)
        found = cursor.fetchall() if cursor.description else []
        assert step.answer is None or found == step.answer, where
    # What a program gives for the places of a statement is text, well quoted.
    cursors[0].execute("SELECT id FROM t WHERE n = %s", ("it's!",))
    assert cursors[0].fetchall() == [(3,)]
    assert [each[:2] for each in cursors[0].description] == [("id", "BIGINT_TYPE")]
    for each in connections:
        each.close()
