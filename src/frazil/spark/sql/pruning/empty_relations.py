"""Relations without files in place of tables: what the optimizer makes of a query over them."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import threading
from functools import cache
from itertools import count
from typing import Any, Final, Self

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as S

from frazil.spark.sql.kept_frames import kept_frame
from frazil.spark.sql.pruning.plan_reads import PlanReads, reads_of

_TAKEN: Final[set[int]] = set()
_LOCK: Final = threading.Lock()


class EmptyRelations:
    """Relations without files, one a place in a query, that a plan can be searched for.

    While it is open no other has its relations: a view in the query is looked at meanwhile, and its
    plan may hold what stands for the tables around it.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._places: dict[int, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the relations to others."""
        with _LOCK:
            _TAKEN.difference_update(self._places)

    def relation(self, place: int, schema: S.StructType) -> DataFrame:
        """Return the relation that stands for the table at a place; the next query has it too."""
        with _LOCK:
            number = next(each for each in count() if each not in _TAKEN)
            _TAKEN.add(number)
        self._places[number] = place
        folder = _folder(number)
        return kept_frame(
            self._spark,
            (folder, schema.json()),
            lambda: self._spark.read.schema(schema).parquet(folder),
        )

    def plan_reads(self, query: DataFrame) -> PlanReads | None:
        """Return what a query asks of the table at each place.

        Returns:
            None where the optimizer fails, as on a constant that is no number: the query fails as
            well, when its rows are asked for.
        """
        # The optimizer's plan is not in PySpark's own API; only a classic session has it.
        frame: Any = query
        try:
            plan = frame._jdf.queryExecution().optimizedPlan()
        except PySparkException:
            return None
        return reads_of(plan, self._place_of)

    def _place_of(self, relation: Any) -> int | None:
        number = _number_of(relation)
        return None if number is None else self._places.get(number)


def _number_of(relation: Any) -> int | None:
    source = relation.relation()
    if not hasattr(source, "location") or "HadoopFsRelation" not in source.getClass().getName():
        return None
    roots = source.location().rootPaths()
    path = str(roots.apply(0).toString()) if roots.size() == 1 else ""
    folder, _, number = path.rpartition("/")
    return int(number) if folder.endswith(_root()) and number.isdigit() else None


@cache
def _root_of(process: int) -> str:
    """A folder of this process for relations without files."""
    folder = tempfile.mkdtemp(prefix=f"frazil-sql-{process}-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _root() -> str:
    return _root_of(os.getpid())


def _folder(number: int) -> str:
    folder = os.path.join(_root(), str(number))
    os.makedirs(folder, exist_ok=True)
    return f"file://{folder}"
