"""A model of what operations cost by the number of files, snapshots, columns and writers.

Each cost is a sum of what the size has no part in and of what grows with it: terms that cannot be
less than nothing, fitted to the three smaller sizes of `bench/results/costs.json` by their relative
errors. `python -m bench.cost_model` shows the largest size that was measured beside what the model
says of it, and where the next wall stands.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Final

import numpy as np

RESULTS: Final = Path(__file__).parent / "results" / "costs.json"
WHAT: Final = ("requests", "bytes", "seconds", "memory")
MOST_WRONG: Final = 0.25
"""So far off the model may be at the largest size, as a share of what was measured."""
LEAST: Final[Mapping[str, float]] = {"requests": 1, "bytes": 1, "seconds": 0.01, "memory": 8.0}
"""Less than that is not told from nothing: seconds of CPU, of which medians of the same step are
some thousandths apart from process to process, and MB, of which the allocators of a process with
a dozen threads take some at once."""
FAR: Final = {"files": 100_000_000, "snapshots": 1_000_000, "columns": 100_000, "writers": 1_000}
WALLS: Final[Mapping[str, float]] = {"seconds": 60.0, "memory": 4_096.0}
"""What a driver of two cores and 4 GB is not asked for."""
_POWERS: Final = (0, 1)


@dataclass(frozen=True, slots=True)
class Measured:
    """What an operation cost at one size.

    Attributes:
        operation: what was done.
        by: what the size is a number of.
        size: the number.
        requests, bytes: of the store, both ways.
        seconds: of CPU.
        memory: MB above what was there.
    """

    operation: str
    by: str
    size: int
    requests: float
    bytes: float
    seconds: float
    memory: float


@dataclass(frozen=True, slots=True)
class Growth:
    """A cost as a sum of powers of the size.

    Attributes:
        terms: by the power, what it is taken times.
    """

    terms: Mapping[int, float]

    def at(self, size: float) -> float:
        """What it costs at a size."""
        return sum(factor * size**power for power, factor in self.terms.items())

    def size_of(self, cost: float) -> float | None:
        """The size from which on it costs so much; None where it never does."""
        low, high = 1.0, 1e15
        if self.at(high) < cost:
            return None
        while high / low > 1.001:
            middle = (low * high) ** 0.5
            low, high = (middle, high) if self.at(middle) < cost else (low, middle)
        return high


def fitted(sizes: Sequence[float], costs: Sequence[float]) -> Growth:
    """Return the growth that is nearest to the costs, by relative errors.

    Of sums that are about as near, the one of fewer and lower powers is taken.
    """
    at, told = np.asarray(sizes, dtype=float), np.asarray(costs, dtype=float)
    weights = 1 / np.maximum(told, told.max() / 1_000 or 1.0)
    best, terms = np.inf, {0: 0.0}
    for count in range(1, len(_POWERS) + 1):
        for powers in combinations(_POWERS, count):
            columns = np.stack([at**power for power in powers], axis=1) * weights[:, None]
            scale = np.abs(columns).max(axis=0)
            factors, *_ = np.linalg.lstsq(columns / scale, told * weights, rcond=None)
            error = float(np.abs(columns / scale @ factors - told * weights).max())
            # A term more has to explain something.
            if (factors >= 0).all() and error < best - 0.02:
                pairs = zip(powers, factors / scale, strict=True)
                best, terms = error, {power: float(factor) for power, factor in pairs}
    return Growth(terms)


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the model says of an operation, fitted to all sizes but the largest.

    Attributes:
        operation, by: as of `Measured`.
        what: requests, bytes, seconds or memory.
        growth: the model.
        size: the largest that was measured.
        measured: what it cost there.
    """

    operation: str
    by: str
    what: str
    growth: Growth
    size: int
    measured: float

    @property
    def predicted(self) -> float:
        """What the model says that it costs there."""
        return self.growth.at(self.size)

    @property
    def error(self) -> float:
        """How far that is off, as a share; what is hardly anything counts as `LEAST`."""
        least = LEAST[self.what]
        measured = max(self.measured, least)
        return abs(max(self.predicted, least) - measured) / measured


def measured(path: Path = RESULTS) -> list[Measured]:
    """Return what was measured."""
    return [Measured(**each) for each in json.loads(path.read_text())]


def predictions(found: Iterable[Measured]) -> Iterator[Prediction]:
    """Yield what the model says of each cost at its largest size."""
    series: dict[tuple[str, str], list[Measured]] = {}
    for each in found:
        series.setdefault((each.operation, each.by), []).append(each)
    for (operation, by), rows in series.items():
        *small, last = sorted(rows, key=lambda each: each.size)
        for what in WHAT:
            growth = fitted([each.size for each in small], [getattr(each, what) for each in small])
            yield Prediction(operation, by, what, growth, last.size, getattr(last, what))


def walls(found: Iterable[Measured]) -> Iterator[tuple[str, str, str, float, float | None]]:
    """Yield where costs stand far away, by a fit to every size.

    Yields:
        the operation, what its size is a number of, the cost, what it is at `FAR`, and the size
        from which on it is above `WALLS`.
    """
    series: dict[tuple[str, str], list[Measured]] = {}
    for each in found:
        series.setdefault((each.operation, each.by), []).append(each)
    for (operation, by), rows in series.items():
        for what in WHAT:
            growth = fitted([each.size for each in rows], [getattr(each, what) for each in rows])
            wall = growth.size_of(WALLS[what]) if what in WALLS else None
            yield operation, by, what, growth.at(FAR[by]), wall


def main() -> None:
    """Show both."""
    found = measured()
    for each in predictions(found):
        name = f"{each.operation}, {each.size:,} {each.by}: {each.what}"
        print(f"{name:<60} {each.predicted:14,.2f} {each.measured:14,.2f} {each.error:6.0%}")
    print()
    for operation, by, what, far, wall in walls(found):
        place = "" if wall is None else f"wall at {wall:,.0f}"
        print(f"{f'{operation}, {FAR[by]:,} {by}: {what}':<60} {far:14,.2f} {place}")


if __name__ == "__main__":
    main()
