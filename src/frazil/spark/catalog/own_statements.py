"""Statements that Frazil itself gives to Spark, whose parser leaves their names alone.

The virtual machine calls back in another thread of Python than the one that called it, and in the
same thread of its own: what marks a statement is that thread's.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pyspark.sql import SparkSession

_MARK: Final = "frazil.own.statement"


@contextmanager
def own_statements(spark: SparkSession) -> Iterator[None]:
    """Mark what the thread parses in the block as Frazil's own."""
    context = spark.sparkContext
    before = context.getLocalProperty(_MARK)
    context.setLocalProperty(_MARK, "true")
    try:
        yield
    finally:
        context.setLocalProperty(_MARK, before)  # type: ignore[arg-type]


def parses_own_statement(spark: SparkSession) -> bool:
    """Return whether what the thread parses is Frazil's own."""
    return spark.sparkContext.getLocalProperty(_MARK) is not None
