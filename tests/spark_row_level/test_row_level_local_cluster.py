"""Writes and reads where executors are processes of their own, as on a cluster."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.spark
def test_every_kind_of_write_and_read(tmp_path):
    done = subprocess.run(
        [sys.executable, str(HERE / "local_cluster.py"), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=600,
        cwd=tmp_path,
        env={
            **os.environ,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": str(HERE.parents[1] / "src"),
        },
        check=False,
    )
    right = [line for line in done.stdout.splitlines() if line.startswith("right")]
    assert len(right) == 3, done.stderr[-4000:]
