"""Every kind of write and read on Spark 4.1, with executors in their own processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ci_share import only_in_soak

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "tests" / "spark_row_level" / "local_cluster.py"


@pytest.mark.parametrize(
    ("mode", "version", "executors", "parts"),
    [
        # The other part is in CI on Spark 4.3, in `test_row_level_local_cluster.py`.
        ("copy-on-write", 2, 1, "kept up"),
        only_in_soak("copy-on-write", 2, 2, "both"),
        only_in_soak("merge-on-read", 3, 2, "both"),
    ],
)
def test_every_kind_of_write_and_read(
    tmp_path: Path, mode: str, version: int, executors: int, parts: str
) -> None:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(tmp_path), mode, str(version), str(executors), parts],
        capture_output=True,
        text=True,
        timeout=600,
        cwd=tmp_path,
        env={
            **os.environ,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": str(ROOT / "src"),
        },
        check=False,
    )
    assert done.stdout.strip().endswith("right"), done.stderr[-4000:]
