"""What this machine, or the container around this process, has."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

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
