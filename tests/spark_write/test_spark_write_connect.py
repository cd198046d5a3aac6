"""Writing needs no JVM beside the session: Spark Connect, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.spark
def test_writes_through_spark_connect(tmp_path):
    pytest.importorskip("grpc")
    script = Path(__file__).with_name("connect_check.py")
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)],
        env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.stdout.strip().endswith("written"), done.stderr[-3000:]
