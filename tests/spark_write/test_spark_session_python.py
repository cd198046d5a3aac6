"""The Python of Spark's workers, in a program run by an environment that is not activated."""

from __future__ import annotations

import os
import subprocess
import sys

PROGRAM = """
from pyspark.sql import SparkSession
from frazil.spark.session.facts import prepare_session
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
prepare_session(spark)
def where(batches):
    import sys, frazil
    import pyarrow as pa
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"python": [sys.executable] * batch.num_rows})
print("WORKER", spark.range(1).mapInArrow(where, "python string").collect()[0].python)
"""


def test_workers_of_a_local_session_are_this_python() -> None:
    environment = {k: v for k, v in os.environ.items() if k != "PYSPARK_PYTHON"}
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        env={**environment, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": ""},
        timeout=300,
        check=False,
    )
    assert f"WORKER {sys.executable}" in ran.stdout, ran.stderr[-2000:]
