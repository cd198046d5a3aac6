"""Sessions of a server's clients: what is left of them when they go."""

from __future__ import annotations

from pathlib import Path

import pyspark
import pytest
from test_catalog_lasting import variables

from programs import free_port, run_program

OVER_CONNECT = ["kept 4", "kept 4", "kept 1", "freed True", "rows 1"]
COPY = "rows none" if pyspark.__version__ < "4.1" else "rows 2"
"""Spark 4.0's clients have no copies of sessions."""
BY_JDBC = ["kept 3", "kept 1", "rows 0 1"]


@pytest.mark.check
def test_nothing_is_kept_of_a_session_that_is_closed_or_killed(tmp_path):
    """Its transaction is not committed, others go on, and a copy of a session is one of its own."""
    program = Path(__file__).with_name("sessions_program.py")
    ports = free_port(), free_port()
    said = run_program(program, *ports, cwd=tmp_path, variables=variables(tmp_path))
    assert said.splitlines() == [*OVER_CONNECT, COPY, *BY_JDBC, "status ok stopped"]
