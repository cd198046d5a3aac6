"""Processes forked from one that worked on tables: Polars' threads do not live on there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fork_program import DONE, REFUSED
from table_cases import data_file, make_table, open_catalog

PROGRAM = Path(__file__).with_name("fork_program.py")
ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="threads have names in /proc")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    table = make_table(open_catalog("sql", tmp_path))
    table.files.append([data_file("a")])
    return tmp_path


@pytest.mark.skipif(sys.platform == "win32", reason="there are no forks")
@pytest.mark.parametrize(
    ("before", "method", "use", "outcome"),
    [
        ("plan", "fork", "plan", REFUSED),
        pytest.param("plan", "fork", "inspect", REFUSED, marks=pytest.mark.soak),
        ("plan", "fork", "rewrite", REFUSED),
        ("plan", "spawn", "plan", DONE),
        ("nothing", "fork", "plan", DONE),
        pytest.param("polars", "fork", "plan", REFUSED, marks=ON_LINUX),
    ],
)
def test_a_child_works_or_is_told_at_once(
    folder: Path, before: str, method: str, use: str, outcome: int
) -> None:
    command = [sys.executable, str(PROGRAM), str(folder), before, method, use]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, env=environment
    )
    assert done.returncode == outcome, done.stderr
    if outcome == REFUSED:
        assert "UnsupportedError process " in done.stdout
        assert "'spawn'" in done.stdout
