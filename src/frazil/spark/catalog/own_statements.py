"""Statements that Frazil itself gives to Spark, whose parser leaves their names alone."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Final

from pyspark.sql import SparkSession

from frazil.spark.session.marks import mark_of, mark_thread

_MARK: Final = "frazil.own.statement"


def own_statements(spark: SparkSession) -> AbstractContextManager[None]:
    """Mark what the thread parses in the block as Frazil's own."""
    return mark_thread(spark, _MARK, "true")


def parses_own_statement(spark: SparkSession) -> bool:
    """Return whether what the thread parses is Frazil's own."""
    return mark_of(spark, _MARK) is not None
