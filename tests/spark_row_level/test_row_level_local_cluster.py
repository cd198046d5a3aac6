"""Writes and reads where executors are processes of their own, as on a cluster."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ci_share import only_in_soak

HERE = Path(__file__).parent


@pytest.mark.spark
@pytest.mark.parametrize(
    ("mode", "version", "executors"),
    [
        ("merge-on-read", 3, 1),
        only_in_soak("merge-on-read", 2, 2),
        only_in_soak("copy-on-write", 2, 2),
    ],
)
def test_every_kind_of_write_and_read(tmp_path, mode, version, executors):
    done = subprocess.run(
        [
            sys.executable,
            str(HERE / "local_cluster.py"),
            tmp_path,
            mode,
            str(version),
            str(executors),
        ],
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
    assert done.stdout.strip().endswith("right"), done.stderr[-4000:]
