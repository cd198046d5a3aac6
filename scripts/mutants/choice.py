"""The cases that are to find a fault."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from math import inf
from pathlib import PurePath

from mutants.cases import CIRCLES, Case
from mutants.record import Record
from mutants.sequence import room
from mutants.sites import Site
from rooms import tests_of

MOST_CASES = 300
MOST_SECONDS = 100.0
"""So many cases, and as long as these took once, run for one fault."""
SECONDS_OF_A_ROOM = 40.0
"""The same where the record does not tell which case came by."""
BY_ROOM = "its room"
TIMES_AGAIN = 2.5
"""So much longer others run for a fault that the first cases did not find."""
OTHER_ROOMS = 6
"""A line that each scan runs is looked at by the tests of its room, not by those of scans."""
SECONDS_OF_A_SERVER = 8.0
"""What the start of Spark takes."""


@dataclass(frozen=True)
class Choice:
    """Cases in the order in which they run, of how many, and how these were found.

    Attributes:
        later: cases that run where none of `cases` finds the fault.
    """

    cases: tuple[Case, ...]
    later: tuple[Case, ...]
    of: int
    by: str

    @property
    def of_room(self) -> bool:
        """Whether the record knows no case that came by."""
        return self.by == BY_ROOM

    @classmethod
    def among(cls, cases: Collection[Case], near: Nearness, seconds: float, *, by: str) -> Choice:
        """What runs of these cases: the likeliest, and the next of them."""
        first = ordered(cases, near, seconds)
        rest = {*cases}.difference(first)
        return cls(first, ordered(rest, near, TIMES_AGAIN * seconds), len(cases), by)


def choose(record: Record, site: Site, modules: Mapping[str, frozenset[int]]) -> Choice:
    """The cases for a place: those that ran its line, or else some that came near it.

    A line that a worker or another process ran was run by no case that the record knows, and a line
    outside of functions by whichever case imported it first.

    Args:
        modules: the lines inside functions of each module, by its path.
    """
    inside = modules[site.path]
    near = Nearness(
        record.counts(site.path, inside), frozenset(path.name for path in tests_of(room(site)))
    )
    if site.line in inside and (cases := record.cases_of(site.path, [site.line])):
        return Choice.among(cases, near, MOST_SECONDS, by="its line")
    cases = record.cases_of(site.path, inside)
    if cases and not site.function:
        return Choice.among(cases, near, MOST_SECONDS, by="its module")
    of_room = [case for case in record.cases.values() if near.has(case) and case.circle in CIRCLES]
    both = {*cases, *of_room}
    return Choice.among(both, near, SECONDS_OF_A_ROOM, by=BY_ROOM)


@dataclass(frozen=True)
class Nearness:
    """Which cases are about a module.

    Attributes:
        counts: how many lines of the module a case ran, by its id.
        folders: the tests of the module's room.
    """

    counts: Mapping[str, int]
    folders: frozenset[str]

    def has(self, case: Case) -> bool:
        """Whether it is one of the room's tests."""
        return PurePath(case.file).parent.name in self.folders

    def weight(self, case: Case) -> float:
        """The less, the likelier the case looks at what the module does."""
        return (1 if self.has(case) else OTHER_ROOMS) / (self.counts.get(case.id, 0) + 1)


def ordered(cases: Iterable[Case], near: Nearness, seconds: float) -> tuple[Case, ...]:
    """The cases of a few seconds that are likeliest to find a fault; those of `make test` first.

    They run file by file, the quickest first; a server's start counts.
    """
    kept: list[Case] = []
    listed = list(cases)
    for name in CIRCLES:
        for case in _by_worth([case for case in listed if case.circle == name], near):
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


def _by_worth(cases: Iterable[Case], near: Nearness) -> list[Case]:
    """Quick ones that are near the module first, of each file some before more of another."""
    before: Counter[str] = Counter()
    worth: list[tuple[float, str, Case]] = []
    for case in sorted(cases, key=lambda case: (near.weight(case) * (case.seconds + 0.5), case.id)):
        before[case.file] += 1
        cost = before[case.file] * near.weight(case) * (case.seconds + 0.5)
        worth.append((cost, case.id, case))
    return [case for _, _, case in sorted(worth, key=lambda one: one[:2])]


def _whole_seconds(case: Case) -> float:
    return case.seconds + (SECONDS_OF_A_SERVER if case.server else 0.0)
