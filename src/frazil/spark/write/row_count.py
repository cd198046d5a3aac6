"""How many rows the tasks of a write handed to their files, as Spark counts them along the way."""

from __future__ import annotations

import logging
from threading import Thread
from typing import Final
from uuid import uuid4

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

_ROWS: Final = "rows"
_PATIENCE_SECONDS: Final = 30.0

_LOG: Final = logging.getLogger(__name__)


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

    def of(self, df: DataFrame) -> DataFrame:
        """The same rows, counted as they pass."""
        return df.observe(self._observation, F.expr(f"count(1) AS {_ROWS}"))

    def ask(self) -> None:
        """Ask for the count, once the rows have been written; Spark may take some milliseconds."""
        self._asking.start()

    def told(self) -> int | None:
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
        told = self._observation.get.get(_ROWS)
        self._answers.append(None if told is None else int(told))
