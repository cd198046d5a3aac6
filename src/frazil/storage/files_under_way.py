"""New files that are written beside each other, while the one who makes them goes on.

A commit writes its manifests and their list, and nobody looks for either before all are there: on
a store that answers late, it waits for them at once and not for one after the other.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, wait
from typing import Protocol

from frazil.storage.files import FileIO
from frazil.storage.side_by_side import WAITING_THREADS, lasting_threads


class NewFiles(Protocol):
    """Where files of names that no other writer makes are written."""

    def create_unique(self, path: str, data: bytes) -> None:
        """Write a file, as `FileIO.create_unique` does."""


class FilesUnderWay:
    """New files of one thread, some of which may not be written yet.

    At most `WAITING_THREADS` of them are under way, and in memory.
    """

    def __init__(self, io: FileIO) -> None:
        self.io = io
        self._writes: deque[Future[None]] = deque()

    def create_unique(self, path: str, data: bytes) -> None:
        """Begin to write a file, as `FileIO.create_unique` does.

        Raises:
            AlreadyExistsError, StorageError: of a file that was begun before.
        """
        if len(self._writes) >= WAITING_THREADS:
            self._writes.popleft().result()
        threads = lasting_threads(WAITING_THREADS, "frazil-new-files")
        self._writes.append(threads.submit(self.io.create_unique, path, data))

    def finish(self) -> None:
        """Wait until every file is written.

        Raises:
            AlreadyExistsError, StorageError: of the first file that could not be written; nothing
                is under way any more.
        """
        for write in self._settled():
            write.result()

    def settle(self) -> None:
        """Wait until nothing is under way, whether it could be written or not."""
        self._settled()

    def _settled(self) -> list[Future[None]]:
        wait(self._writes)
        writes = list(self._writes)
        self._writes.clear()
        return writes
