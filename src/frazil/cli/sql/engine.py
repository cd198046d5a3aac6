"""A lake whose catalog is opened and whose Spark starts in a thread, while the user types."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, TypeVar

from frazil.cli.app import Settings
from frazil.cli.output import Output
from frazil.errors import CommitStateUnknownError
from frazil.later import later

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from frazil.catalog.protocol import Catalog
    from frazil.cli.local_spark import lake_of
    from frazil.cli.progress import shown_progress
    from frazil.spark.lake import Lake
    from frazil.spark.local.session import quiet_session
else:
    lake_of = later("frazil.cli.local_spark", "lake_of")
    quiet_session = later("frazil.spark.local.session", "quiet_session")
    shown_progress = later("frazil.cli.progress", "shown_progress")


T = TypeVar("T")

_STEP: Final = 0.1
_LAST_WAIT: Final = 20.0


class CancelledError(Exception):
    """The user ended a statement."""


class LeftError(Exception):
    """The user ended the program while a statement went on."""


@dataclass(frozen=True, slots=True)
class _Doing:
    text: str
    share: float | None = None

    def __str__(self) -> str:
        return self.text


class Engine:
    """Runs statements on a lake, one after the other, in a thread of its own.

    Attributes:
        settings: where the tables are.
        catalog: the catalog, once it is open; it needs no Spark.
        lake: the lake, once Spark has started.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.catalog: Future[Catalog] = Future()
        self.lake: Future[Lake] = Future()
        self._running = _running_session()
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._is_left = False
        self._thread = Thread(target=self._work, name="frazil-sql", daemon=True)

    def start(self) -> None:
        """Begin to open the catalog, and to start Spark; returns at once."""
        if not self._thread.is_alive() and not self.lake.done():
            self._thread.start()

    def submit(self, work: Callable[[Lake], T]) -> Future[T]:
        """Do something with the lake as soon as Spark is there and what was asked before is done.

        Returns:
            What it returns or raises; where Spark did not start, why.
        """
        answer: Future[T] = Future()

        def job() -> None:
            if not answer.set_running_or_notify_cancel():
                return
            try:
                answer.set_result(work(self.lake.result()))
            except BaseException as error:
                answer.set_exception(error)

        self._jobs.put(job)
        return answer

    def wait_for(self, answer: Future[T], out: Output) -> T:
        """Return an answer when it is there; Ctrl-C ends the jobs that it waits for.

        What Spark is not at yet is not begun after Ctrl-C.

        Raises:
            CancelledError: Ctrl-C ended it.
            LeftError: a second Ctrl-C came before it had ended.
        """
        asked = 0
        shown = ""
        with shown_progress(out, "") as tell:
            while not answer.done():
                doing = "Spark starts" if not self.lake.done() else "Ctrl-C cancels"
                if asked:
                    doing = "cancelling; Ctrl-C again leaves"
                if doing != shown:
                    shown = doing
                    tell(_Doing(doing))
                try:
                    wait([answer], _STEP)
                    if asked:
                        # A statement is several jobs: the next ones go too.
                        self._cancel_jobs()
                except KeyboardInterrupt:
                    asked += 1
                    if answer.cancel():
                        raise CancelledError from None
                    if asked > 1:
                        self._is_left = True
                        raise LeftError from None
        failed = answer.exception()
        if asked and failed is not None and not isinstance(failed, CommitStateUnknownError):
            raise CancelledError from failed
        return answer.result()

    def close(self) -> None:
        """Roll back what is open, and end Spark; what has not started or goes on is left alone."""
        self._jobs.put(None)
        if self.lake.done() and not self._is_left:
            self._thread.join(_LAST_WAIT)

    def _work(self) -> None:
        if not _settle(self.catalog, self.settings.catalog):
            self.lake.set_exception(self.catalog.exception())
        else:
            _settle(self.lake, self._start)
        while (job := self._jobs.get()) is not None:
            job()
        self._end()

    def _start(self) -> Lake:
        # Spark's classes take a while to import, and the user is typing.
        session = self._running or quiet_session()
        return lake_of(session, self.catalog.result())

    def _end(self) -> None:
        if self.lake.exception() is not None:
            return
        lake = self.lake.result()
        with suppress(Exception):
            lake.close()
        if self._running is None:
            lake.spark.stop()

    def _cancel_jobs(self) -> None:
        with suppress(Exception):
            self.lake.result().spark.sparkContext.cancelAllJobs()


def _settle(future: Future[Any], work: Callable[[], Any]) -> bool:
    """Do something for a future, and tell whether it worked."""
    try:
        future.set_result(work())
    except BaseException as error:
        future.set_exception(error)
        return False
    return True


def _running_session() -> SparkSession | None:
    """The session of this thread, where one runs; Spark is not imported to look for it."""
    sql = sys.modules.get("pyspark.sql")
    return None if sql is None else sql.SparkSession.getActiveSession()
