"""What starts: commands of the shell, the prompt, a job. CPU seconds, modules compiled."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Iterator

from bench.context import CATALOG, Context
from bench.figures import Figure, limit
from bench.started import TABLE

_ROUNDS = 7
_JOB_ROUNDS = 3
_UNIT = "CPU s"


def run(context: Context) -> Iterator[Figure]:
    """Each from a new process, against what its user would not notice."""
    table = context.lake.create_table(TABLE, "id bigint, at timestamp")
    for _ in range(3):
        table.append(context.spark.sql("SELECT id, timestamp '2024-01-01' AS at FROM range(10)"))
    place = ["--catalog", CATALOG, "--warehouse", str(context.folder)]
    commands = {
        "frazil --help": (["--help"], 0.15),
        "frazil --version": (["--version"], 0.15),
        "frazil tables": ([*place, "tables"], 0.5),
        "frazil describe": ([*place, "describe", TABLE], 0.5),
        "frazil snapshots": ([*place, "snapshots", TABLE], 0.5),
    }
    for name, (words, most) in commands.items():
        yield limit(name, _median(["-m", "frazil", *words]), most, unit=_UNIT)
    yield limit("the first prompt of frazil sql", _median_told(["prompt"]), 0.3, unit=_UNIT)
    job = ["job", str(context.folder)]
    seconds = _median_told(job, rounds=_JOB_ROUNDS)
    yield limit("connect and load_table, after import pyspark.sql", seconds, 0.35, unit=_UNIT)
    context.lake.purge_table(TABLE)


def _median(words: list[str]) -> float:
    """The CPU seconds of a process of Python; the first one compiles and does not count."""
    taken = []
    for _ in range(_ROUNDS + 1):
        before = _of_children()
        _printed(words)
        taken.append(_of_children() - before)
    return statistics.median(taken[1:])


def _median_told(words: list[str], *, rounds: int = _ROUNDS) -> float:
    """What a process of `bench.started` says, the first one left out."""
    told = [float(_printed(["-m", "bench.started", *words])) for _ in range(rounds + 1)]
    return statistics.median(told[1:])


def _printed(words: list[str]) -> str:
    # Modules are compiled, as those of an installed package are.
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    ran = subprocess.run(
        [sys.executable, *words], check=True, capture_output=True, text=True, env=env
    )
    return ran.stdout.splitlines()[-1]


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
