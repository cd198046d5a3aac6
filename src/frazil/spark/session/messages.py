"""What errors of Spark say to people: without plans and traces."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    # The prompt starts without PySpark, which takes long to import.
    from pyspark.errors import PySparkException

_NOT_FOR_PEOPLE: Final = ("JVM stacktrace", "at ", "... ", "Driver stacktrace", "SQLSTATE:")
_PLAN: Final = re.compile(r"; line \d+ pos \d+;?.*|;?\n'?[A-Z]\w+ .*", re.DOTALL)


def without_plan(error: PySparkException) -> str:
    """Return the words of an error without the plan at their end, and without the place in it."""
    return _PLAN.sub("", str(error))


def lines_for_people(text: str) -> list[str]:
    """Return the lines of an error's text up to the first one of a trace.

    Args:
        text: what the error says.
    """
    lines = []
    for line in text.splitlines():
        if line.strip().startswith(_NOT_FOR_PEOPLE):
            break
        if line.strip():
            lines.append(line.rstrip())
    return lines
