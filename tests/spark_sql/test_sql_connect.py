"""The statements over Spark Connect, where sqlglot finds the names of tables."""

from __future__ import annotations

from pathlib import Path

from connect_server import run_program

PROGRAM = Path(__file__).with_name("connect_program.py")


def test_the_same_statements(tmp_path, connect_url):
    assert run_program(PROGRAM, tmp_path, connect_url).split() == ["right"]
