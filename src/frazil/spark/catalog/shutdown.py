"""How a server ends: no new statement is begun, and those that run get some time."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event
from typing import Final

REFUSAL: Final = (
    "this server shuts down and begins no new statement: connect again, to one that runs"
)
_PAUSE: Final = 0.1


class Shutdown:
    """Says to those who answer clients whether a statement may still begin."""

    def __init__(self) -> None:
        self._begun = Event()

    @property
    def is_begun(self) -> bool:
        """Whether no new statement is begun any more."""
        return self._begun.is_set()

    def begin(self, has_statements: Callable[[], bool], *, seconds: float) -> None:
        """Begin no new statement, and wait for those that run.

        Args:
            has_statements: says whether one runs, or has an answer that its client reads.
            seconds: how long to wait at most.
        """
        end = time.monotonic() + seconds
        self._begun.set()
        while time.monotonic() < end and has_statements():
            time.sleep(_PAUSE)
