"""How far the deletion of files is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Literal, TypeAlias


@dataclass(frozen=True, slots=True)
class DeleteProgress:
    """What the removal of files is at.

    Attributes:
        stage: ``searching`` for files, ``deleting`` them, or ``done``.
        files: to delete; 0 while they are searched.
        files_done: those that were tried so far.
    """

    stage: Literal["searching", "deleting", "done"]
    files: int = 0
    files_done: int = 0

    @property
    def share(self) -> float | None:
        """How much is done, from 0 to 1; None while that is unknown."""
        return self.files_done / self.files if self.files else None

    def __str__(self) -> str:
        if self.stage == "searching":
            return "looking for files"
        return f"{self.files_done:,} of {self.files:,} files deleted"


OnDelete: TypeAlias = Callable[[DeleteProgress], None]


def tell_nobody(progress: object) -> None:
    """Do nothing with what a job is at."""


@dataclass(slots=True)
class Deleting:
    """Counts deleted files, which several threads delete, and tells of each."""

    tell: OnDelete
    files: int
    _done: int = 0
    _lock: Lock = field(default_factory=Lock)

    def one(self) -> None:
        """Count a file."""
        with self._lock:
            self._done += 1
            self.tell(DeleteProgress("deleting", self.files, self._done))

    def end(self) -> None:
        """Tell that it is done."""
        self.tell(DeleteProgress("done", self.files, self._done))
