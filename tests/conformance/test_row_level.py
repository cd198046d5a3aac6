"""What DELETE, UPDATE and MERGE must do, by the suites of other engines, each case in every way."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from programs import run_program

RUN = Path(__file__).resolve().with_name("run_row_level.py")
CASES = RUN.parents[3] / "shared" / "row_level"

pytestmark = [
    pytest.mark.skipif(not CASES.exists(), reason="the cases of ../shared are not here"),
]


@pytest.mark.soak
def test_every_case_is_right_in_both_modes_and_versions() -> None:
    assert right_cases() >= 4 * 170


def right_cases() -> int:
    """Run cases; the number of those that are right, when none is wrong."""
    printed = run_program(RUN, "frazil", seconds=7200)
    wrong = [line for line in printed.splitlines() if line.startswith("wrong")]
    assert not wrong, "\n".join(wrong)
    said = re.search(r"^(\d+) right, 0 wrong", printed, re.MULTILINE)
    assert said, printed[-2000:]
    return int(said[1])
