"""The cases that are to find a fault."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import PurePath

from mutants.cases import CIRCLES, Case
from mutants.record import Record
from mutants.sequence import room
from mutants.sites import Site
from rooms import tests_of

MOST_CASES = 200
MOST_SECONDS = 60.0
"""So many cases, and as long as these took once, run for one fault; the quickest of each file."""
SECONDS_OF_A_ROOM = 30.0
"""The same where the record does not tell which case came by."""


@dataclass(frozen=True)
class Choice:
    """Cases in the order in which they run, of how many, and how these were found."""

    cases: tuple[Case, ...]
    of: int
    by: str


def choose(record: Record, site: Site, modules: Mapping[str, frozenset[int]]) -> Choice:
    """The cases for a place: those that ran its line, or else some that came near it.

    A line that a worker or another process ran was run by no case that the record knows, and a line
    outside of functions by whichever case imported it first.

    Args:
        modules: the lines inside functions of each module, by its path.
    """
    inside = modules[site.path]
    if site.line in inside and (cases := record.cases_of(site.path, [site.line])):
        return Choice(_ordered(cases, MOST_SECONDS), len(cases), "its line")
    if site.function and (cases := record.cases_of(site.path, range(*site.function))):
        return Choice(_ordered(cases, SECONDS_OF_A_ROOM), len(cases), "its function")
    cases = record.cases_of(site.path, inside)
    if cases and not site.function:
        return Choice(_ordered(cases, MOST_SECONDS), len(cases), "its module")
    folders = {f"tests/{path.name}" for path in tests_of(room(site))}
    beside = [
        case for case in record.cases.values() if PurePath(case.file).parent.as_posix() in folders
    ]
    near = {*cases, *(case for case in beside if case.circle in CIRCLES)}
    return Choice(_ordered(near, SECONDS_OF_A_ROOM), len(near), "its room")


def _ordered(cases: Iterable[Case], seconds: float) -> tuple[Case, ...]:
    """The quickest of each file, then the next of each; those of `make test` first.

    They run file by file, those before which no server starts first.
    """
    kept: list[Case] = []
    for name in CIRCLES:
        for case in _in_turn(case for case in cases if case.circle == name):
            if len(kept) < MOST_CASES and case.seconds <= seconds:
                kept.append(case)
                seconds -= case.seconds
    quickest: dict[tuple[str, bool, str], float] = {}
    for case in kept:
        key = (case.circle, case.server, case.file)
        quickest[key] = min(case.seconds, quickest.get(key, case.seconds))

    def turn(case: Case) -> tuple[int, bool, float, str, float]:
        first = quickest[case.circle, case.server, case.file]
        return CIRCLES.index(case.circle), case.server, first, case.file, case.seconds

    return tuple(sorted(kept, key=turn))


def _in_turn(cases: Iterable[Case]) -> Iterable[Case]:
    files: dict[str, list[Case]] = defaultdict(list)
    for case in sorted(cases, key=lambda case: (case.seconds, case.id)):
        files[case.file].append(case)
    return (case for row in zip_longest(*files.values()) for case in row if case)
