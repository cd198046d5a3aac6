"""CPU seconds of a process and of all that it started, those that have ended too, and their memory.

The system counts an ended process with its parent, unless the parent ignores the ends of its
children, as Spark's daemon of Python workers does: then nobody has its seconds. So the family is
looked at while it works, and what a lost member had when it was last seen counts on.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from signal import SIGCHLD
from typing import Final, Self

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_EVERY: Final = 0.25
"""Seconds between looks; what a lost member did after the last one is not counted."""


@dataclass(frozen=True, slots=True)
class _Member:
    """A process when it was last seen.

    Attributes:
        ticks: of CPU, with those of ended children that it waited for.
        is_waited_for: whether its parent gets these ticks when it ends.
        resident: bytes of its memory.
    """

    ticks: int
    is_waited_for: bool
    resident: int


class CpuClock:
    """The CPU seconds of a family of processes from the beginning of a `with` to its end.

    Attributes:
        seconds: what was taken; known after the end.
        started: the most MB that were resident at one look in what the process had started. Pages
            that several of these share count for each.
    """

    def __init__(self, pid: int) -> None:
        self.seconds = 0.0
        self.started = 0.0
        self._pid = pid
        self._seen: dict[tuple[int, str], _Member] = {}
        self._lost = 0
        self._own = 0.0
        self._began = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="cpu-clock", daemon=True)

    def __enter__(self) -> Self:
        self._look()
        self._began = self._ticks()
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._ended.set()
        self._thread.join()
        self._look()
        self.seconds = (self._ticks() - self._began) / _TICKS

    @property
    def watching(self) -> float:
        """CPU seconds that looking took in this process."""
        return self._own

    def _watch(self) -> None:
        while not self._ended.wait(_EVERY):
            self._look()
            self._own = time.thread_time()

    def _ticks(self) -> int:
        return self._lost + sum(member.ticks for member in self._seen.values())

    def _look(self) -> None:
        seen = dict(_family(self._pid))
        for key, member in self._seen.items():
            if key not in seen and not member.is_waited_for:
                self._lost += member.ticks
        self._seen = seen
        others = (member.resident for (pid, _), member in seen.items() if pid != self._pid)
        self.started = max(self.started, sum(others) / (1 << 20))


def _family(pid: int) -> Iterator[tuple[tuple[int, str], _Member]]:
    """A process and those that it started, by their numbers and when they began."""
    parents: dict[int, int] = {}
    stats: dict[int, list[str]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rsplit(")", 1)[1].split()
        except OSError:
            # It ended meanwhile.
            continue
        number = int(path.parent.name)
        parents[number], stats[number] = int(fields[1]), fields
    family = [(pid, True)]
    for member, is_waited_for in family:
        if member in stats:
            fields = stats[member]
            # Of user and system, with those of its own that have ended.
            ticks = sum(int(value) for value in fields[11:15])
            yield (member, fields[19]), _Member(ticks, is_waited_for, int(fields[21]) * _PAGE)
        children = [number for number, parent in parents.items() if parent == member]
        if children:
            waits = _waits_for_children(member)
            family += [(child, waits) for child in children]


def _waits_for_children(pid: int) -> bool:
    """Whether a process does not ignore that its children end."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return True
    ignored = next(int(line.split()[1], 16) for line in lines if line.startswith("SigIgn:"))
    return not ignored >> (SIGCHLD - 1) & 1
