"""Errors of Spark that PySpark does not log: Frazil looks for them, or tells them itself."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import local
from typing import Final

from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger

_LOGGERS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_DEPTH: Final = local()


class _OfOthers(logging.Filter):
    """Lets through what is logged outside of `errors_unlogged`."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is written."""
        return not getattr(_DEPTH, "count", 0)


@cache
def _add_filter() -> None:
    for name in _LOGGERS:
        PySparkLogger.getLogger(name).addFilter(_OfOthers())


@contextmanager
def errors_unlogged() -> Iterator[None]:
    """Have PySpark log no error of the block, as it logs each that a query's text has.

    Its log has a trace of py4j, and may be of a query that the user did not write.
    """
    _add_filter()
    before = getattr(_DEPTH, "count", 0)
    _DEPTH.count = before + 1
    try:
        yield
    finally:
        _DEPTH.count = before


def log_as_pyspark(error: PySparkException) -> None:
    """Log an error that was not logged as PySpark would have done it."""
    log: Callable[[], None] | None = getattr(error, "_log_exception", None)
    if log is not None:
        log()
