"""Relations without files in place of tables: what the optimizer makes of a query over them."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import cache
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as S

from frazil.spark.sql.kept_frames import kept_frame
from frazil.spark.sql.pruning.plan_reads import PlanReads, reads_of


class EmptyRelations:
    """Relations without files, one a place in a query, that a plan can be searched for."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def relation(self, place: int, schema: S.StructType) -> DataFrame:
        """Return the relation that stands for the table at a place; the next query has it too."""
        folder = _folder(place)
        return kept_frame(
            self._spark,
            (folder, schema.json()),
            lambda: self._spark.read.schema(schema).parquet(folder),
        )

    def asked(self, query: DataFrame) -> PlanReads | None:
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
        return reads_of(plan, _place_of)


def _place_of(relation: Any) -> int | None:
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


def _folder(place: int) -> str:
    folder = os.path.join(_root(), str(place))
    os.makedirs(folder, exist_ok=True)
    return f"file://{folder}"
