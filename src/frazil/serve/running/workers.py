"""Several processes that serve one address, since each of them uses one processor at a time."""

from __future__ import annotations

import logging
import multiprocessing
import signal
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from typing import Any, Final

_LOG = logging.getLogger("frazil.serve")
_LOOK_SECONDS: Final = 0.2
_PAUSE_SECONDS: Final = 1.0
_GRACE_SECONDS: Final = 40


class WorkerProcesses:
    """Processes that run one function; one that dies is replaced.

    Args:
        count: how many there are.
        target: a function of a module; it ends after a SIGTERM, and with this process
            (`when_parent_ends`).
        arguments: of the function; sockets among them are shared.
    """

    def __init__(
        self, count: int, target: Callable[..., None], arguments: tuple[object, ...]
    ) -> None:
        self._count = count
        self._target = target
        self._arguments = arguments
        self._is_stopped = threading.Event()

    def run(self) -> None:
        """Run the processes until SIGINT or SIGTERM, and wait for their ends."""
        before = {
            number: signal.signal(number, self._stop) for number in (signal.SIGINT, signal.SIGTERM)
        }
        running: list[SpawnProcess] = []
        try:
            running = [self._start_one() for _ in range(self._count)]
            while not self._is_stopped.is_set():
                wait([each.sentinel for each in running], timeout=_LOOK_SECONDS)
                running = [each if each.is_alive() else self._replace(each) for each in running]
        finally:
            _end(running)
            for number, handler in before.items():
                signal.signal(number, handler)

    def _stop(self, *_: Any) -> None:
        self._is_stopped.set()

    def _start_one(self) -> SpawnProcess:
        context = multiprocessing.get_context("spawn")
        process = context.Process(target=self._target, args=self._arguments, name="frazil-serve")
        process.start()
        return process

    def _replace(self, dead: SpawnProcess) -> SpawnProcess:
        if self._is_stopped.is_set():
            return dead
        _LOG.error("a worker process ended with %s and is replaced", dead.exitcode)
        # One that cannot start at all must not be started without end at full speed.
        time.sleep(_PAUSE_SECONDS)
        return self._start_one()


def when_parent_ends(act: Callable[[], None]) -> None:
    """Do something once the process that started this one has ended, however it did."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch(sentinel: int = parent.sentinel) -> None:
        wait([sentinel])
        act()

    threading.Thread(target=watch, name="frazil-serve-parent", daemon=True).start()


def _end(running: list[SpawnProcess]) -> None:
    for each in running:
        each.terminate()
    ends = time.monotonic() + _GRACE_SECONDS
    for each in running:
        each.join(max(0.0, ends - time.monotonic()))
        if each.is_alive():
            each.kill()
            each.join()
