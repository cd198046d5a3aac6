"""Rows of Arrow as rows of Spark; executors import it, so it needs nothing heavy."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema


def spark_frame(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """Return rows of Arrow as Spark's, with their columns where there are none."""
    return spark.createDataFrame(rows, from_arrow_schema(rows.schema))
