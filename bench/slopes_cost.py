"""What a step costs: CPU seconds and memory of Python and of the virtual machine, and its slope.

The virtual machine's seconds are with those of its Python workers.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.context import Context
from bench.figures import Bar, Figure, compare, limit, report

Step = Callable[[], object]

_TICKS = os.sysconf("SC_CLK_TCK")
_MEGABYTE = 1 << 20
_LEAST_SECONDS = 0.01
"""The clock's tick: less than that is not told from nothing."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one side of a pair took.

    Attributes:
        cpu: seconds of this process and of the virtual machine.
        peak: MB above what was taken before: resident here, the heap with its garbage there.
    """

    cpu: float
    peak: float


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
    return {name: Cost(least[name], found[name].peak) for name in sides}


def cpu_of(context: Context, step: Step) -> float:
    """The CPU seconds of a step, here and in the virtual machine."""
    before = _cpu(context)
    step()
    return _cpu(context) - before


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


def _cpu(context: Context) -> float:
    own = os.times()
    machine = sum(_ticks_of_family(_pid(context))) / _TICKS
    return own.user + own.system + own.children_user + own.children_system + machine


def _ticks_of_family(pid: int) -> Iterator[int]:
    """The CPU ticks of a process and of those that it started, living and ended."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rsplit(")", 1)[1].split()
        except OSError:
            # It ended meanwhile: its parent has its ticks.
            continue
        number = int(path.parent.name)
        parents[number] = int(fields[1])
        # Of user and system, with those of its own that have ended.
        ticks[number] = sum(int(value) for value in fields[11:15])
    family = [pid]
    for member in family:
        yield ticks.get(member, 0)
        family += [number for number, parent in parents.items() if parent == member]


def _pid(context: Context) -> int:
    jvm: Any = context.spark.sparkContext._jvm
    return int(jvm.java.lang.ProcessHandle.current().pid())


def _with_memory(context: Context, step: Step) -> Cost:
    pools = _heap_pools(context)
    resident = resident_memory("VmRSS")
    heap = sum(pool.getUsage().getUsed() for pool in pools)
    for pool in pools:
        pool.resetPeakUsage()
    # Makes what is resident now the peak of this process.
    Path("/proc/self/clear_refs").write_text("5")
    cpu = cpu_of(context, step)
    here = max(0.0, resident_memory("VmHWM") - resident)
    there = sum(pool.getPeakUsage().getUsed() for pool in pools) - heap
    return Cost(cpu, here + max(0.0, there / _MEGABYTE))


def resident_memory(name: str) -> float:
    """A field of this process's memory, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{name}:"))


def _heap_pools(context: Context) -> list[Any]:
    jvm: Any = context.spark.sparkContext._jvm
    jvm.java.lang.System.gc()
    pools = jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
    return [pool for pool in pools if pool.getType().toString() == "Heap memory"]
