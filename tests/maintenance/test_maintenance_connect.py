"""Maintenance and migration over Spark Connect, in a process of its own."""

import json
from pathlib import Path

import pytest

from programs import run_program

pytestmark = pytest.mark.soak

PROGRAM = Path(__file__).with_name("connect_maintenance.py")


def test_maintenance_works_over_spark_connect(connect_url, tmp_path):
    said = run_program(PROGRAM, connect_url, tmp_path)
    (line,) = [line for line in said.splitlines() if line.startswith("RESULT ")]
    assert json.loads(line.removeprefix("RESULT ")) == {
        "counts": {"id": 20, "m": 4, "city": 2},
        "partitions": 2,
        "removed": [1, False],
        "expired": [2, 0],
        "sound": True,
        "added": 2,
        "rows": [[0, "x:0"], [2, "x:0"], [3, "x:1"]],
        "moved": [[0, "x:0"], [1, "x:1"], [2, "x:0"], [3, "x:1"]],
        "`added_changes`": [[1, "x:1", "DELETE"]],
    }
