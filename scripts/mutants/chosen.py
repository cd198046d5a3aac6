"""A plugin of pytest that runs chosen cases in a given order, and tells of each what became of it.

The environment variable `FRAZIL_CHOSEN` names a file of JSON: `ids` to run, `known` ids (cases that
are not among these run first; null: none of them), and the file `told` to which a line of JSON goes
for each event.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ci_share import circle_of

_CHOSEN: dict[str, Any] = json.loads(Path(os.environ["FRAZIL_CHOSEN"]).read_text())
_CIRCLES: dict[str, str] = {}


def _tell(**event: Any) -> None:
    with Path(_CHOSEN["told"]).open("a") as told:
        told.write(json.dumps(event) + "\n")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the chosen ones, in their order."""
    for item in items:
        _CIRCLES[item.nodeid] = circle_of([mark.name for mark in item.iter_markers()])
    places = {id: place for place, id in enumerate(_CHOSEN["ids"])}
    if _CHOSEN["known"] is not None:
        known = {*_CHOSEN["known"], *(id for id, name in _CIRCLES.items() if name == "soak")}
        places = dict.fromkeys(_CIRCLES.keys() - known, -1) | places
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in places])
    items[:] = [item for item in items if item.nodeid in places]
    items.sort(key=lambda item: places[item.nodeid])


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """A module that cannot be imported."""
    if report.failed:
        _tell(failed=report.nodeid, circle="test")


def pytest_runtest_logstart(nodeid: str) -> None:
    """A case begins."""
    _tell(began=nodeid)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """A phase of a case ended."""
    if report.failed:
        _tell(failed=report.nodeid, circle=_CIRCLES[report.nodeid])
