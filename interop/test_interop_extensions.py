"""Extensions of others in a session with an attached lake: Iceberg's own, and Delta Lake's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest
from extension_steps import Step, run_steps, sorted_rows

from absent import skip_without
from ci_share import only_in_interop
from frazil.spark.lake import Lake, connect
from programs import ended_program

ROOT = Path(__file__).resolve().parents[1]
DELTA = Path(__file__).with_name("delta_program.py")
NO_JAR = 3
"""How the program of Delta ends where its jar is not to be had."""

JAVA = "java_sql.db.beside"
LAKE = "lake.db.t"


@pytest.fixture
def both(spark: Any, sql_lake: Lake, tmp_path: Path) -> Iterator[Lake]:
    """A lake of its own attached as `lake`; that of `java_sql` is `ours` besides."""
    with connect(spark, warehouse=str(tmp_path / "lake"), name="beside") as lake:
        lake.create_namespace("db")
        lake.attach(name="lake")
        sql_lake.attach(name="ours")
        yield lake
        sql_lake.detach()
        for table in (JAVA, f"{JAVA}_copy"):
            spark.sql(f"DROP TABLE IF EXISTS {table}")


STEPS: list[Step] = [
    (f"CREATE TABLE {JAVA} (id BIGINT, city STRING) USING iceberg", None),
    (f"CREATE TABLE {LAKE} (id BIGINT, city STRING)", None),
    (f"INSERT INTO {JAVA} VALUES (1, 'Oslo'), (2, 'Quito'), (3, 'Lima')", None),
    (f"INSERT INTO {LAKE} VALUES (2, 'Rome'), (4, 'Bonn')", None),
    (
        f"SELECT id, j.city, l.city FROM {JAVA} j JOIN {LAKE} l USING (id)",
        [(2, "Quito", "Rome")],
    ),
    (f"ALTER TABLE {JAVA} ADD PARTITION FIELD bucket(4, id)", None),
    (f"ALTER TABLE {LAKE} ADD PARTITION FIELD bucket(4, id)", None),
    (f"INSERT INTO {LAKE} SELECT * FROM {JAVA} WHERE id <> 2", None),
    (
        f"MERGE INTO {JAVA} t USING {LAKE} s ON t.id = s.id "
        "WHEN MATCHED AND t.city <> s.city THEN UPDATE SET city = s.city "
        "WHEN NOT MATCHED THEN INSERT *",
        None,
    ),
    ("CALL java_sql.system.rewrite_data_files(table => 'db.beside')", None),
    ("CALL lake.system.rewrite_data_files(table => 'db.t')", None),
    (f"SELECT * FROM {JAVA}", [(1, "Oslo"), (2, "Rome"), (3, "Lima"), (4, "Bonn")]),
    (f"SELECT * FROM {LAKE}", [(1, "Oslo"), (2, "Rome"), (3, "Lima"), (4, "Bonn")]),
    # A lake's name for the table of Java's catalog.
    ("SELECT * FROM ours.db.beside WHERE id > 2", [(3, "Lima"), (4, "Bonn")]),
    (f"CREATE TABLE {LAKE}_copy AS SELECT id, city FROM {JAVA} WHERE id > 3", None),
    (f"CREATE TABLE {JAVA}_copy USING iceberg AS SELECT id + 1 AS n FROM {LAKE} WHERE id IN (1, 3)",
     None),
    (f"SELECT * FROM {LAKE}_copy", [(4, "Bonn")]),
    (f"SELECT * FROM {JAVA}_copy", [(2,), (4,)]),
]  # fmt: skip
MORE_STEPS: list[Step] = [
    (
        f"UPDATE {LAKE} SET city = upper(city) WHERE id IN (SELECT id FROM {JAVA} WHERE id < 3)",
        None,
    ),
    (f"DELETE FROM {JAVA} WHERE id IN (SELECT id FROM {LAKE} WHERE city = 'OSLO')", None),
    (
        f"MERGE INTO {LAKE} t USING {JAVA} s ON t.id = s.id "
        "WHEN MATCHED AND s.id = 4 THEN DELETE "
        "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET city = 'gone'",
        None,
    ),
    (f"SELECT * FROM {LAKE}", [(1, "gone"), (2, "ROME"), (3, "Lima")]),
    (f"UPDATE {JAVA} SET city = 'Kyiv' WHERE id = 3", None),
    (f"DELETE FROM {LAKE} WHERE id = 2", None),
    (f"ALTER TABLE {JAVA} CREATE BRANCH dev", None),
    (f"INSERT INTO {JAVA}.branch_dev SELECT 9, city FROM {LAKE} WHERE id = 1", None),
    (f"ALTER TABLE {LAKE} CREATE BRANCH dev", None),
    (f"INSERT INTO {LAKE}.branch_dev SELECT id, city FROM {JAVA} VERSION AS OF 'dev'", None),
    (
        f"SELECT * FROM {LAKE} VERSION AS OF 'dev'",
        [(1, "gone"), (2, "Rome"), (3, "Kyiv"), (3, "Lima"), (4, "Bonn"), (9, "gone")],
    ),
    ("CALL java_sql.system.fast_forward('db.beside', 'main', 'dev')", None),
    ("CALL lake.system.rewrite_manifests('db.t')", None),
    (f"SELECT * FROM {JAVA}", [(2, "Rome"), (3, "Kyiv"), (4, "Bonn"), (9, "gone")]),
    (f"SELECT * FROM {LAKE}", [(1, "gone"), (3, "Lima")]),
    (f"SELECT name FROM {JAVA}.refs", [("main",), ("dev",)]),
    (f"SELECT name FROM {LAKE}.refs", [("main",), ("dev",)]),
]
DETACHED: list[Step] = [
    (f"INSERT INTO {JAVA}_copy VALUES (8)", None),
    (f"ALTER TABLE {JAVA}_copy ADD PARTITION FIELD bucket(2, n)", None),
    (f"MERGE INTO {JAVA}_copy t USING (SELECT 2L AS n) s ON t.n = s.n WHEN MATCHED THEN DELETE",
     None),
    ("CALL java_sql.system.rewrite_manifests('db.beside_copy')", None),
    (f"SELECT * FROM {JAVA}_copy", [(4,), (8,)]),
]  # fmt: skip


@pytest.mark.parametrize("more", [[], only_in_interop(MORE_STEPS)], ids=["few", "all"])
def test_icebergs_extension_and_a_lake(spark: Any, both: Lake, more: list[Step]) -> None:
    """Each world's statements are its own, a query may have tables of both."""
    run_steps(spark, [*STEPS, *more])
    both.detach()
    with pytest.raises(pyspark.errors.AnalysisException, match="lake"):
        spark.sql(f"SELECT id FROM {LAKE}")
    run_steps(spark, DETACHED)
    assert sorted_rows(spark, "SELECT * FROM ours.db.beside_copy") == [(4,), (8,)]


@pytest.mark.interop
def test_deltas_extension_and_a_lake(tmp_path: Path) -> None:
    """A session of its own, whose catalog `spark_catalog` is Delta's."""
    paths = {"PYTHONPATH": str(ROOT / "src")}
    ended = ended_program(DELTA, tmp_path, cwd=tmp_path, variables=paths, code=(0, NO_JAR))
    if ended.process.returncode == NO_JAR:
        skip_without("the jar of Delta Lake cannot be had")
    assert ended.printed.strip().endswith("right")
