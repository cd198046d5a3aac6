"""Every case of what DELETE, UPDATE and MERGE must do, each in one mode and version, turn about."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).resolve().parents[3] / "shared" / "row_level" / "run.py"

pytestmark = pytest.mark.spark


@pytest.mark.skipif(not RUN.exists(), reason="the cases of ../shared are not here")
def test_every_case_is_right_in_one_mode_and_version() -> None:
    ran = subprocess.run(
        [sys.executable, str(RUN), "frazil", "--spread"],
        capture_output=True,
        text=True,
        timeout=1500,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        check=False,
    )
    wrong = [line for line in ran.stdout.splitlines() if line.startswith("wrong")]
    assert not wrong, "\n".join(wrong)
    assert " right" in ran.stdout
    assert ran.returncode == 0, ran.stderr[-2000:]
