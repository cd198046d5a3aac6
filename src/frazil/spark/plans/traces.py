"""What is told of errors to people who did not write Frazil: nothing of how Python is called."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import takewhile
from threading import local
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger

_LOGGERS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_DEPTH: Final = local()
_BRIDGE: Final = re.compile(r"py4j|\$Proxy\d")
_REFLECTION: Final = re.compile(r"^(java\.base/)?(jdk\.internal|java\.lang)\.reflect\.")
_FRAME: Final = "\tat "
_MOST: Final = 32
"""So many exceptions of one are looked at: one that is its own cause has no end."""


def cut_traces(gateway: Any, exception: Any) -> None:
    """End the traces of a Java exception, and of those in it, where Python called Java.

    What Spark did since is left; below are our objects that Spark called.
    """
    jvm = gateway.jvm
    shown = jvm.org.apache.spark.util.Utils.exceptionString
    if not has_bridge(str(shown(exception))):
        return
    for each in _all_of(exception):
        said = str(shown(each)).removeprefix(str(each.toString())).lstrip("\n")
        frames = [*takewhile(lambda line: line.startswith(_FRAME), said.splitlines())]
        end = next((at for at, line in enumerate(frames) if has_bridge(line)), None)
        if end is None:
            continue
        while end and _REFLECTION.match(frames[end - 1].removeprefix(_FRAME)):
            end -= 1
        left = gateway.new_array(jvm.java.lang.StackTraceElement, end)
        jvm.java.lang.System.arraycopy(each.getStackTrace(), 0, left, 0, end)
        each.setStackTrace(left)


def has_bridge(text: str) -> bool:
    """Whether a text tells how Python is called."""
    return _BRIDGE.search(text) is not None


def _all_of(exception: Any) -> Iterator[Any]:
    """Yield an exception, its causes, and what they suppress."""
    waiting = [exception]
    for _ in range(_MOST):
        if not waiting:
            return
        each = waiting.pop()
        yield each
        waiting += [*each.getSuppressed(), *filter(None, [each.getCause()])]


class _WithoutOwn(logging.Filter):
    """Leaves out of py4j's log the errors that are raised in the virtual machine on purpose."""

    def __init__(self, kind: type[BaseException]) -> None:
        super().__init__()
        self._kind = kind

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is written."""
        return not (record.exc_info and isinstance(record.exc_info[1], self._kind))


def keep_out_of_the_log(kind: type[BaseException]) -> None:
    """Have py4j not log errors of a class, which it does of all that its callers are answered."""
    for name in ("py4j.clientserver", "py4j.java_gateway"):
        logger = logging.getLogger(name)
        if not any(isinstance(each, _WithoutOwn) for each in logger.filters):
            logger.addFilter(_WithoutOwn(kind))


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
