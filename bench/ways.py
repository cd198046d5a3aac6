"""`python -m bench.ways SENT_KEYS`: what the two ways of a figure of `costs` take, at its own size.

And at six times that, or at `--times` so much (1: at its own alone); `--size` measures one other.
The scenarios are those by which `tests/spark_costs` shows that both ways give the same rows. Each
way runs three times, in turns, on tables that are made anew or known to nobody. A line of JSON a
size tells the medians, and `bench/results/ways.json` keeps it. Without a name the figures are
listed.

Beside the seconds stand those of CPU, of the driver's Python and of all other processes, and for
`PRUNED` the bytes that come to the driver. `--executors 2` gives so many executors of a core each,
as processes of their own (`local-cluster`), in place of a session of two threads.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Final

from pyspark.sql import DataFrame
from tests.spark_costs import changing_ways, reading_ways
from tests.spark_costs.ways import Case, Figures, Place, Sized, set_figures

import frazil
from bench.context import run_all
from bench.pruned_plans import PRUNED_PLANS
from bench.read_costs import cpu_of_all
from bench.sessions import start
from frazil.spark.session import costs

RESULTS: Final = Path(__file__).with_name("results") / "ways.json"
RUNS: Final = 3

SIZED: Final[Mapping[str, tuple[Case, Sized]]] = {
    name: (case, sized)
    for case in (*reading_ways.CASES, *changing_ways.CASES, PRUNED_PLANS)
    for name, sized in case.figures.items()
    if sized is not None
}
"""The figures whose scenario has a size, with it."""

TEXTS: Final = {"PRUNED": "frazil.spark.read.pruning._from_text"}
"""What the driver calls with each text that comes from executors."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What a way took.

    Attributes:
        seconds: by the clock.
        driver: seconds of CPU of the driver's Python.
        others: those of all other processes, the virtual machine among them.
        came: bytes that came from executors, where `TEXTS` knows how to count them.
    """

    seconds: float
    driver: float
    others: float
    came: float


def main() -> None:
    """Measure and write; see the module's text."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--times", type=int, default=6, help="the second size, in the figure's own")
    parser.add_argument("--size", type=int, help="in place of both sizes")
    parser.add_argument("--executors", type=int, default=0, help="of a core, as processes")
    asked = parser.parse_args()
    if not asked.names:
        print(*SIZED)
        return
    folder = Path(tempfile.mkdtemp(prefix="frazil-bench-"))
    master = f"local-cluster[{asked.executors},1,1024]" if asked.executors else "local[2]"
    spark = start(folder, memory="4g", master=master)
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
                    _keep({**told, "spark": spark.version, "executors": asked.executors})
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


def measured(place: Place, name: str, size: int) -> dict[str, Any]:
    """The medians of both ways where there is so much of what a figure counts."""
    case, sized = SIZED[name]
    arguments = {**case.arguments, **sized(size)}
    sides = {"up to it": case.up_to, "beyond it": case.beyond(name)}
    taken: dict[str, list[Taken]] = {side: [] for side in sides}
    # The first round warms up Spark, Python and the disk.
    for turn in range(RUNS + 1):
        for side in list(sides)[:: 1 if turn % 2 else -1]:
            took = _taken(place, case, arguments, sides[side], TEXTS.get(name))
            if turn:
                taken[side].append(took)
    here, there = (_medians(each) for each in taken.values())
    return {
        "figure": name,
        "own": _own(name),
        "size": size,
        "up_to": round(here.seconds, 3),
        "beyond": round(there.seconds, 3),
        "ratio": round(here.seconds / there.seconds, 3),
        "cpu_up_to": [round(here.driver, 2), round(here.others, 2)],
        "cpu_beyond": [round(there.driver, 2), round(there.others, 2)],
        "came": there.came,
    }


def _medians(taken: Sequence[Taken]) -> Taken:
    return Taken(*map(statistics.median, zip(*map(astuple, taken), strict=True)))


def _taken(
    place: Place, case: Case, arguments: Mapping[str, Any], figures: Figures, text: str | None
) -> Taken:
    work = case.scenario(place, **arguments)
    came: list[int] = []
    more: dict[str, Any] = {}
    if text is not None:
        read = resolve_name(text)

        def counted(told: str) -> Any:
            came.append(len(told))
            return read(told)

        more[text] = counted
    with _set({**figures, **more}):
        every, own, started = cpu_of_all(), time.process_time(), time.perf_counter()
        done = work.run()
        if isinstance(done, DataFrame):
            run_all(done)
        seconds = time.perf_counter() - started
        driver = time.process_time() - own
        return Taken(seconds, driver, cpu_of_all() - every - driver, sum(came))


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
