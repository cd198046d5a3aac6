"""Marks of what runs, for objects of Python that Spark calls back meanwhile.

The virtual machine calls back in another thread of Python than the one that called it, and in the
same thread of its own: a mark is that thread's.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession


@contextmanager
def mark_thread(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    """Mark what the thread does in the block."""
    context = spark.sparkContext
    before = context.getLocalProperty(name)
    context.setLocalProperty(name, value)
    try:
        yield
    finally:
        context.setLocalProperty(name, before)  # type: ignore[arg-type]


def mark_of(spark: SparkSession, name: str) -> str | None:
    """Return the mark of what the thread does; None without one."""
    return spark.sparkContext.getLocalProperty(name)
