"""What tables of a query are called where Spark shows them: as the user wrote them.

Spark quotes the text in errors that come while rows are read, and names what it reads in plans.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from pyspark.sql import SparkSession

from frazil.spark.session.by_session import BySession
from frazil.spark.session.facts import is_temporary_view

_LOCK: Final = threading.Lock()
_IN_USE: Final = BySession[set[str]]()
_MOST: Final = 100
"""So many tables of one name are numbered; more keep names of our own."""


@contextmanager
def shown_names(spark: SparkSession, wanted: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Have names for temporary views that nobody else in the session uses meanwhile.

    Args:
        wanted: what the user wrote, by names of our own.

    Returns:
        By these names: what the user wrote, with a number where it is taken; the name itself where
        a view of the user has it.
    """
    chosen: dict[str, str] = {}
    with _LOCK:
        in_use = _IN_USE.get_or_make(spark, lambda _: set())
        for ours, said in wanted.items():
            free = _free(said, in_use)
            if free is not None:
                in_use.add(free.lower())
                chosen[ours] = free
    try:
        free_of_views = {
            ours: name for ours, name in chosen.items() if not is_temporary_view(spark, name)
        }
        yield {ours: free_of_views.get(ours, ours) for ours in wanted}
    finally:
        with _LOCK:
            in_use -= {name.lower() for name in chosen.values()}


def _free(said: str, in_use: set[str]) -> str | None:
    names = (said, *(f"{said} ({number})" for number in range(2, _MOST)))
    return next((name for name in names if name.lower() not in in_use), None)
