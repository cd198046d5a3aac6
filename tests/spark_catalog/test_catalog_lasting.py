"""What is left of many statements of one session."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from programs import free_port, run_program

HERE = Path(__file__).parent
CACHES = ("MANIFESTS", "FOOTERS", "READS", "METADATA")
OF_NO_SPARK = {key: None for key in os.environ if key.startswith(("SPARK_", "PYSPARK_"))}
STATEMENTS = int(os.environ.get("FRAZIL_STATEMENTS", "1200"))


def variables(folder):
    """The lake of a program."""
    return {
        "FRAZIL_CATALOG__LAKE__URI": f"sqlite:///{folder}/catalog.db",
        "FRAZIL_CATALOG__LAKE__WAREHOUSE": str(folder / "lake"),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


@pytest.mark.soak
def test_many_statements_leave_both_processes_as_they_were(tmp_path):
    """Objects of Python that Spark may call, and the memory of both, do not grow with them."""
    marks = [STATEMENTS // 4, STATEMENTS // 2, STATEMENTS]
    # What is kept of each snapshot has a bound of its own, which is met late by default.
    small = {f"FRAZIL_CATALOG__LAKE__CACHE__{name}_BYTES": "500000" for name in CACHES}
    program, growth = HERE / "lasting_program.py", {}
    for kind in ("lake", "plain"):
        folder = tmp_path / kind
        folder.mkdir()
        said = run_program(
            program, kind, *marks, cwd=folder, variables=variables(folder) | small, seconds=14_400
        )
        _, half, whole = map(json.loads, said.splitlines())
        print(kind, half, whole)
        growth[kind] = {name: whole[name] - half[name] for name in whole}
    thousands = growth["lake"]["statements"] / 1000
    assert growth["lake"]["objects"] <= 20
    assert growth["lake"]["python"] <= 5 + thousands / 4
    # Spark itself keeps something of a statement.
    assert growth["lake"]["java"] <= growth["plain"]["java"] + 5 + thousands / 4


@pytest.mark.soak
def test_many_statements_of_clients_leave_the_server_as_it_was(server, client, tmp_path):
    """Spark runs each statement on a thread of its own, which calls Python."""
    port = free_port()
    with server(tmp_path, "--connect", port) as running:
        place = Path(f"/proc/{running.process.pid}")

        def held_after(*statements):
            steps = tmp_path / "steps.json"
            steps.write_text(json.dumps(statements))
            run_program(client, port, steps, cwd=tmp_path, variables=OF_NO_SPARK, seconds=14_400)
            return {name: len(list((place / name).iterdir())) for name in ("task", "fd")}

        held_after("CREATE NAMESPACE lake.db", "CREATE TABLE lake.db.t AS SELECT 1 AS id")
        query = "SELECT id FROM lake.db.t WHERE id = 1"
        first = held_after(*[query] * (STATEMENTS // 4))
        last = held_after(*[query] * STATEMENTS)
    assert {name: count - first[name] < 64 for name, count in last.items()} == {
        "task": True,
        "fd": True,
    }, (first, last)
