"""Relations without files in place of tables: what the optimizer makes of a query over them."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import threading
from functools import cache
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as S

from frazil.spark.session.facts import is_stopped
from frazil.spark.sql.pruning.plan_reads import PlanReads, reads_of
from frazil.storage.caches import BoundedCache

_LOCK: Final = threading.Lock()
_KEPT: Final[dict[SparkSession, BoundedCache[DataFrame]]] = {}
_KEPT_BYTES: Final = 4 << 20
_BYTES_PER_COLUMN: Final = 512


class EmptyRelations:
    """Relations without files, one a place in a query, that a plan can be searched for."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def relation(self, place: int, schema: S.StructType) -> DataFrame:
        """Return the relation that stands for the table at a place; the next query has it too."""
        known = _kept(self._spark)
        key = (_folder(place), schema.json())
        found = known.get(key)
        if found is None:
            found = self._spark.read.schema(schema).parquet(_folder(place))
            known.put(key, found, _BYTES_PER_COLUMN * (len(schema) + 1))
        return found

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


def _kept(spark: SparkSession) -> BoundedCache[DataFrame]:
    """The relations of a session that were made before; those of stopped ones are forgotten."""
    with _LOCK:
        if spark not in _KEPT:
            for stopped in [each for each in _KEPT if is_stopped(each)]:
                del _KEPT[stopped]
            _KEPT[spark] = BoundedCache(_KEPT_BYTES)
        return _KEPT[spark]


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
