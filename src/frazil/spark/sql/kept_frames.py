"""DataFrames without data that a session is asked for again and again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from frazil.spark.session.facts import is_stopped
from frazil.storage.caches import BoundedCache

_LOCK: Final = threading.Lock()
_KEPT: Final[dict[SparkSession, BoundedCache[DataFrame]]] = {}
_KEPT_BYTES: Final = 4 << 20
_BYTES_PER_COLUMN: Final = 512


def kept_frame(spark: SparkSession, key: Hashable, make: Callable[[], DataFrame]) -> DataFrame:
    """Return the session's DataFrame of a key; it is made where it is not kept.

    Its columns are the same at each call: a query that has it twice must not tell them apart.
    """
    known = _of(spark)
    found = known.get(key)
    if found is None:
        found = make()
        known.put(key, found, _BYTES_PER_COLUMN * (len(found.columns) + 1))
    return found


def _of(spark: SparkSession) -> BoundedCache[DataFrame]:
    """What is kept of a session; that of stopped ones is forgotten."""
    with _LOCK:
        if spark not in _KEPT:
            for stopped in [each for each in _KEPT if is_stopped(each)]:
                del _KEPT[stopped]
            _KEPT[spark] = BoundedCache(_KEPT_BYTES)
        return _KEPT[spark]
