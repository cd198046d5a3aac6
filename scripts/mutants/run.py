"""A number of faults, each tried by the cases that came by."""

from __future__ import annotations

import difflib
import os
import queue
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path

from mutants.cases import CIRCLES, Case
from mutants.choice import Choice, choose
from mutants.equivalents import Key, key_of
from mutants.record import Record, inside_functions
from mutants.sequence import room
from mutants.sites import Site, sites_of
from mutants.trees import Tree, trees
from mutants.trial import SECONDS_OF_A_CASE, Verdict, try_cases
from rooms import tests_of

ENOUGH = (11, 12)
"""So many of so many faults are to be found."""


@dataclass(frozen=True)
class Outcome:
    """What became of one fault.

    Attributes:
        by: the case that found it; None where all passed.
        circle: what runs that case.
        how: `failed`, `hung` or `crashed`.
        ran: how many cases began, of `choice`.
    """

    site: Site
    choice: Choice
    by: str | None
    circle: str
    how: str
    ran: int
    seconds: float


@dataclass(frozen=True)
class Run:
    """What faults are tried on.

    Attributes:
        root: the checkout.
        commit: what the copies are made of.
        new_in: files of tests with cases that the record does not know: those of a fault's room try
            it too, where its line is new.
        all_new: each fault is tried by all of `new_in`.
        patience: seconds after which a case hangs that took none once.
        stop: ends what runs when it is set.
    """

    root: Path
    commit: str
    record: Record
    jobs: int
    new_in: Sequence[str] = ()
    all_new: bool = False
    patience: float = SECONDS_OF_A_CASE
    stop: threading.Event = field(default_factory=threading.Event)

    def outcomes(self, sites: Sequence[Site]) -> Iterator[Outcome]:
        """Each fault's outcome as it is known, then once more those that sound code has as well."""
        folder = self.root / ".mutants" / "trees" / str(os.getpid())
        with trees(folder, root=self.root, commit=self.commit, count=self.jobs) as copies:
            self._check_sound(copies)
            done: dict[Site, Outcome] = {}
            for outcome in self._all(copies, sites, frozenset()):
                done[outcome.site] = outcome
                yield outcome
            wrong = self._failing_anyway(copies, done.values())
            again = [site for site, outcome in done.items() if outcome.by in wrong]
            if again:
                print(f"\n{', '.join(sorted(wrong))}: fails without a fault. Without it:")
                yield from self._all(copies, again, wrong)

    def _all(
        self, copies: Sequence[Tree], sites: Sequence[Site], without: frozenset[str]
    ) -> Iterator[Outcome]:
        free: queue.SimpleQueue[Tree] = queue.SimpleQueue()
        for copy in copies:
            free.put(copy)
        lock = threading.Lock()

        def one(site: Site) -> Outcome:
            with lock:
                choice = choose(self.record, site, self._modules())
            copy = free.get()
            try:
                return self._one(copy, site, choice, without)
            finally:
                free.put(copy)

        with ThreadPoolExecutor(len(copies)) as pool:
            started = [pool.submit(one, site) for site in sites]
            try:
                for done in as_completed(started):
                    yield done.result()
            except BaseException:
                self.stop.set()
                pool.shutdown(cancel_futures=True)
                raise

    def _one(self, copy: Tree, site: Site, choice: Choice, without: frozenset[str]) -> Outcome:
        began = time.monotonic()
        cases = [case for case in choice.cases if case.id not in without]
        later = [case for case in choice.later if case.id not in without]
        with copy.broken(site):
            verdict = try_cases(
                copy,
                cases,
                new_in=self._new_in(site, choice),
                known=[*self._known(), *without],
                patience=self.patience,
                stop=self.stop,
            )
            ran = len(verdict.began)
            if verdict.is_good and later and not self.stop.is_set():
                verdict = try_cases(copy, later, patience=self.patience, stop=self.stop)
                ran += len(verdict.began)
        by, circle, how = _found(verdict, [*cases, *later])
        seconds = time.monotonic() - began
        return Outcome(site, choice, by, circle, how, ran, seconds)

    def _new_in(self, site: Site, choice: Choice) -> Sequence[str]:
        if self.all_new:
            return self.new_in
        folders = [path.name for path in tests_of(room(site))] if choice.of_room else []
        return [name for name in self.new_in if Path(name).parent.name in folders]

    def _check_sound(self, copies: Sequence[Tree]) -> None:
        """Run a case in each copy, since all faults would be found where nothing can run."""
        case = min(self.record.cases.values(), key=lambda case: (case.server, case.seconds))
        for copy in copies:
            verdict = try_cases(copy, [case], stop=self.stop)
            if verdict.failed or verdict.crashed or verdict.hung:
                printed = (copy.folder / "printed.txt").read_text()
                raise RuntimeError(f"{case.id} fails without a fault:\n{printed}")

    def _failing_anyway(self, copies: Sequence[Tree], found: Iterable[Outcome]) -> frozenset[str]:
        """Of the cases that found faults, those that fail without one."""
        by = {outcome.by for outcome in found if outcome.by}
        if not by:
            return frozenset()
        verdict = try_cases(
            copies[0],
            [case for id, case in self.record.cases.items() if id in by],
            new_in=sorted({id.partition("::")[0] for id in by.difference(self.record.cases)}),
            known=self._known(),
            all_of_them=True,
            stop=self.stop,
        )
        return frozenset(verdict.failed) & by

    def _modules(self) -> dict[str, frozenset[int]]:
        return _inside(self.root / "src" / "frazil", self.root)

    def _known(self) -> list[str]:
        return [*self.record.cases, *self.record.failed]


_INSIDE: dict[Path, dict[str, frozenset[int]]] = {}


def _inside(source: Path, root: Path) -> dict[str, frozenset[int]]:
    if root not in _INSIDE:
        _INSIDE[root] = {
            path.relative_to(root).as_posix(): frozenset(inside_functions(path.read_text()))
            for path in sorted(source.rglob("*.py"))
        }
    return _INSIDE[root]


def all_sites(root: Path) -> list[Site]:
    """Every place of `src/frazil` that can be broken."""
    return [
        site
        for path in sorted((root / "src" / "frazil").rglob("*.py"))
        for site in sites_of(path.relative_to(root).as_posix(), path.read_bytes())
    ]


def faults(order: Iterable[Site], *, root: Path, listed: Mapping[Key, str]) -> Iterator[Site]:
    """The places in their order; a fault that is none is printed with its reason and left out."""
    for site in order:
        source = (root / site.path).read_bytes()
        if not site.is_python(source):
            continue
        if (why := listed.get(key_of(site, source))) is None:
            yield site
        else:
            print(f"same   {place(site)}: {why}", flush=True)


def _found(verdict: Verdict, cases: Sequence[Case]) -> tuple[str | None, str, str]:
    """The case that found a fault, its circle, and how."""
    if verdict.failed:
        id, circle = next(iter(verdict.failed.items()))
        return id, circle, "failed"
    if verdict.hung or verdict.crashed:
        how = "hung" if verdict.hung else "crashed"
        last = verdict.began[-1] if verdict.began else "the start of the tests"
        circle = next((case.circle for case in cases if case.id == last), CIRCLES[0])
        return last, circle, how
    return None, "", ""


def place(site: Site) -> str:
    """Where a fault is, and its kind."""
    return f"{site.path}:{site.line} {site.kind}"


def difference(site: Site, source: bytes) -> str:
    """The lines that are others, as a diff has them."""
    before, after = source.decode().splitlines(), site.broken(source).decode().splitlines()
    lines = list(difflib.unified_diff(before, after, n=0, lineterm=""))[2:]
    return "\n".join(f"       {line}" for line in lines if not line.startswith("@@"))


def report(outcome: Outcome, *, root: Path) -> str:
    """What is printed of one fault."""
    site, choice = outcome.site, outcome.choice
    seconds = f"{outcome.seconds:.0f} s"
    if outcome.by:
        said = "" if outcome.how == "failed" else f", which {outcome.how}"
        return f"{outcome.circle:6} {place(site)}: {outcome.by}{said} ({seconds})"
    cases = f"{outcome.ran} of {choice.of} cases by {choice.by}, {seconds}"
    return f"LIVES  {place(site)} ({cases})\n{difference(site, (root / site.path).read_bytes())}"


def summary(outcomes: Iterable[Outcome]) -> tuple[str, bool]:
    """How many were found by each circle, and whether these are enough."""
    last = {outcome.site: outcome for outcome in outcomes}
    count = Counter(outcome.circle for outcome in last.values())
    found = sum(count[name] for name in CIRCLES)
    by = ", ".join(f"{count[name]} by `make {name}`" for name in CIRCLES)
    rooms = len({room(site) for site in last})
    text = f"{found} of {len(last)} faults in {rooms} rooms found: {by}; {count['']} live"
    return text, found * ENOUGH[1] >= len(last) * ENOUGH[0]
