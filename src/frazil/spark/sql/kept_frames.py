"""DataFrames without data that a session is asked for again and again."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from frazil.spark.session.by_session import BySession
from frazil.storage.caches import BoundedCache

_KEPT: Final = BySession[BoundedCache[DataFrame]]()
_KEPT_BYTES: Final = 4 << 20
_BYTES_PER_COLUMN: Final = 512


def kept_frame(spark: SparkSession, key: Hashable, make: Callable[[], DataFrame]) -> DataFrame:
    """Return the session's DataFrame of a key; it is made where it is not kept.

    Its columns are the same at each call: a query that has it twice must not tell them apart.
    """
    known = _KEPT.get_or_make(spark, lambda _: BoundedCache(_KEPT_BYTES))
    found = known.get(key)
    if found is None:
        found = make()
        known.put(key, found, _BYTES_PER_COLUMN * (len(found.columns) + 1))
    return found
