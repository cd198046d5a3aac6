"""Statements over Spark Connect, where sqlglot finds the names of tables."""

from pathlib import Path

import pytest
from plain_cases import CASES
from sql_cases import FILES, is_recorded

from ci_share import one_share
from programs import run_program

PROGRAM = Path(__file__).with_name("files_connect_program.py")
BESIDE_PLAIN = Path(__file__).with_name("plain_connect_program.py")
NAMES = ["rows.test", "overwrites.test", "definitions.test", "views.test", "functions.test"]
RECORDS = [name for name in FILES if is_recorded(name)]


@pytest.mark.soak
@pytest.mark.parametrize(
    ("way", "names"), [("cases", NAMES), ("lake", RECORDS), ("attached", RECORDS)]
)
def test_the_same_statements(tmp_path, connect_url, way, names):
    said = run_program(PROGRAM, tmp_path, connect_url, way, *names)
    assert said.split() == ["right"], said


@pytest.mark.check
@pytest.mark.parametrize("share", one_share(3, range(len(CASES))), ids=len)
def test_the_same_rows_as_plain_spark(tmp_path, connect_url, share):
    said = run_program(BESIDE_PLAIN, tmp_path, connect_url, *share)
    assert said.strip().splitlines() == ["right"]
