"""Work that waits for a store, in threads beside each other."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from functools import cache
from itertools import chain, islice
from typing import Final, Protocol, TypeVar

WAITING_THREADS: Final = 16
"""So many requests that a process does little else than wait for are made beside each other.
Chosen, as the threads below."""

READING_THREADS: Final = 8
"""So many files are read and decoded beside each other."""

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_threads(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    *,
    name: str,
    threads: int = READING_THREADS,
) -> list[Result]:
    """Return the function's result for each item, in the order of the items.

    An error ends the work: what has not begun is left out, what runs is waited for, and the error
    is raised as it is; of several, that of the first item. One item, or what one thread would do,
    is worked on in this thread.
    The items are taken one after the other in this thread, while others are worked on.
    """
    rest = iter(items)
    first = list(islice(rest, 2))
    if len(first) < 2 or threads == 1:
        return [function(item) for item in chain(first, rest)]
    pool = ThreadPoolExecutor(threads, name)
    try:
        futures = [pool.submit(function, item) for item in chain(first, rest)]
        wait(futures, return_when=FIRST_EXCEPTION)
    finally:
        pool.shutdown(cancel_futures=True)
    # Where one was left out, the error of another comes out here.
    return [future.result() for future in futures if not future.cancelled()]


class NewFiles(Protocol):
    """Where files of names that no other writer makes are written."""

    def create_unique(self, path: str, data: bytes) -> None:
        """Write a file, as `FileIO.create_unique` does."""


class FilesUnderWay:
    """New files of one thread that are written beside each other while it goes on.

    A commit writes its manifests and their list, and nobody looks for any before all are there: it
    waits for them at once, not for one after the other.

    At most `WAITING_THREADS` of them are under way, and in memory.
    """

    def __init__(self, files: NewFiles) -> None:
        self._files = files
        self._writes: deque[Future[None]] = deque()

    def create_unique(self, path: str, data: bytes) -> None:
        """Begin to write a file, as `FileIO.create_unique` does.

        Raises AlreadyExistsError, StorageError: of a file that was begun before.
        """
        if len(self._writes) >= WAITING_THREADS:
            self._writes.popleft().result()
        threads = lasting_threads(WAITING_THREADS, "frazil-new-files")
        self._writes.append(threads.submit(self._files.create_unique, path, data))

    def finish(self) -> None:
        """Wait until every file is written.

        Raises AlreadyExistsError, StorageError: of the first file that could not be written;
        nothing is under way any more.
        """
        for write in self._take_finished():
            write.result()

    def settle(self) -> None:
        """Wait until nothing is under way, whether it could be written or not."""
        self._take_finished()

    def _take_finished(self) -> list[Future[None]]:
        wait(self._writes)
        writes = list(self._writes)
        self._writes.clear()
        return writes


@cache
def lasting_threads(threads: int, name: str) -> ThreadPoolExecutor:
    """Return the threads of this name, which stay for the next call."""
    return ThreadPoolExecutor(threads, name)


# A forked child has the pools but not their threads.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lasting_threads.cache_clear)
