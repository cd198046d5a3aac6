"""What a figure is, how a pair is timed, how figures are shown."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Bar:
    """What a ratio of ours to theirs must keep to.

    Attributes:
        at_most: the largest ratio ours/theirs that holds, None where none is set.
        at_least: the smallest speed-up theirs/ours that holds, None where none is set.
    """

    at_most: float | None = None
    at_least: float | None = None

    def __str__(self) -> str:
        if self.at_most is not None:
            return f"≤ {self.at_most:g}"
        if self.at_least is not None:
            return f"≥ {self.at_least:g}×"
        return "reported"

    def holds(self, ours: float, theirs: float) -> bool:
        """Whether the pair keeps to the bar."""
        if self.at_most is not None:
            return ours / theirs <= self.at_most
        if self.at_least is not None:
            return theirs / ours >= self.at_least
        return True


REPORTED = Bar()


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the report.

    Attributes:
        name: what was measured.
        against: the other side.
        ours: our median, in `unit`.
        theirs: the other side's median, in `unit`; None for a figure without another side.
        unit: seconds, MB or commits a second.
        bar: what must hold.
        ratio: ours to theirs, or theirs to ours where the bar is a speed-up.
        holds: whether the bar holds.
    """

    name: str
    against: str
    ours: float
    theirs: float | None
    unit: str
    bar: str
    ratio: float | None
    holds: bool


def compare(
    name: str, against: str, ours: float, theirs: float, bar: Bar, *, unit: str = "s"
) -> Figure:
    """A figure of a measured pair."""
    ratio = theirs / ours if bar.at_least is not None else ours / theirs
    return Figure(name, against, ours, theirs, unit, str(bar), ratio, bar.holds(ours, theirs))


def limit(name: str, ours: float, at_most: float, *, unit: str = "s") -> Figure:
    """A figure with an absolute bar."""
    return Figure(name, "limit", ours, None, unit, f"≤ {at_most:g} {unit}", None, ours <= at_most)


def at_least(name: str, ours: float, bar: float, *, unit: str) -> Figure:
    """A figure with an absolute bar that it must reach."""
    return Figure(name, "limit", ours, None, unit, f"≥ {bar:g} {unit}", None, ours >= bar)


def report(
    name: str, ours: float, *, unit: str, against: str = "", theirs: float | None = None
) -> Figure:
    """A figure without a bar."""
    ratio = ours / theirs if theirs else None
    return Figure(name, against, ours, theirs, unit, "reported", ratio, True)


def interleaved(
    sides: Mapping[str, Callable[[], object]], *, rounds: int = 5, warm: int = 1
) -> dict[str, float]:
    """The median seconds of each side, run in turns so that noise meets all of them.

    The order turns round each time: what runs second never always runs second.
    """
    names = list(sides)
    times: dict[str, list[float]] = {name: [] for name in names}
    for index in range(rounds + warm):
        order = names if index % 2 == 0 else names[::-1]
        for name in order:
            started = time.perf_counter()
            sides[name]()
            took = time.perf_counter() - started
            if index >= warm:
                times[name].append(took)
    return {name: statistics.median(values) for name, values in times.items()}


def line(figure: Figure) -> str:
    """A figure as a line: name, ours, theirs, ratio, bar, whether it holds."""
    theirs = f"{figure.theirs:9.3f} {figure.unit}" if figure.theirs is not None else " " * 11
    ratio = f"{figure.ratio:8.2f}" if figure.ratio is not None else " " * 8
    verdict = "" if figure.bar == "reported" else ("holds" if figure.holds else "FALLS SHORT")
    return (
        f"{figure.name:<44} {figure.against:<14} {figure.ours:9.3f} {figure.unit} "
        f"{theirs} {ratio}  {figure.bar:<10} {verdict}"
    )


def write_json(figures: Sequence[Figure], path: Path, *, adds: bool = False) -> None:
    """The same figures as one JSON document.

    Args:
        adds: figures that the document has under other names stay, before these.
    """
    found = [asdict(figure) for figure in figures]
    if adds and path.exists():
        ours = {(each["name"], each["against"]) for each in found}
        before = json.loads(path.read_text())
        found = [each for each in before if (each["name"], each["against"]) not in ours] + found
    path.write_text(json.dumps(found, indent=2) + "\n")
