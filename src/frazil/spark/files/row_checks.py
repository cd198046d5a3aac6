"""Checks of single values while rows are written: how Spark stops, and what its error then says."""

from __future__ import annotations

import re
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

_MARK: Final = "[frazil] "
_MARKED: Final = re.compile(r"\[frazil\] (.*?) \[/frazil\]", re.DOTALL)


def stop_with(problem: str) -> Column:
    """A value that cannot be had: evaluating it fails the write with this fact."""
    return F.raise_error(F.lit(f"{_MARK}{problem} [/frazil]"))


def stop_with_value(problem: Column) -> Column:
    """A value that stops as `stop_with` does, with a fact that a column makes of the row."""
    return F.raise_error(F.concat(F.lit(_MARK), problem, F.lit(" [/frazil]")))


def stop_with_text(problem: str) -> str:
    """SQL text that stops as `stop_with` does, with a fact that SQL text makes of the row."""
    return f"raise_error(concat('{_MARK}', {problem}, ' [/frazil]'))"


def value_problem(text: str) -> str | None:
    """The fact that a check in the rows raised, found in the text of Spark's error."""
    match = _MARKED.search(text)
    return None if match is None else match.group(1)
