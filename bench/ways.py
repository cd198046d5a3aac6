"""`python -m bench.ways SENT_KEYS`: what the two ways of a figure of `costs` take, at its own size.

And at six times that, or at `--times` so much (1: at its own alone); `--size` measures one other.
The scenarios are those by which `tests/spark_costs` shows that both ways give the same rows. Each
way runs three times, in turns, on tables that are made anew or known to nobody. A line of JSON a
size tells the medians, and `bench/results/ways.json` keeps it. Without a name the figures are
listed.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame
from tests.spark_costs import changing_ways, reading_ways
from tests.spark_costs.ways import Case, Figures, Place, Sized, set_figures

import frazil
from bench.context import run_all
from bench.sessions import start
from frazil.spark.session import costs

RESULTS: Final = Path(__file__).with_name("results") / "ways.json"
RUNS: Final = 3

SIZED: Final[Mapping[str, tuple[Case, Sized]]] = {
    name: (case, sized)
    for case in (*reading_ways.CASES, *changing_ways.CASES)
    for name, sized in case.figures.items()
    if sized is not None
}
"""The figures whose scenario has a size, with it."""


def main() -> None:
    """Measure and write; see the module's text."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--times", type=int, default=6, help="the second size, in the figure's own")
    parser.add_argument("--size", type=int, help="in place of both sizes")
    asked = parser.parse_args()
    if not asked.names:
        print(*SIZED)
        return
    folder = Path(tempfile.mkdtemp(prefix="frazil-bench-"))
    spark = start(folder, memory="4g")
    try:
        with frazil.connect(spark, warehouse=str(folder / "lake")) as lake:
            lake.create_namespace("db")
            place = Place(lake, folder)
            for name in asked.names:
                own = _own(name)
                both = dict.fromkeys((own, own * asked.times))
                for size in [asked.size] if asked.size else both:
                    told = measured(place, name, size)
                    print(json.dumps(told), flush=True)
                    _keep({**told, "spark": spark.version})
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


def measured(place: Place, name: str, size: int) -> dict[str, Any]:
    """The medians of both ways where there is so much of what a figure counts."""
    case, sized = SIZED[name]
    arguments = {**case.arguments, **sized(size)}
    sides = {"up to it": case.up_to, "beyond it": case.beyond(name)}
    taken: dict[str, list[float]] = {side: [] for side in sides}
    # The first round warms up Spark, Python and the disk.
    for turn in range(RUNS + 1):
        for side in list(sides)[:: 1 if turn % 2 else -1]:
            seconds = _seconds(place, case, arguments, sides[side])
            if turn:
                taken[side].append(seconds)
    here, there = (statistics.median(each) for each in taken.values())
    return {
        "figure": name,
        "own": _own(name),
        "size": size,
        "up_to": round(here, 3),
        "beyond": round(there, 3),
        "ratio": round(here / there, 3),
    }


def _seconds(place: Place, case: Case, arguments: Mapping[str, Any], figures: Figures) -> float:
    work = case.scenario(place, **arguments)
    with _set(figures):
        started = time.perf_counter()
        done = work.run()
        if isinstance(done, DataFrame):
            run_all(done)
        return time.perf_counter() - started


@contextmanager
def _set(figures: Figures) -> Iterator[None]:
    """Set figures for a while."""
    before: list[tuple[Any, str, Any]] = []

    def put(module: Any, name: str, value: Any) -> None:
        before.append((module, name, getattr(module, name)))
        setattr(module, name, value)

    try:
        set_figures(figures, put)
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)


def _own(name: str) -> int:
    value = getattr(costs, name)
    return int(value.here if isinstance(value, costs.Cost) else value)


def _keep(told: Mapping[str, Any]) -> None:
    """Add a line to the results, in place of an older one of the same figure and size."""
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    others = [
        each for each in kept if (each["figure"], each["size"]) != (told["figure"], told["size"])
    ]
    RESULTS.write_text(json.dumps([*others, told], indent=1) + "\n")


if __name__ == "__main__":
    main()
