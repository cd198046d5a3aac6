"""Rows that the driver collects in one job where they are few; where they are many, it has none.

Each task gives up to so many rows that all of them together have a bound. A task that had more is
seen by the rows that it gave, and then none of them counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.planning.scan_plan import ScanPlan
from frazil.spark.session import costs
from frazil.spark.session.facts import is_connect

_TASK_BITS: Final = 33
"""A number of `monotonically_increasing_id` is the task's, then so many bits of the row's."""

_ROW: Final = (1 << _TASK_BITS) - 1
_NTH: Final = "_frazil_nth"

Longs = npt.NDArray[np.int64]


def tasks_of_scan(spark: SparkSession, plan: ScanPlan) -> int:
    """Return how many tasks read the rows of a plan, about."""
    size = plan.size_in_bytes + costs.OPEN_COST * plan.file_count
    cores = 1 if is_connect(spark) else spark.sparkContext.defaultParallelism
    return max(1, ceil(size / costs.SPLIT), min(cores, ceil(size / costs.OPEN_COST)))


def few_rows(
    rows: DataFrame,
    *,
    most_of_task: int,
    tasks: int,
    collect: Callable[[DataFrame], pa.Table] = DataFrame.toArrow,
) -> pa.Table | None:
    """Collect rows in one job; None where they are many.

    Args:
        most_of_task: how many a task gives.
        tasks: how many there are, about.
        collect: brings rows to the driver.
    """
    limit = RowLimit(most_of_task, tasks, falls=False)
    numbered = rows.withColumn(_NTH, F.monotonically_increasing_id())
    found = collect(numbered.where(limit.keeps(_NTH)))
    if not limit.holds_all(np.asarray(found.column(_NTH).to_numpy(), dtype=np.int64)):
        return None
    return found.drop_columns([_NTH])


@dataclass(frozen=True, slots=True)
class RowLimit:
    """How many rows a task gives. What tasks beyond the known ones give adds up to twice as much.

    Attributes:
        most: of the first task; of each of the known ones where they share it.
        tasks: the known ones.
        falls: whether the second task gives a half of that, the third a third, and so on, so that
            rows which are spread evenly are told as well as those of one task.
    """

    most: int
    tasks: int
    falls: bool

    def keeps(self, number: str) -> Column:
        """Return whether a row is among those that its task gives."""
        name = quote_name_always([number])
        task, nth = f"shiftright({name}, {_TASK_BITS})", f"({name} & {_ROW}L)"
        beyond = f"greatest({task} - {self.tasks - 1}L, 1L)"
        share = f"(least({task}, {self.tasks - 1}L) + 1L)" if self.falls else "1L"
        return F.expr(f"{nth} <= {self.most}L div {share} div ({beyond} * {beyond})")

    def holds_all(self, numbers: Longs) -> bool:
        """Return whether no task had more rows than those that were given."""
        task = numbers >> _TASK_BITS
        beyond = np.maximum(task - (self.tasks - 1), 1)
        share = np.minimum(task, self.tasks - 1) + 1 if self.falls else 1
        return not ((numbers & _ROW) == self.most // share // (beyond * beyond)).any()
