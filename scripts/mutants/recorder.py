"""A plugin of pytest that writes down which case ran which line, and how long each took.

The environment variable `FRAZIL_RECORD` names the files: `….lines` is coverage.py's, with the
case's id as context, `….cases` has a line of JSON a case. Python workers and other processes are
not seen.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import coverage
import pytest

from ci_share import circle_of
from mutants.cases import SERVERS

_PATH = Path(os.environ["FRAZIL_RECORD"])
_SOURCE = Path("src/frazil").resolve()
# Begins with the plugin: what is imported along with conftest.py is measured too.
_COVERAGE = coverage.Coverage(
    data_file=str(_PATH.with_suffix(".lines")), source=[str(_SOURCE)], config_file=False
)
_COVERAGE.start()
_CACHED = type(cache(len))
_CASES: list[str] = []
_PHASES: dict[str, float] = {}
_BAD: list[str] = []


def _forget() -> None:
    """Empty the caches of pure functions: who asks for a value again would not run its lines."""
    for name, module in tuple(sys.modules.items()):
        if name.startswith("frazil.format"):
            for value in tuple(vars(module).values()):
                if isinstance(value, _CACHED):
                    value.cache_clear()


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """One case: its lines have its id."""
    _forget()
    _COVERAGE.switch_context(item.nodeid)
    _PHASES.clear()
    _BAD.clear()
    yield
    marks = [mark.name for mark in item.iter_markers()]
    fixtures: list[str] = getattr(item, "fixturenames", [])
    case = {
        "id": item.nodeid,
        "circle": circle_of(marks),
        "seconds": round(_PHASES.get("call", 0.0) + min(_PHASES.get("setup", 0.0), 2.0), 3),
        "server": bool(SERVERS & {*marks, *fixtures}),
        "passed": not _BAD and "call" in _PHASES,
    }
    _CASES.append(json.dumps(case))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """What became of a phase of the case."""
    _PHASES[str(report.when)] = report.duration
    if report.outcome != "passed":
        _BAD.append(report.outcome)


def pytest_sessionfinish() -> None:
    """The files are written; the cases' last, which says that both are whole."""
    _COVERAGE.switch_context("")
    _COVERAGE.stop()
    _COVERAGE.save()
    _PATH.with_suffix(".cases").write_text("".join(f"{case}\n" for case in _CASES))
