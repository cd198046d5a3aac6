"""Tables read over Spark Connect, in processes of their own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from programs import run_program

HERE = Path(__file__).parent


@pytest.mark.check
def test_deletes_apply_over_connect(connect_url: str, tmp_path: Path) -> None:
    said = run_program(HERE / "connect_deletes.py", connect_url, tmp_path)
    (line,) = [line for line in said.splitlines() if line.startswith("RESULT ")]
    found = json.loads(line.removeprefix("RESULT "))
    left = [[0, "a"], [1, "b"], [2, "a"], [4, "a"], [5, "b"], [7, "b"], [8, "a"]]
    assert found == {
        "rows": left,
        "filtered": [7, 8],
        "joined": len(left),
        "deleted": [-1, 1, 3, 6],
        "resolved": left,
        "kept": left,
    }
