"""The recorded statements over Spark Connect, by `lake.sql` and by an attached session."""

from pathlib import Path

import pytest
from sql_cases import RECORDED, is_recorded

from programs import run_program

PROGRAM = Path(__file__).with_name("recorded_connect_program.py")
FILES = sorted(path.name for path in RECORDED.glob("*.test"))


@pytest.mark.soak
@pytest.mark.parametrize("way", ["lake", "attached"])
def test_over_connect(tmp_path, connect_url, way):
    names = [name for name in FILES if is_recorded(name)]
    said = run_program(PROGRAM, tmp_path, connect_url, way, *names)
    assert said.split() == ["right"], said
