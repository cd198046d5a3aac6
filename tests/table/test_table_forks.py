"""Processes forked from one that worked on tables: Polars' threads do not live on there."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from fork_program import DONE, REFUSED
from table_cases import data_file, make_table, open_catalog

from programs import run_program

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
    printed = run_program(PROGRAM, folder, before, method, use, code=outcome, seconds=60)
    if outcome == REFUSED:
        assert "UnsupportedError process " in printed
        assert "'spawn'" in printed
