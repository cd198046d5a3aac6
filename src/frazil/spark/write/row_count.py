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

    def of(self, df: DataFrame) -> DataFrame:
        """The same rows, counted as they pass."""
        return df.observe(self._observation, F.count(F.lit(1)).alias(_ROWS))

    def told(self) -> int | None:
        """The count, once the rows have been written.

        None where Spark tells none: it took the plan's empty relation for the answer, or its
        listeners' queue was full and lost the event, which is said in the log.
        """
        found: list[int | None] = []
        # Spark has no limit of time for this, and a lost event would be waited for for ever.
        asking = Thread(target=lambda: found.append(self._asked()), daemon=True)
        asking.start()
        asking.join(_PATIENCE_SECONDS)
        if not found:
            _LOG.warning("Spark did not tell how many rows were written: they are not compared")
            return None
        return found[0]

    def _asked(self) -> int | None:
        told = self._observation.get.get(_ROWS)
        return None if told is None else int(told)
