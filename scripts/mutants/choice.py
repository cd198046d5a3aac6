"""The cases that are to find a fault."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf
from pathlib import PurePath

from mutants.cases import CIRCLES, Case
from mutants.record import Record
from mutants.sequence import room
from mutants.sites import Site
from rooms import tests_of

MOST_CASES = 200
MOST_SECONDS = 60.0
"""So many cases, and as long as these took once, run for one fault; the quickest of each file."""
SECONDS_OF_A_SERVER = 8.0
"""What the start of Spark takes."""
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

    They run file by file, the quickest first; a server's start counts.
    """
    kept: list[Case] = []
    for name in CIRCLES:
        for case in _in_turn(case for case in cases if case.circle == name):
            if len(kept) < MOST_CASES and case.seconds <= seconds:
                kept.append(case)
                seconds -= case.seconds
    quickest: dict[tuple[str, str], float] = {}
    for case in kept:
        key = (case.circle, case.file)
        quickest[key] = min(_whole_seconds(case), quickest.get(key, inf))

    def turn(case: Case) -> tuple[int, float, str, float]:
        first = quickest[case.circle, case.file]
        return CIRCLES.index(case.circle), first, case.file, _whole_seconds(case)

    return tuple(sorted(kept, key=turn))


def _whole_seconds(case: Case) -> float:
    return case.seconds + (SECONDS_OF_A_SERVER if case.server else 0.0)


def _in_turn(cases: Iterable[Case]) -> Iterable[Case]:
    """Each file's quickest, before its next; a slow one stands behind some quick ones of a file."""
    before: Counter[str] = Counter()
    turns: list[tuple[float, str, Case]] = []
    for case in sorted(cases, key=lambda case: (case.seconds, case.id)):
        before[case.file] += 1
        turns.append((before[case.file] * (case.seconds + 0.5), case.id, case))
    return [case for _, _, case in sorted(turns, key=lambda turn: turn[:2])]
