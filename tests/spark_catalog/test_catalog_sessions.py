"""Sessions of a server's clients: what is left of them when they go."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pyspark
import pytest

from programs import Program, run_program

pytestmark = [
    pytest.mark.check,
    pytest.mark.skipif(pyspark.__version__ < "4.3", reason="it serves no Connect"),
]


def test_nothing_is_kept_of_a_session_that_is_closed(tmp_path):
    """Its transaction is not committed, others go on, and a copy of a session is one of its own."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    variables = {
        "FRAZIL_CATALOG__LAKE__URI": f"sqlite:///{tmp_path}/catalog.db",
        "FRAZIL_CATALOG__LAKE__WAREHOUSE": str(tmp_path / "lake"),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    program = Path(__file__).with_name("sessions_program.py")
    said = run_program(program, port, cwd=tmp_path, variables=variables)
    assert said.splitlines() == ["kept 4", "kept 4", "kept 1", "freed True", "rows 1", "rows 2"]


def test_a_client_that_is_killed_has_committed_nothing(served, client, tmp_path):
    """Its transaction is open; the next client sees the table as it was."""

    def steps(*does):
        place = tmp_path / f"{len(does)}.json"
        place.write_text(json.dumps(does))
        return place

    left_out = {key: None for key in os.environ if key.startswith(("SPARK_", "PYSPARK_"))}
    killed = steps(
        "CREATE NAMESPACE lake.killed",
        "CREATE TABLE lake.killed.t (id BIGINT)",
        "INSERT INTO lake.killed.t VALUES (1)",
        "USE lake",
        "BEGIN",
        "INSERT INTO lake.killed.t VALUES (2)",
        "SELECT count(*) FROM lake.killed.t",
        "py:__import__('time').sleep(600)",
    )
    with Program(client, served.connect, killed, cwd=tmp_path, variables=left_out) as running:
        running.wait_until(lambda: len(running.lines) == 7)
        assert json.loads(running.lines[-1]) == [[2]]
    after = steps("SELECT id FROM lake.killed.t", "INSERT INTO lake.killed.t VALUES (3)")
    said = run_program(client, served.connect, after, cwd=tmp_path, variables=left_out)
    assert [json.loads(line) for line in said.splitlines()] == [[[1]], []]
