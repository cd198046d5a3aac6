"""A fault at any request to an object store, of Frazil's own and of Spark's connector."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from programs import run_program
from s3_spark import connector

STRIDE = os.environ.get("FRAZIL_FAULT_STRIDE", "1")


@pytest.mark.soak
@pytest.mark.parametrize("io", ["", "hadoop"])
def test_a_fault_at_any_request_leaves_the_whole_change_or_nothing(tmp_path, io):
    """Once, or from one request on; done or not, and a typed error where it is not."""
    settings = {"spark.jars.packages": connector()}
    program = Path(__file__).with_name("store_faults.py")
    printed = run_program(program, tmp_path, json.dumps(settings), io, STRIDE)
    found = [json.loads(line) for line in printed.splitlines() if line.startswith("[")]
    print(found)
    assert len(found) == 9
    assert all(sum(outcomes.values()) > 1 for _, outcomes in found)
