"""What a run of the tests says at its end: seconds of each circle, failures, what was skipped."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from ci_share import circle_of

ROOT = Path(__file__).resolve().parent.parent
_SLOWEST = 5


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the seconds of each circle by folder, and how to run alone what failed."""
    reports = [
        report
        for kind in ("passed", "failed", "error", "skipped", "xfailed", "xpassed", "")
        for report in terminalreporter.stats.get(kind, ())
        if isinstance(report, pytest.TestReport)
    ]
    if not reports:
        return
    for line in (*seconds_of_circles(reports), *skips(reports), *commands_of_failures(reports)):
        terminalreporter.write_line(line)


def seconds_of_circles(reports: list[Any]) -> list[str]:
    """A line a circle: its cases, its seconds, and the folders that take the most."""
    seconds: dict[str, Counter[str]] = defaultdict(Counter)
    cases: dict[str, set[str]] = defaultdict(set)
    for report in reports:
        circle = circle_of(report.keywords)
        seconds[circle][folder_of(report.nodeid)] += report.duration
        cases[circle].add(report.nodeid)
    return [
        f"{circle}: {len(cases[circle])} cases, {sum(folders.values()):.0f} s of all processes: "
        + ", ".join(f"{folder} {time:.0f}" for folder, time in folders.most_common(_SLOWEST))
        for circle, folders in seconds.items()
    ]


def folder_of(nodeid: str) -> str:
    """The folder of a case, without the root of all tests."""
    parts = nodeid.split("::")[0].split("/")
    return "/".join(parts[1:-1]) or parts[0]


def skips(reports: list[Any]) -> list[str]:
    """A line a reason for which cases were skipped, with their number."""
    reasons = Counter(
        str(report.longrepr[2]).removeprefix("Skipped: ")
        for report in reports
        if report.skipped and isinstance(report.longrepr, tuple)
    )
    return [f"skipped {count}: {reason}" for reason, count in reasons.most_common()]


def commands_of_failures(reports: list[Any]) -> list[str]:
    """For each case that failed its circle, and the command that runs it alone."""
    python = Path(sys.executable)
    program = python.relative_to(ROOT) if python.is_relative_to(ROOT) else python
    return [
        f"failed in {circle_of(report.keywords)}: {program} -m pytest '{report.nodeid}'"
        for report in reports
        if report.failed
    ]
