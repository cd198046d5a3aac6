"""What an error of Spark says, without the plan that it shows."""

from __future__ import annotations

import re
from typing import Final

from pyspark.errors import PySparkException

_PLAN: Final = re.compile(r"; line \d+ pos \d+;?.*|;?\n'?[A-Z]\w+ .*", re.DOTALL)


def without_plan(error: PySparkException) -> str:
    """Return the words of an error without the plan at their end, and without the place in it."""
    return _PLAN.sub("", str(error))
