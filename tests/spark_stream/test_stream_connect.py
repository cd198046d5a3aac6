"""Streams over Spark Connect, in a process of their own."""

import json
from pathlib import Path

import pytest

from programs import run_program

pytestmark = pytest.mark.check
PROGRAM = Path(__file__).with_name("connect_stream.py")


def test_each_row_comes_once_over_connect(connect_url, tmp_path):
    said = run_program(PROGRAM, connect_url, tmp_path)
    (line,) = [line for line in said.splitlines() if line.startswith("RESULT ")]
    assert json.loads(line.removeprefix("RESULT ")) == {
        "first": [1, 2, 3],
        "second": [1, 2, 3, 4, 5],
        "last": [1, 2, 3, 4, 5, 6],
        # After the second query ended, while one of another source ran.
        "new_files": 0,
    }
