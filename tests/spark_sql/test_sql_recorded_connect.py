"""The recorded statements over Spark Connect, by `lake.sql` and by an attached session."""

from __future__ import annotations

from pathlib import Path

import pytest
from sql_cases import RECORDED

from ci_share import only_in_soak
from connect_server import run_program

PROGRAM = Path(__file__).with_name("recorded_connect_program.py")
FILES = sorted(path.name for path in RECORDED.glob("*.test"))


@pytest.mark.parametrize(
    ("way", "names"),
    [
        ("lake", FILES[1::6]),
        ("attached", FILES[4::6]),
        only_in_soak("lake", FILES),
        only_in_soak("attached", FILES),
    ],
    ids=["lake", "attached", "lake all", "attached all"],
)
def test_over_connect(tmp_path, connect_url, way, names):
    said = run_program(PROGRAM, tmp_path, connect_url, way, *names)
    assert said.split() == ["right"], said
