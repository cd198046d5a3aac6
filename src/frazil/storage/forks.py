"""Whether this process can decode manifests: Polars' threads do not live on in a fork.

A forked child waits for ever at its first use of them, so that has to be known before. A child of
a parent that had not used them yet starts its own.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from frazil.errors import UnsupportedError

_TASKS: Final = Path("/proc/self/task")
_THREAD: Final = re.compile(r"polars-\d+")


@dataclass(slots=True)
class _Threads:
    """What is known of Polars' threads in this process.

    Attributes:
        used: Frazil had them work here.
        lost: they ran in the process that this one was forked from.
    """

    used: bool = False
    lost: bool = False

    def look(self) -> None:
        """Before a fork: others than Frazil may have had them work."""
        names = map(_name_of, _TASKS.glob("*/comm"))
        self.used = self.used or any(map(_THREAD.match, names))

    def lose(self) -> None:
        """In a forked child: threads of the parent are not there."""
        self.lost = self.lost or self.used


_threads: Final = _Threads()


def check_threads() -> None:
    """Make sure that work on columns will end in this process."""
    if _threads.lost:
        raise UnsupportedError(
            f"process {os.getpid()} was forked from one that had worked on tables or Polars frames,"
            " and the threads that decode manifests do not live on in a fork: start it with"
            " multiprocessing's 'spawn' or 'forkserver' method, or fork before the parent"
            " opens a table"
        )
    _threads.used = True


def _name_of(task: Path) -> str:
    try:
        return task.read_text(errors="replace")
    except OSError:  # the thread has just ended
        return ""


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_threads.look, after_in_child=_threads.lose)
