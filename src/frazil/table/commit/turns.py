"""Commits of one table by the threads of one process come one after the other.

Threads that commit to a table at once would each be first in turn, and the others would have built
manifests for nothing. A turn costs nothing where nobody else wants it, and decides nothing: other
processes may still be first, and whoever waited too long tries without one.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from frazil.catalog.protocol import LoadedTable

MOST_SECONDS: Final = 5.0
"""Nobody waits longer for the commit of another thread: its store may not answer."""

_REMEMBERED: Final = 256
_TABLES: Final = 256


class Turn:
    """The turns of one table.

    A thread that has the turn may take it again: a commit may begin within another.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._replaced: deque[str] = deque(maxlen=_REMEMBERED)

    @contextmanager
    def hold(self, interrupted: Callable[[], object]) -> Iterator[None]:
        """Wait for the turn, within bounds, and have it.

        `interrupted` is done where the wait is ended by an exception, such as Ctrl-C.
        """
        try:
            is_ours = self._lock.acquire(timeout=MOST_SECONDS)
        except BaseException:
            interrupted()
            raise
        try:
            yield
        finally:
            if is_ours:
                self._lock.release()

    def note(self, before: LoadedTable) -> None:
        """Remember that a commit of this process replaced a version of the table."""
        self._replaced.append(before.metadata_location)

    def is_replaced(self, table: LoadedTable) -> bool:
        """Return whether a commit of this process is known to have replaced a version."""
        return table.metadata_location in self._replaced


_TURNS: Final[dict[str, Turn]] = {}
_LOCK = threading.Lock()


def _forget_all() -> None:
    """Begin anew in a forked process: whoever held a lock there is not in this one."""
    global _LOCK
    _LOCK = threading.Lock()
    _TURNS.clear()


os.register_at_fork(after_in_child=_forget_all)


def turn_of(table_uuid: str | None) -> Turn:
    """Return the turns of a table, the same for all threads.

    `table_uuid`: of the table; where it is not known nobody else has the turns.
    """
    if table_uuid is None:
        return Turn()
    with _LOCK:
        found = _TURNS.pop(table_uuid, None) or Turn()
        # The table that was asked for longest ago is the first to be forgotten.
        _TURNS[table_uuid] = found
        while len(_TURNS) > _TABLES:
            del _TURNS[next(iter(_TURNS))]
        return found
