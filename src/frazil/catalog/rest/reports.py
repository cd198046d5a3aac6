"""Metrics reports of scans and commits, sent beside the work: a lost one is no failure."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty, Full, Queue
from typing import Any, ClassVar, Final

from frazil.errors import FrazilError
from frazil.format.snapshots import Snapshot
from frazil.planning.scan_report import ScanReport as ScanReport
from frazil.planning.scan_report import counters

_LOG = logging.getLogger(__name__)
_MOST_WAITING: Final = 100
_IDLE_SECONDS: Final = 5.0
_LONGEST_WAIT_SECONDS: Final = 2.0
_COUNTED: Final = {
    "added-data-files": "added-data-files",
    "removed-data-files": "deleted-data-files",
    "total-data-files": "total-data-files",
    "added-delete-files": "added-delete-files",
    "removed-delete-files": "removed-delete-files",
    "total-delete-files": "total-delete-files",
    "added-records": "added-records",
    "removed-records": "deleted-records",
    "total-records": "total-records",
    "added-files-size-bytes": "added-files-size",
    "removed-files-size-bytes": "removed-files-size",
    "total-files-size-bytes": "total-files-size",
}
"""Java's names of a commit's metrics, and where a snapshot's summary has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitReport:
    """What a commit changed.

    Attributes:
        table_name: the catalog's name and the table's.
        snapshot: that it made; its summary holds the counts.
    """

    kind: ClassVar[str] = "commit-report"

    table_name: str
    snapshot: Snapshot

    def to_json(self) -> dict[str, Any]:
        """Return the protocol's object."""
        summary = self.snapshot.summary or {}
        counts = {
            name: int(summary[source])
            for name, source in _COUNTED.items()
            if summary.get(source, "").isdecimal()
        }
        return {
            "report-type": self.kind,
            "table-name": self.table_name,
            "snapshot-id": self.snapshot.snapshot_id,
            "sequence-number": self.snapshot.sequence_number or 0,
            "operation": summary.get("operation", "unknown"),
            "metrics": counters(counts),
        }


class Reporter:
    """Sends reports one after the other, in a thread of its own that ends with the process.

    So many wait at most; where more come those are forgotten.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: Queue[Callable[[], object]] = Queue(_MOST_WAITING)
        self._thread: threading.Thread | None = None
        self._process = os.getpid()

    def send(self, send: Callable[[], object]) -> None:
        """Send a report later; what goes wrong then is noted in the log."""
        with self._lock:
            if self._process != os.getpid():
                # A forked child has neither the thread nor a use for what waits in its parent.
                self._process, self._thread = os.getpid(), None
                self._waiting = Queue(_MOST_WAITING)
            try:
                self._waiting.put_nowait(send)
            except Full:
                _LOG.info("a metrics report was left out: %s wait", _MOST_WAITING)
                return
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._work, name="frazil-reports", daemon=True
                )
                self._thread.start()

    def close(self) -> None:
        """Wait for what is still to be sent, for a moment; the rest is forgotten."""
        with self._lock:
            thread = self._thread if self._process == os.getpid() else None
        if thread is not None:
            self._waiting.put_nowait(_END) if not self._waiting.full() else None
            thread.join(_LONGEST_WAIT_SECONDS)
        with contextlib.suppress(Empty):
            while True:
                self._waiting.get_nowait()

    def _work(self) -> None:
        waiting = self._waiting
        while True:
            try:
                send = waiting.get(timeout=_IDLE_SECONDS)
            except Empty:
                with self._lock:
                    if not waiting.empty():
                        continue
                    self._thread = None
                    return
            if send is _END:
                with self._lock:
                    self._thread = None
                return
            _quietly(send)


def _quietly(send: Callable[[], object]) -> None:
    try:
        send()
    except Exception as error:
        # A scan or a commit is never the worse for its report.
        reason = str(error) if isinstance(error, FrazilError) else type(error).__name__
        _LOG.info("a metrics report was not taken: %s", reason)


def _END() -> None:
    """End the thread."""
