"""Rows of `slopes` that want another heap are measured by a process of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bench import slopes
from bench.context import Context
from bench.figures import Figure, limit, report, write_json

FIGURES = [limit("held", 1, 2), limit("fallen", 3, 2, unit="MB"), report("told", 4, unit="s")]


def _context(row: int | None) -> Context:
    nobody: Any = None
    return Context(nobody, nobody, Path(), rows=1, row=row)


def _here(context: Context) -> Iterator[Figure]:
    yield report("here", 1, unit="s")


@pytest.fixture(autouse=True)
def _two_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slopes, "ROWS", {1: _here, 2: _here})
    monkeypatch.setattr(slopes, "HEAPS", {2: "1g"})


def test_its_figures_are_among_those_of_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []

    def measure(program: list[str], **options: Any) -> None:
        started.append(program)
        write_json(FIGURES, Path(program[-1]))

    monkeypatch.setattr(slopes.subprocess, "run", measure)
    found = list(slopes.run(_context(None)))
    assert [figure.name for figure in found[:2]] == ["here", "row 1 in all"]
    assert found[2:] == FIGURES
    assert [program[1:7] for program in started] == [
        ["-m", "bench", "--only", "slopes", "--row", "2"]
    ]


def test_a_row_alone_is_measured_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(slopes.subprocess, "run")
    assert [figure.name for figure in slopes.run(_context(2))] == ["here", "row 2 in all"]


def test_a_process_that_measured_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slopes.subprocess, "run", lambda program, **options: None)
    with pytest.raises(RuntimeError, match="row 2 of slopes did not end"):
        list(slopes.run(_context(None)))
