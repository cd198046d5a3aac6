"""What of ours Spark calls raises something unexpected: the client is told, and can go on."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
from failing_program import FAILS
from test_catalog_lasting import variables

from programs import free_port, run_program


@pytest.mark.check
def test_an_unexpected_error_is_told_and_the_next_statement_runs(tmp_path):
    """Over Connect, JDBC, and by an attached session; nothing hangs."""
    program = Path(__file__).with_name("failing_program.py")
    ports = free_port(), free_port()
    said = run_program(program, *ports, cwd=tmp_path, variables=variables(tmp_path), seconds=300)
    found = [json.loads(line) for line in said.splitlines()]
    faces = ("Connect", "JDBC", "attached")
    assert [each[:2] for each in found] == [[face, name] for face in faces for name in FAILS]
    for face, name, error, after in found:
        assert "KeyError: 'the key that is missing'" in (error or ""), (face, name, error)
        assert [str(row[0]) for row in ast.literal_eval(after)] == ["1"], (face, name)
