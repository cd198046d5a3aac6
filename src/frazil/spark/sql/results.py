"""Results of statements that are no queries: a few rows of text."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as S

from frazil.spark.sql.kept_frames import kept_frame


def empty_result(spark: SparkSession) -> DataFrame:
    """Return the result of a statement that has none."""
    return kept_frame(spark, "nothing", lambda: spark.createDataFrame([], S.StructType([])))


def table_of(
    spark: SparkSession, columns: Sequence[str], rows: Sequence[Sequence[object]]
) -> DataFrame:
    """Return rows of text, booleans or NULL; a column is boolean whose name begins with ``is``."""
    fields = [
        S.StructField(name, S.BooleanType() if name.startswith("is") else S.StringType(), True)
        for name in columns
    ]
    return spark.createDataFrame([tuple(row) for row in rows], S.StructType(fields))


def matches(name: str, pattern: str | None) -> bool:
    """Return whether a name is one of a pattern of SHOW: ``*`` is any text, ``|`` means or."""
    if pattern is None:
        return True
    parts = [part.strip().replace("[", "[[]").replace("?", "[?]") for part in pattern.split("|")]
    return any(fnmatchcase(name.lower(), part.lower()) for part in parts)
