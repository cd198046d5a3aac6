"""Conditions over Spark Connect, in a process of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from programs import run_program

pytestmark = pytest.mark.soak


def test_conditions_over_connect(connect_url: str) -> None:
    said = run_program(Path(__file__).parent / "connect_conditions.py", connect_url)
    lines = [line for line in said.splitlines() if line.startswith("ROWS")]
    assert lines == [
        "ROWS [0] [1, 2, 3] id < 1L",
        "ROWS [2, 3] [0, 1] TRUE",
        "ROWS [2] [0, 1, 3] g > 1.5D",
        "ROWS [2] [0, 1, 3] TRUE",
        "ROWS [3] [0, 1, 2] id = 3L",
    ]
    refused = [line for line in said.splitlines() if line.startswith("REFUSED")]
    assert len(refused) == 5, said
    assert "there is no column 'nothing'" in refused[0]
