"""What every measurement is given."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import frazil
from bench.sessions import has_java_runtime

CATALOG = "java"
"""The catalog's name: the JDBC catalog of the Java runtime keeps its own name in its rows."""


@dataclass(frozen=True, slots=True)
class Context:
    """A session, a lake, and the folder of both.

    Attributes:
        rows: how many rows the big tables have.
        rounds: how often `changes` and `maintenance` run each side, after a round to warm up; 0 for
            that round alone, which counts then.
        part: of a measurement that has several; all of them unless given.
        row: the row of `slopes` that is measured; None measures all.
        large: whether `slopes` takes its largest tables too.
    """

    spark: SparkSession
    lake: frazil.Lake
    folder: Path
    rows: int
    rounds: int = 3
    part: str | None = None
    row: int | None = None
    large: bool = False

    @property
    def has_java(self) -> bool:
        """Whether the Java runtime runs beside."""
        return has_java_runtime()

    def java(self, table: str) -> DataFrame:
        """A table of the lake through the Java runtime."""
        return self.spark.table(self.java_name(table))

    def java_name(self, table: str) -> str:
        """The name of a table of the lake in the Java runtime's catalog."""
        return f"{CATALOG}.{table}"

    @property
    def suffix(self) -> str:
        """What a figure's name ends in: the Spark version that it was measured on."""
        return f" [{self.spark.version}]"


def run_all(df: DataFrame) -> None:
    """Every column of every row, thrown away."""
    df.write.format("noop").mode("overwrite").save()
