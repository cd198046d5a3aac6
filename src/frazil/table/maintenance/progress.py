"""Files that go for good: who deletes them, and how far that is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Final, Literal, TypeAlias

from frazil.storage.files import FileIO
from frazil.storage.side_by_side import WAITING_THREADS

_MOST_TOLD: Final = 10_000
"""So often at most it is told how far a deletion is."""


@dataclass(frozen=True, slots=True)
class DeleteProgress:
    """What the removal of files is at.

    Attributes:
        stage: ``searching`` for files, ``deleting`` them, or ``done``.
        files: to delete; those that are compared while it is searched, 0 before.
        files_done: those that were tried so far.
    """

    stage: Literal["searching", "deleting", "done"]
    files: int = 0
    files_done: int = 0

    @property
    def share(self) -> float | None:
        """How much is done, from 0 to 1; None while that is unknown."""
        is_known = self.files and self.stage != "searching"
        return self.files_done / self.files if is_known else None

    def __str__(self) -> str:
        if self.stage == "searching":
            compared = f": {self.files:,} are compared" if self.files else ""
            return f"looking for files{compared}"
        return f"{self.files_done:,} of {self.files:,} files deleted"


OnDelete: TypeAlias = Callable[[DeleteProgress], None]


Stage: TypeAlias = Literal[
    "reading manifests",
    "writing manifests",
    "checking manifests",
    "checking files",
    "comparing deletes",
    "done",
]


@dataclass(frozen=True, slots=True)
class MaintenanceProgress:
    """What a look at all of a table, or a rewrite of its manifests, is at.

    Attributes:
        stage: ``reading manifests``, ``writing manifests``, ``checking manifests``, ``checking
            files``, ``comparing deletes`` or ``done``.
        count: of manifests or files of the stage; 0 while it is unknown.
        done: those that are behind it.
    """

    stage: Stage
    count: int = 0
    done: int = 0

    @property
    def share(self) -> float | None:
        """How much of the stage is done, from 0 to 1; None while that is unknown."""
        return self.done / self.count if self.count and self.done else None

    def __str__(self) -> str:
        if not self.count or self.stage == "done":
            return self.stage
        return f"{self.stage}: {self.done:,} of {self.count:,}"


OnMaintenance: TypeAlias = Callable[[MaintenanceProgress], None]


@dataclass(slots=True)
class StageCount:
    """Counts what is behind a stage, in whatever thread, and tells of each step."""

    tell: OnMaintenance
    stage: Stage
    count: int
    _done: int = 0
    _lock: Lock = field(default_factory=Lock)

    def add(self, done: int = 1) -> None:
        """Count some more."""
        with self._lock:
            self._done += done
            self.tell(MaintenanceProgress(self.stage, self.count, self._done))


def tell_nobody(progress: object) -> None:
    """Do nothing with what a job is at."""


@dataclass(slots=True)
class Deletion:
    """The removal of files by threads of this process, which tells how many are done."""

    io: FileIO
    tell: OnDelete
    files: int
    _done: int = 0
    _lock: Lock = field(default_factory=Lock)

    def delete(
        self, paths: Collection[str], *, threads: int = WAITING_THREADS
    ) -> Mapping[str, str]:
        """Delete some of the files; return why some of them could not be, by path."""
        failures = self.io.delete_many(paths, threads=threads, on_each=self._add) if paths else {}
        return {path: str(error) for path, error in failures.items()}

    def _add(self) -> None:
        with self._lock:
            self._done += 1
            if not self._done % max(1, -(-self.files // _MOST_TOLD)):
                self.tell(DeleteProgress("deleting", self.files, self._done))

    def end(self) -> None:
        """Tell that it is done."""
        self.tell(DeleteProgress("done", self.files, self._done))
