"""Settings of a local session that nobody has stated."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Final

import pyspark

MASTER: Final = "spark.master"
TIME_ZONE: Final = "spark.sql.session.timeZone"
DRIVER_MEMORY: Final = "spark.driver.memory"
PROGRESS: Final = "spark.ui.showConsoleProgress"
_SHUFFLE: Final = "spark.sql.shuffle.partitions"

_MEBIBYTE: Final = 1024 * 1024
_LEAST_MEMORY: Final = 1024
# Beyond it references between objects take twice as much.
_MOST_MEMORY: Final = 30 * 1024
_TASKS_A_CORE: Final = 4
_LEAST_TASKS: Final = 8


def default_settings(master: str, *, new_machine: bool) -> dict[str, str]:
    """Return what is set where neither the caller nor Spark's own configuration says it.

    Args:
        master: where Spark runs.
        new_machine: whether a virtual machine starts; one that runs keeps its memory.
    """
    found = {
        "spark.app.name": "frazil",
        TIME_ZONE: "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        _SHUFFLE: str(max(_LEAST_TASKS, _TASKS_A_CORE * _cores_of(master))),
        "spark.ui.enabled": "false",
        PROGRESS: "true" if sys.stderr is not None and sys.stderr.isatty() else "false",
        "spark.log.level": "ERROR",
    }
    memory = _driver_memory() if new_machine else None
    if memory is not None:
        found[DRIVER_MEMORY] = memory
    stated = set(_stated_elsewhere(os.environ))
    return {key: value for key, value in found.items() if key not in stated}


def _driver_memory() -> str | None:
    """Half of the memory: Python's workers and the cache of files need the rest."""
    total = memory_bytes()
    half = 0 if total is None else total // 2 // _MEBIBYTE
    return f"{min(half, _MOST_MEMORY)}m" if half > _LEAST_MEMORY else None


def _cores_of(master: str) -> int:
    stated = re.match(r"local\[(\d+)", master)
    if stated is not None:
        return int(stated[1])
    return core_count() if "*" in master else 1


def _stated_elsewhere(environment: Mapping[str, str]) -> Iterator[str]:
    """Names of settings that the environment or Spark's own file states."""
    if environment.get("SPARK_DRIVER_MEMORY"):
        yield DRIVER_MEMORY
    words = shlex.split(environment.get("PYSPARK_SUBMIT_ARGS", ""))
    for before, word in pairwise(words):
        if before in ("--conf", "-c"):
            yield word.partition("=")[0]
        elif before == "--driver-memory":
            yield DRIVER_MEMORY
    yield from _in_file(environment)


def _spark_home(environment: Mapping[str, str]) -> str:
    """Where Spark's programs and its configuration are, as PySpark itself finds them."""
    stated = environment.get("SPARK_HOME")
    if stated:
        return stated
    package = os.path.dirname(pyspark.__file__)
    # In an archive of Spark the package lies two folders below; one of pip is the home itself.
    above = os.path.dirname(os.path.dirname(package))
    is_archive = not os.path.isdir(os.path.join(package, "bin"))
    return above if is_archive else package


def _in_file(environment: Mapping[str, str]) -> Iterator[str]:
    folder = environment.get("SPARK_CONF_DIR") or os.path.join(_spark_home(environment), "conf")
    with suppress(OSError, UnicodeDecodeError):
        text = Path(folder, "spark-defaults.conf").read_text(encoding="utf-8")
        for line in text.splitlines():
            name = re.match(r"\s*([^\s#!=:][^\s=:]*)", line)
            if name is not None:
                yield name[1]


_LIMITS: Final = (
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
)


def memory_bytes(limits: tuple[str, ...] = _LIMITS) -> int | None:
    """Return how much memory there is: the machine's, or less where a container has a limit.

    Args:
        limits: files that may hold a limit, in bytes.
    """
    return min([*_physical(), *_limits_below(limits)], default=None)


def core_count() -> int:
    """Return how many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        # Only Linux tells it.
        return os.cpu_count() or 1


def _physical() -> Iterator[int]:
    try:
        found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return
    if found > 0:
        yield found


def _limits_below(limits: tuple[str, ...]) -> Iterator[int]:
    for path in limits:
        try:
            text = Path(path).read_text().strip()
        except OSError:
            continue
        # Without a limit it says "max".
        if text.isdigit():
            yield int(text)
