"""`delta_program.py FOLDER`: statements of Delta Lake beside those of a lake; see its test."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyspark
from extension_steps import Step, run_steps, sorted_rows
from java_settings import SETTINGS
from pyspark.sql import SparkSession

import frazil
from frazil.storage.files import FileIO

PACKAGES = "io.delta:delta-spark_4.1_2.13:4.1.0"
NO_JAR = 3

DELTA = "spark_catalog.default.d"
LAKE = "lake.db.t"
STEPS: list[Step] = [
    (f"CREATE TABLE {DELTA} (id BIGINT, city STRING) USING delta", None),
    (f"CREATE TABLE {LAKE} (id BIGINT, city STRING)", None),
    (f"INSERT INTO {DELTA} VALUES (1, 'Oslo'), (2, 'Quito'), (3, 'Lima')", None),
    (f"INSERT INTO {LAKE} VALUES (2, 'Rome'), (4, 'Bonn')", None),
    (f"ALTER TABLE {LAKE} CREATE TAG first", None),
    (
        f"SELECT id, d.city, l.city FROM {DELTA} d JOIN {LAKE} l USING (id)",
        [(2, "Quito", "Rome")],
    ),
    (f"ALTER TABLE {LAKE} ADD PARTITION FIELD bucket(4, id)", None),
    (f"INSERT INTO {LAKE} SELECT * FROM {DELTA} WHERE id <> 2", None),
    (f"SELECT * FROM {LAKE}", [(1, "Oslo"), (2, "Rome"), (3, "Lima"), (4, "Bonn")]),
    (
        f"MERGE INTO {DELTA} t USING {LAKE} s ON t.id = s.id "
        "WHEN MATCHED AND t.city <> s.city THEN UPDATE SET city = s.city "
        "WHEN NOT MATCHED THEN INSERT *",
        None,
    ),
    (f"SELECT * FROM {DELTA}", [(1, "Oslo"), (2, "Rome"), (3, "Lima"), (4, "Bonn")]),
    (
        f"UPDATE {LAKE} SET city = upper(city) WHERE id IN (SELECT id FROM {DELTA} WHERE id < 3)",
        None,
    ),
    (f"DELETE FROM {DELTA} WHERE id = 1", None),
    (
        f"MERGE INTO {LAKE} t USING {DELTA} s ON t.id = s.id "
        "WHEN MATCHED AND s.id = 4 THEN DELETE "
        "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET city = 'gone'",
        None,
    ),
    (f"SELECT * FROM {LAKE}", [(1, "gone"), (2, "ROME"), (3, "Lima")]),
    (f"UPDATE {DELTA} SET city = 'Kyiv' WHERE id = 3", None),
    (f"DELETE FROM {LAKE} WHERE id = 2", None),
    ("CALL lake.system.rewrite_data_files(table => 'db.t')", None),
    (f"SELECT * FROM {DELTA}", [(2, "Rome"), (3, "Kyiv"), (4, "Bonn")]),
    (f"SELECT * FROM {LAKE}", [(1, "gone"), (3, "Lima")]),
    # Version 0 made the table, 1 inserted.
    (f"SELECT * FROM {DELTA} VERSION AS OF 1", [(1, "Oslo"), (2, "Quito"), (3, "Lima")]),
    (f"SELECT * FROM {LAKE} VERSION AS OF 'first'", [(2, "Rome"), (4, "Bonn")]),
    (f"INSERT INTO {DELTA} SELECT id + 10, city FROM {LAKE}", None),
    # There are files of two commits to put together.
    (f"OPTIMIZE {DELTA}", None),
    (f"CREATE TABLE {LAKE}_copy AS SELECT id FROM {DELTA} WHERE id > 3", None),
    (f"CREATE TABLE {DELTA}_copy USING delta AS SELECT id + 1 AS n FROM {LAKE}", None),
    (f"SELECT * FROM {LAKE}_copy", [(4,), (11,), (13,)]),
    (f"SELECT * FROM {DELTA}_copy", [(2,), (4,)]),
]
OPERATIONS = ["CREATE TABLE", "WRITE", "MERGE", "DELETE", "UPDATE", "WRITE", "OPTIMIZE"]
# RESTORE and ADD CONSTRAINT need what Spark 4.1.4 has no more, with or without a lake.
DETACHED: list[Step] = [
    (f"UPDATE {DELTA}_copy SET n = n + 1 WHERE n = 2", None),
    (f"INSERT INTO {DELTA}_copy SELECT id FROM {DELTA} VERSION AS OF 1 WHERE id = 3", None),
    (f"OPTIMIZE {DELTA}_copy", None),
    (f"DELETE FROM {DELTA}_copy WHERE n = 4", None),
    (f"SELECT * FROM {DELTA}_copy", [(3,), (3,)]),
]


def session(folder: Path) -> Any:
    """A session with Delta's extension and catalog; None where its jar cannot be had."""
    builder = SparkSession.builder.master("local[2]").appName("frazil-delta")
    settings = {
        **SETTINGS,
        "spark.jars.packages": PACKAGES,
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.sql.warehouse.dir": str(folder / "spark"),
    }
    for key, value in settings.items():
        builder.config(key, value)
    try:
        # Two processes that fetch jars at once would fetch them into one folder.
        with FileIO().lock(str(Path(__file__).parent)):
            made = builder.getOrCreate()
    except pyspark.errors.PySparkRuntimeError:
        return None
    made.sparkContext.setLogLevel("OFF")
    return made


def main(folder: Path) -> int:
    """0 where each statement had its rows."""
    spark = session(folder)
    if spark is None:
        return NO_JAR
    with frazil.connect(spark, warehouse=str(folder / "lake"), name="beside") as lake:
        lake.create_namespace("db")
        lake.attach(name="lake")
        run_steps(spark, STEPS)
        history = spark.sql(f"DESCRIBE HISTORY {DELTA}").orderBy("version").collect()
        assert [row.operation for row in history] == OPERATIONS, history
        lake.detach()
        try:
            found: Any = sorted_rows(spark, f"SELECT id FROM {LAKE}")
        except pyspark.errors.AnalysisException as error:
            found = str(error)
        assert "lake" in found, found
        run_steps(spark, DETACHED)
    spark.stop()
    print("right")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
