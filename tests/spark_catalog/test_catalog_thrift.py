"""Statements of a JDBC client: beeline, whose classes are among PySpark's own."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pyspark
import pytest

STATEMENTS = """
CREATE NAMESPACE lake.jdbc;
CREATE TABLE lake.jdbc.t (id BIGINT, n STRING) USING iceberg;
INSERT INTO lake.jdbc.t VALUES (1, 'a'), (2, 'b'), (3, 'c');
DELETE FROM lake.jdbc.t WHERE id = 2;
USE lake.jdbc;
MERGE INTO t USING (SELECT 3 id, 'm' n) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *;
CREATE TABLE u AS SELECT * FROM t;
SHOW TABLES;
SELECT id, n FROM t ORDER BY id;
SELECT count(*) AS snapshots FROM t.snapshots;
SELECT x.k FROM u AS x(k, v) ORDER BY k;
CALL lake.system.expire_snapshots(table => 'jdbc.t');
CREATE VIEW v AS SELECT max(id) AS top FROM t;
SELECT * FROM v;
SELECT nope FROM t;
"""


@pytest.mark.check
def test_beeline(served, tmp_path):
    """Each statement is answered, and the error is Spark's."""
    script = tmp_path / "statements.sql"
    script.write_text(STATEMENTS)
    jars = Path(pyspark.__file__).parent / "jars"
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    assert java is not None
    said = subprocess.run(
        [
            java,
            "-cp",
            f"{jars}/*",
            "org.apache.hive.beeline.BeeLine",
            "-u",
            f"jdbc:hive2://127.0.0.1:{served.thrift}",
            "--outputformat=csv2",
            "--silent=true",
            "-f",
            str(script),
        ],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path)},
        check=False,
    )
    lines = [line for line in said.stdout.splitlines() if line.strip()]
    for expected in ("jdbc,t,false", "jdbc,u,false", "1,a", "3,m"):
        assert expected in lines, said.stdout + said.stderr
    assert lines[lines.index("snapshots") + 1] == "3"
    assert lines[lines.index("k") + 1 : lines.index("k") + 3] == ["1", "3"]
    assert lines[lines.index("top") + 1] == "3"
    assert "UNRESOLVED_COLUMN" in said.stderr
    assert "Traceback" not in said.stderr
