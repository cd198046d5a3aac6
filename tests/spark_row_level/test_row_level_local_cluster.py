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
    ("mode", "version", "executors", "parts"),
    [
        # The other part is in CI on Spark 4.1, in `interop/test_interop_local_cluster.py`.
        ("merge-on-read", 3, 1, "changed"),
        only_in_soak("merge-on-read", 3, 1, "both"),
        only_in_soak("merge-on-read", 2, 2, "both"),
        only_in_soak("copy-on-write", 2, 2, "both"),
    ],
)
def test_every_kind_of_write_and_read(tmp_path, mode, version, executors, parts):
    done = subprocess.run(
        [
            sys.executable,
            str(HERE / "local_cluster.py"),
            tmp_path,
            mode,
            str(version),
            str(executors),
            parts,
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
