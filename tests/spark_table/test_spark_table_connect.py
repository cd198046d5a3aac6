"""The whole public face over Spark Connect, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark
pytest.importorskip("grpc", reason="the extra `connect` is not installed")

PROGRAM = Path(__file__).with_name("connect_program.py")


def test_reads_and_writes_work_over_spark_connect(tmp_path):
    ran = subprocess.run(
        [sys.executable, str(PROGRAM), str(tmp_path / "lake")],
        capture_output=True,
        text=True,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable},
        timeout=500,
        check=False,
    )
    lines = [line for line in ran.stdout.splitlines() if line.startswith("RESULT ")]
    assert lines, ran.stderr[-3000:]
    found = json.loads(lines[0].removeprefix("RESULT "))
    refused = found.pop("refused")
    assert found == {
        "session": "pyspark.sql.connect.session",
        "rows": [[2, ["x", "y"]], [4, ["x", "y"]], [100, ["n"]]],
        "count": 7,
        "history": [True, True],
        "operations": ["append", "overwrite"],
        "formats": ["PARQUET"],
        "partitions": [["a", 4], ["b", 3]],
        "made": [7],
    }
    assert refused.startswith("SchemaMismatchError: the column 'id' is required")
