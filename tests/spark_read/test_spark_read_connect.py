"""A table read over Spark Connect, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

PROGRAM = """
import sys
from pyspark.sql import SparkSession
from frazil.catalog.static import StaticCatalog
from frazil.spark.scan import Scan
from frazil.storage.files import FileIO

spark = SparkSession.builder.remote("local[1]").getOrCreate()
catalog = StaticCatalog(sys.argv[1])
metadata = catalog.load_table(catalog.identifier).metadata
scan = Scan(spark, metadata, FileIO(), where="a > 1", columns=["b", "_file", "_pos", "a"])
df = scan.to_df()
print("ROWS", sorted((r.a, r.b, r._pos, r._file == sys.argv[2]) for r in df.collect()))
print("AGAIN", df.where("a = 2").count())
spark.stop()
"""


@pytest.mark.spark
def test_a_table_is_read_over_connect(tmp_path: Path) -> None:
    pytest.importorskip("grpc")
    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}/w")
    catalog.create_namespace("db")
    data = pa.table({"a": pa.array([1, 2, 3], pa.int64()), "b": pa.array(["x", "y", "z"])})
    table: Any = catalog.create_table("db.t", schema=data.schema)
    table.append(data)
    (task,) = table.scan().plan_files()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, table.metadata_location, task.file.file_path],
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable},
        cwd=tmp_path,
        check=False,
    )
    assert "ROWS [(2, 'y', 1, True), (3, 'z', 2, True)]" in done.stdout, done.stderr[-3000:]
    assert "AGAIN 1" in done.stdout
