"""How many rows a write has: as expected before, and as Spark counts them along the way."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from threading import Thread
from typing import Final
from uuid import uuid4

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from frazil.format.metadata import TableMetadata
from frazil.format.snapshots import APPEND, Snapshot
from frazil.format.snapshots.summaries import (
    ADDED_RECORDS,
    CHANGED_PARTITION_COUNT,
    REPLACE_PARTITIONS,
    count_in,
)

_ROWS: Final = "rows"
_PATIENCE_SECONDS: Final = 30.0

_WRITES_LOOKED_AT: Final = 5
_SNAPSHOTS_LOOKED_AT: Final = 50

_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedRows:
    """How much is written, where there is an idea of it before.

    Attributes:
        rows: about so many rows, or at most so many.
        partitions: about so many partitions get rows.
        is_usual: whether writes before say so, and nothing of this one is known.
    """

    rows: int
    partitions: int = 10
    is_usual: bool = False

    @property
    def of_a_partition(self) -> float:
        """Rows of one partition."""
        return self.rows / self.partitions


def rows_of_last_writes(metadata: TableMetadata, head: Snapshot | None) -> ExpectedRows | None:
    """Return what the next write is like if it is like those before.

    Of the last few appends and overwrites of partitions it is that with the most rows a partition;
    None where there was none, or where their summaries do not say it.

    Args:
        head: the snapshot that the write builds on.
    """
    found: list[ExpectedRows] = []
    snapshot = head
    for _ in range(_SNAPSHOTS_LOOKED_AT):
        if snapshot is None or len(found) == _WRITES_LOOKED_AT:
            break
        if (count := _rows_written(snapshot)) is not None:
            found.append(count)
        parent = snapshot.parent_snapshot_id
        snapshot = None if parent is None else metadata.snapshots_at_hand.get(parent)
    return max(found, key=lambda each: each.of_a_partition, default=None)


def _rows_written(snapshot: Snapshot) -> ExpectedRows | None:
    summary = snapshot.summary or {}
    if snapshot.operation != APPEND and summary.get(REPLACE_PARTITIONS) != "true":
        return None
    rows, partitions = count_in(summary, ADDED_RECORDS), count_in(summary, CHANGED_PARTITION_COUNT)
    if not rows or not partitions:
        return None
    return ExpectedRows(rows=rows, partitions=partitions, is_usual=True)


class RowCount:
    """Counts the rows of one write.

    Spark takes up the count of the attempt of a task that won, and of no other, if the rows are
    counted in the stage that writes them: behind the last shuffle.
    """

    def __init__(self) -> None:
        self._observation = Observation(f"frazil-rows-{uuid4()}")
        self._answers: list[int | None] = []
        # Spark has no limit of time for this, and a lost event would be waited for for ever.
        self._asking = Thread(target=self._ask, name="frazil-row-count", daemon=True)

    def counted_rows(self, df: DataFrame) -> DataFrame:
        """The same rows, counted as they pass."""
        return df.observe(self._observation, F.expr(f"count(1) AS {_ROWS}"))

    def ask(self) -> None:
        """Ask for the count, once the rows have been written; Spark may take some milliseconds."""
        self._asking.start()

    def result(self) -> int | None:
        """The count that was asked for.

        None where Spark tells none: it took the plan's empty relation for the answer, or its
        listeners' queue was full and lost the event, which is said in the log.
        """
        self._asking.join(_PATIENCE_SECONDS)
        if not self._answers:
            _LOG.warning("Spark did not tell how many rows were written: they are not compared")
            return None
        return self._answers[0]

    def _ask(self) -> None:
        count = self._observation.get.get(_ROWS)
        self._answers.append(None if count is None else int(count))
