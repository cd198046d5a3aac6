"""Statements of two worlds in one session: each is run, and its rows are what a hand worked out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Row = tuple[Any, ...]
Step = tuple[str, list[Row] | None]
"""A statement and its rows in any order; None where what it answers is not looked at."""


def run_steps(spark: Any, steps: Iterable[Step]) -> None:
    """Run statements one after the other by `spark.sql`.

    Raises:
        AssertionError: one has other rows.
    """
    for text, expected in steps:
        found = sorted_rows(spark, text)
        assert expected is None or found == sorted(expected, key=repr), f"{text}: {found}"


def sorted_rows(spark: Any, text: str) -> list[Row]:
    """The rows of a statement, in an order that does not depend on who wrote them."""
    return sorted((tuple(row) for row in spark.sql(text).collect()), key=repr)
