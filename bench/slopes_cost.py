"""What a step costs: CPU seconds and memory of Python and of the virtual machine, and its slope.

The virtual machine's seconds are with those of its Python workers, whose memory is told apart.
"""

from __future__ import annotations

import gc
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from bench.context import Context
from bench.cpu_clock import CpuClock
from bench.figures import Bar, Figure, compare, limit, report

Step = Callable[[], object]

DRIVER_HEAP = "2g"
DRIVER_MB = 4_096
"""What a driver may have of tables of millions of files, of which its heap is a part."""

_MEGABYTE = 1 << 20
_LEAST_SECONDS = 0.01
"""The clock's tick: less than that is not told from nothing."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one side of a pair took.

    Attributes:
        cpu: seconds of this process and of the virtual machine.
        peak: MB above what was taken before: resident here, the heap with its garbage there.
        resident: MB of both processes at their peaks, with what they had before.
        workers: the most MB that Python workers of executors had at one look.
    """

    cpu: float
    peak: float
    resident: float = 0.0
    workers: float = 0.0


def costs(context: Context, sides: Mapping[str, Step], *, rounds: int = 3) -> dict[str, Cost]:
    """The least CPU seconds of each side, of rounds in turns, and the memory of one more before.

    With one round there is none before it: that round tells both.
    """
    found: dict[str, Cost] = {}
    for name, side in sides.items():
        found[name] = _with_memory(context, side)
    if rounds == 1:
        return found
    least: dict[str, float] = {}
    for _ in range(rounds):
        for name, side in sides.items():
            least[name] = min(cpu_of(context, side), least.get(name, math.inf))
    return {name: replace(found[name], cpu=least[name]) for name in sides}


def cpu_of(context: Context, step: Step) -> float:
    """The CPU seconds of a step, here and in the virtual machine."""
    return _watched(context, step)[0]


def _watched(context: Context, step: Step) -> tuple[float, float]:
    """The CPU seconds of a step, and the most MB of Python workers meanwhile."""
    with CpuClock(_pid(context)) as machine:
        before = _own_cpu()
        step()
        own = _own_cpu() - before
    return own - machine.watching + machine.seconds, machine.started


def give_memory_back() -> None:
    """Let the step before have no part in the memory of the next."""
    gc.collect()
    # The allocator of Polars gives pages back when it works, half a second after they were left.
    time.sleep(1)
    pl.DataFrame({"number": range(1_000)}).sort("number")
    time.sleep(1)


@dataclass(slots=True)
class Slope:
    """One row of the table: what it costs at several sizes.

    Attributes:
        name: what is done; `{}` stands for the size.
        bar: of our CPU seconds to those of the Java runtime.
        exponent: the largest that holds.
        least: the smallest size that the bar is for; below it the pair is reported.
    """

    context: Context
    name: str
    bar: Bar = field(default_factory=Bar)
    exponent: float | None = None
    least: int = 0
    ours: dict[int, float] = field(default_factory=dict)

    def measure(
        self, size: int, ours: Step, theirs: Step | None = None, *, rounds: int = 3
    ) -> Iterator[Figure]:
        """Both sides at one size."""
        sides = {"frazil": ours}
        if theirs is not None and self.context.has_java:
            sides["java"] = theirs
        yield from self.told(size, costs(self.context, sides, rounds=rounds))

    def told(self, size: int, took: Mapping[str, Cost]) -> Iterator[Figure]:
        """The figures of costs that were measured."""
        mine, other = took["frazil"], took.get("java")
        self.ours[size] = mine.cpu
        name = self.name.format(f"{size:,}")
        if other is None:
            yield report(name, mine.cpu, unit="s")
            yield report(f"{name}, memory", mine.peak, unit="MB")
            return
        bar = self.bar if size >= self.least else Bar()
        yield compare(name, "Java runtime", mine.cpu, max(other.cpu, _LEAST_SECONDS), bar)
        yield report(
            f"{name}, memory",
            mine.peak,
            unit="MB",
            against="Java runtime",
            theirs=other.peak,
        )

    def steepness(self) -> Figure:
        """The exponent from the second largest to the largest size: 1 is linear, 0 constant."""
        (small, few), (large, many) = sorted(self.ours.items())[-2:]
        grew = max(many, _LEAST_SECONDS) / max(few, _LEAST_SECONDS)
        exponent = math.log(grew) / math.log(large / small)
        name = f"exponent: {self.name.format('n')}"
        if self.exponent is None:
            return report(name, exponent, unit="")
        return limit(name, exponent, self.exponent, unit="")


def _own_cpu() -> float:
    own = os.times()
    return own.user + own.system + own.children_user + own.children_system


def _pid(context: Context) -> int:
    jvm: Any = context.spark.sparkContext._jvm
    return int(jvm.java.lang.ProcessHandle.current().pid())


def _with_memory(context: Context, step: Step) -> Cost:
    pools = _heap_pools(context)
    resident = resident_memory("VmRSS")
    heap = sum(pool.getUsage().getUsed() for pool in pools)
    for pool in pools:
        pool.resetPeakUsage()
    machine = _pid(context)
    for process in ("self", machine):
        # Makes what is resident now the peak of the process.
        Path(f"/proc/{process}/clear_refs").write_text("5")
    cpu, workers = _watched(context, step)
    most = resident_memory("VmHWM")
    here = max(0.0, most - resident)
    there = sum(pool.getPeakUsage().getUsed() for pool in pools) - heap
    both = most + resident_memory("VmHWM", process=machine)
    return Cost(cpu, here + max(0.0, there / _MEGABYTE), both, workers)


def resident_memory(name: str, *, process: int | str = "self") -> float:
    """A field of a process's memory, in MB."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{name}:"))


def _heap_pools(context: Context) -> list[Any]:
    jvm: Any = context.spark.sparkContext._jvm
    jvm.java.lang.System.gc()
    pools = jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
    return [pool for pool in pools if pool.getType().toString() == "Heap memory"]
