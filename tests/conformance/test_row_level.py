"""What DELETE, UPDATE and MERGE must do: one case of each kind, in a soak each in every way."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).resolve().with_name("run_row_level.py")
CASES = RUN.parents[3] / "shared" / "row_level"

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(not CASES.exists(), reason="the cases of ../shared are not here"),
]


def test_a_case_of_each_kind_is_right_in_a_mode_and_version_of_its_own() -> None:
    assert right_cases("--one-of-each-kind", "--spread") >= 30


@pytest.mark.soak
def test_every_case_is_right_in_both_modes_and_versions() -> None:
    assert right_cases() >= 4 * 170


def right_cases(*arguments: str) -> int:
    """Run cases; the number of those that are right, when none is wrong."""
    ran = subprocess.run(
        [sys.executable, str(RUN), "frazil", *arguments],
        capture_output=True,
        text=True,
        timeout=7200,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        check=False,
    )
    wrong = [line for line in ran.stdout.splitlines() if line.startswith("wrong")]
    assert not wrong, "\n".join(wrong)
    assert ran.returncode == 0, ran.stderr[-2000:]
    said = re.search(r"^(\d+) right, 0 wrong", ran.stdout, re.MULTILINE)
    assert said, ran.stdout[-2000:]
    return int(said[1])
