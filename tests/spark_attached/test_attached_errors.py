"""What a program with an attached session is told of mistakes, and what is logged."""

from __future__ import annotations

import json
import re

import pytest

from programs import ended_program

OF_US = re.compile(r"py4j|Proxy\d|frazil_|frazil-", re.IGNORECASE)
OF_SPARKS_OWN = "ERROR ExecutionListenerBus: "
"""Spark 4.1 logs each analysis that fails, with all that stands around it."""
PROGRAM = """
import json, logging, sys
import frazil
from frazil.spark.local.session import local_session
logging.basicConfig(level=logging.WARNING)
spark = local_session(config={"spark.ui.enabled": "false", "spark.master": "local[1]"})
lake = frazil.connect(spark, warehouse=sys.argv[1])
lake.create_namespace("db")
lake.attach(name="lake")
print("begins", file=sys.stderr, flush=True)
for text in json.loads(sys.argv[2]):
    found = None
    try:
        spark.sql(text).collect()
    except Exception as error:
        kinds = [each.__name__ for each in type(error).__mro__]
        found = [str(error), kinds, getattr(error, "getCondition", str)()]
    print(json.dumps(found), flush=True)
lake.close()
spark.stop()
"""
RUN = [
    "CREATE TABLE lake.db.t (id BIGINT, n STRING)",
    "INSERT INTO lake.db.t VALUES (1, 'a')",
    "SELECT _partition, _file FROM lake.db.t",
    "EXECUTE IMMEDIATE 'SELECT _pos FROM lake.db.t'",
    "CREATE TEMPORARY VIEW v AS SELECT id, _spec_id FROM lake.db.t",
    "SELECT * FROM v",
    "MERGE INTO lake.db.t t USING (SELECT 2 AS id, 'b' AS n) s ON t.id = s.id "
    "WHEN NOT MATCHED THEN INSERT *",
]
"""Statements that succeed: Frazil may have tried something that Spark refuses."""
FAIL = {
    "SELECT nope FROM lake.db.t": ("AnalysisException", "UNRESOLVED_COLUMN"),
    "SELECT * FORM lake.db.t": ("ParseException", "PARSE_SYNTAX_ERROR"),
    "EXECUTE IMMEDIATE 'SELECT nope FROM lake.db.t'": ("AnalysisException", "UNRESOLVED_COLUMN"),
    "EXECUTE IMMEDIATE 'DELETE FROM lake.db.t WHERE nope = 1'": (
        "AnalysisException",
        "UNRESOLVED_COLUMN",
    ),
    "EXECUTE IMMEDIATE 'INSERT INTO lake.db.t VALUES (1)'": (
        "AnalysisException",
        "INSERT_COLUMN_ARITY_MISMATCH",
    ),
    "EXECUTE IMMEDIATE 'DELETE FROM lake.db.nothing'": (
        "AnalysisException",
        "TABLE_OR_VIEW_NOT_FOUND",
    ),
    "DELETE FROM lake.db.t WHERE nope = 1": ("AnalysisException", "UNRESOLVED_COLUMN"),
    "DELETE FROM lake.db.t WHERE id IN (SELECT nope FROM lake.db.t)": (
        "AnalysisException",
        "UNRESOLVED_COLUMN",
    ),
    "UPDATE lake.db.t SET nope = 1": ("AnalysisException", "UNRESOLVED_COLUMN"),
    "UPDATE lake.db.t SET": ("ParseException", "PARSE_SYNTAX_ERROR"),
    "MERGE INTO lake.db.t t USING lake.db.t s ON t.id = s.nope WHEN MATCHED THEN DELETE": (
        "AnalysisException",
        "UNRESOLVED_COLUMN",
    ),
    "INSERT INTO lake.db.t VALUES (1)": ("AnalysisException", "INSERT_COLUMN_ARITY_MISMATCH"),
    "DROP VIEW lake.db.nothing": ("AnalysisException", "VIEW_NOT_FOUND"),
    "CREATE VIEW lake.db.t AS SELECT 1 AS one": ("AnalysisException", "VIEW_ALREADY_EXISTS"),
    "ALTER TABLE lake.db.t DROP PARTITION (id = 1)": (
        "AnalysisException",
        "INVALID_PARTITION_OPERATION.PARTITION_MANAGEMENT_IS_UNSUPPORTED",
    ),
    "ALTER TABLE lake.db.t CREATE BRANCH": ("ParseException", "PARSE_SYNTAX_ERROR"),
}
"""Statements that fail, with the class and the condition that Spark has for such a mistake."""


@pytest.mark.check
def test_nothing_tells_how_python_is_called(tmp_path):
    """Neither an error nor what is logged, of statements that fail and of those that run."""
    ran = ended_program(PROGRAM, tmp_path / "lake", [*RUN, *FAIL], cwd=tmp_path)
    found = [json.loads(line) for line in ran.lines]
    assert found[: len(RUN)] == [None] * len(RUN)
    for (text, (kind, condition)), answer in zip(FAIL.items(), found[len(RUN) :], strict=True):
        assert answer is not None, text
        said, kinds, own = answer
        assert OF_US.search(said) is None, (text, said)
        assert kind in kinds, (text, kinds, said)
        assert (own or "").startswith(condition), (text, own, said)
    logged = "".join(ran.errors).partition("begins\n")[2]
    events = re.split(r"^(?=\d\d/\d\d/\d\d |\{)", logged, flags=re.MULTILINE)
    logged = "".join(each for each in events if OF_SPARKS_OWN not in each)
    assert [line for line in logged.splitlines() if OF_US.search(line)] == []
    assert "ERROR" not in logged, logged
