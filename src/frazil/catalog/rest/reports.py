"""Metrics reports of scans and commits, sent beside the work: a lost one is no failure."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from frazil.errors import FrazilError
from frazil.format.snapshots import Snapshot

_LOG = logging.getLogger(__name__)
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
class ScanReport:
    """What a scan was and cost.

    Attributes:
        table_name: the catalog's name and the table's.
        snapshot_id: of what was read.
        schema_id: by which it was read.
        field_ids: the columns that were asked for.
        field_names: their names.
        filter: the predicate in the protocol's JSON; True takes all rows.
        counts: by the protocol's names, as ``result-data-files``.
        nanoseconds: that planning took.
    """

    kind: ClassVar[str] = "scan-report"

    table_name: str
    snapshot_id: int
    schema_id: int
    field_ids: Sequence[int] = ()
    field_names: Sequence[str] = ()
    filter: Any = True
    counts: Mapping[str, int] = field(default_factory=dict)
    nanoseconds: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the protocol's object."""
        planning = {"count": 1, "time-unit": "nanoseconds", "total-duration": self.nanoseconds}
        return {
            "report-type": self.kind,
            "table-name": self.table_name,
            "snapshot-id": self.snapshot_id,
            "filter": self.filter,
            "schema-id": self.schema_id,
            "projected-field-ids": list(self.field_ids),
            "projected-field-names": list(self.field_names),
            "metrics": {"total-planning-duration": planning, **_counters(self.counts)},
        }


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
            "metrics": _counters(counts),
        }


class Reporter:
    """Sends reports one after the other, in a thread of its own."""

    def __init__(self) -> None:
        self._making = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None

    def send(self, send: Callable[[], object]) -> None:
        """Send a report later; what goes wrong then is noted in the log."""
        with self._making:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(1, "frazil-reports")
            self._pool.submit(_quietly, send)

    def close(self) -> None:
        """Wait for the report that is being sent, and forget the others."""
        with self._making:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(cancel_futures=True)


def _counters(counts: Mapping[str, int]) -> dict[str, Any]:
    return {
        name: {"unit": "bytes" if "size" in name else "count", "value": value}
        for name, value in counts.items()
    }


def _quietly(send: Callable[[], object]) -> None:
    try:
        send()
    except FrazilError as error:
        _LOG.info("a metrics report was not taken: %s", error)
