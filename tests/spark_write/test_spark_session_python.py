"""The Python of Spark's workers, in a program run by an environment that is not activated."""

from __future__ import annotations

import sys

import pytest

from programs import run_program

pytestmark = pytest.mark.check

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
    printed = run_program(PROGRAM, variables={"PYSPARK_PYTHON": None, "PYTHONPATH": None})
    assert f"WORKER {sys.executable}" in printed
