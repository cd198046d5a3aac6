"""Something of each session, made when it is first asked for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar
from weakref import WeakSet

from pyspark.sql import SparkSession

from frazil.spark.session.facts import is_stopped

T = TypeVar("T")


_ALL: Final[WeakSet[BySession[Any]]] = WeakSet()


class BySession(Generic[T]):
    """What is kept of each session; that of stopped ones is forgotten."""

    def __init__(self) -> None:
        _ALL.add(self)
        self._lock = threading.RLock()
        self._kept: dict[SparkSession, T] = {}

    def get(self, spark: SparkSession) -> T | None:
        """Return what is kept of a session; None where nothing is."""
        with self._lock:
            return self._kept.get(spark)

    def get_or_make(self, spark: SparkSession, make: Callable[[SparkSession], T]) -> T:
        """Return what is kept of a session, made once for it."""
        with self._lock:
            if spark not in self._kept:
                self.put(spark, make(spark))
            return self._kept[spark]

    def put(self, spark: SparkSession, value: T) -> None:
        """Keep this of a session."""
        with self._lock:
            for stopped in [each for each in self._kept if is_stopped(each)]:
                del self._kept[stopped]
            self._kept[spark] = value

    def forget(self, spark: SparkSession) -> None:
        """Keep nothing of a session."""
        with self._lock:
            self._kept.pop(spark, None)


def forget_session(spark: SparkSession) -> None:
    """Keep nothing of a session that has ended while its Spark goes on."""
    for each in tuple(_ALL):
        each.forget(spark)
