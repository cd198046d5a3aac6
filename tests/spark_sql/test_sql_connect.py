"""The statements over Spark Connect, where sqlglot finds the names of tables."""

from pathlib import Path

import pytest

from ci_share import only_in_soak
from programs import run_program

pytestmark = pytest.mark.check

PROGRAM = Path(__file__).with_name("connect_program.py")
BESIDE_PLAIN = Path(__file__).with_name("plain_connect_program.py")


@pytest.mark.parametrize(
    "names",
    [
        only_in_soak(["rows.test"]),
        only_in_soak(["overwrites.test", "definitions.test", "views.test", "functions.test"]),
    ],
    ids=",".join,
)
def test_the_same_statements(tmp_path, connect_url, names):
    assert run_program(PROGRAM, tmp_path, connect_url, *names).split() == ["right"]


def test_the_same_rows_as_plain_spark(tmp_path, connect_url):
    assert run_program(BESIDE_PLAIN, tmp_path, connect_url).strip().splitlines() == ["right"]
