"""What executors' Python has of the packages that Frazil's tasks need, asked before one fails."""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from frazil.errors import ConfigurationError
from frazil.spark.session.facts import application_of, prepare_session

PACKAGES: Final = (
    "frazil",
    "fastavro",
    "fsspec",
    "mmh3",
    "numpy",
    "polars",
    "pyarrow",
    "pyroaring",
    "sqlglot",
    "thrift",
)
"""What Frazil's tasks import; Spark's own archives bring the rest."""

_NAMES: Final = "|".join((*PACKAGES, "pandas", "pyspark"))
_LACKED: Final = re.compile(rf"No module named '({_NAMES})\b")
_OTHER_FRAZIL: Final = re.compile(r"Can't get attribute '[^']*' on <module 'frazil\b[^>]*>")
_OTHER_PYTHON: Final = re.compile(
    r"Python in worker[^:\n]*different version: ?(\S+?) than that in driver:? (\S+?),"
)
_NO_PYTHON: Final = re.compile(r'Cannot run program "[^"\n]*"')
_ASKED: Final = (
    "','.join(name for name in {} if "
    "__import__('importlib.util', fromlist=['find_spec']).find_spec(name) is None)"
)
"""An expression, since a function of Frazil's would need Frazil there."""

_LACKS: Final[dict[Hashable, str | None]] = {}


def have_packages(spark: SparkSession) -> bool:
    """Return whether executors can run Frazil's Python: asked once in a session, by one small task.

    For work that can be done in another way.
    """
    key = application_of(spark)
    if key not in _LACKS:
        _LACKS[key] = _lack_of_executors(spark)
    return _LACKS[key] is None


def require_packages(spark: SparkSession) -> None:
    """Refuse what only executors' Python can do, where it cannot.

    Raises:
        ConfigurationError: it lacks a package, or is another Python than the driver's.
    """
    if have_packages(spark):
        return
    # They may have been brought since.
    lacks = _LACKS[application_of(spark)] = _lack_of_executors(spark)
    if lacks is not None:
        raise _error(lacks)


def lacks_packages(error: BaseException) -> bool:
    """Whether Spark's error says that executors have not what the driver has."""
    return _lack_in(str(error)) is not None


def packages_error(error: BaseException) -> ConfigurationError | None:
    """Return the error to raise for a task that failed as executors lack what the driver has."""
    lacks = _lack_in(str(error))
    return None if lacks is None else _error(lacks)


def _lack_of_executors(spark: SparkSession) -> str | None:
    """What executors lack, for people; None where it is nothing."""
    prepare_session(spark)
    # Spark's plain functions need no package at all.
    ask = F.udf(eval, "string", useArrow=False)
    question = F.lit(_ASKED.format(PACKAGES))
    try:
        [row] = spark.range(0, 1, 1, 1).select(ask(question)).collect()
    except Exception as error:  # Spark and the bridge to it have no class in common for this
        lacks = _lack_in(str(error))
        if lacks is None:
            raise
        return lacks
    names = [name for name in str(row[0]).split(",") if name]
    return _packages(names) if names else None


def _lack_in(text: str) -> str | None:
    python = _OTHER_PYTHON.search(text)
    if python is not None:
        return f"is Python {python[1]}, and the driver's is Python {python[2]}"
    if "PYTHON_VERSION_MISMATCH" in text:
        return "is of another version than the driver's"
    missing = _LACKED.search(text)
    if missing is not None:
        return _packages([missing[1]])
    if _OTHER_FRAZIL.search(text) is not None:
        return "has another version of the package frazil than the driver's"
    no_python = _NO_PYTHON.search(text)
    return None if no_python is None else f"cannot be started ({no_python[0]})"


def _packages(names: list[str]) -> str:
    *others, last = names
    if not others:
        return f"lacks the package {last}"
    return f"lacks the packages {', '.join(others)} and {last}"


def _error(lacks: str) -> ConfigurationError:
    return ConfigurationError(
        f"the Python of Spark's executors {lacks}: this needs Frazil and its dependencies there. "
        "Install frazil into that Python, or let PYSPARK_PYTHON or spark.pyspark.python name one "
        "that has it, of the driver's minor version (over Spark Connect: on the server, before it "
        'starts); see "Python on executors" in the guide to clusters'
    )
