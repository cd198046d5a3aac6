"""The same methods over Spark Connect, where they are those of other classes."""

from pathlib import Path

import pytest

from programs import run_program

PROGRAM = Path(__file__).with_name("attached_connect_program.py")

pytestmark = pytest.mark.check


def test_the_same_methods(tmp_path, connect_url):
    assert run_program(PROGRAM, tmp_path / "lake", connect_url).split() == ["right"]
