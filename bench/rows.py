"""The rows that are measured with."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

ROWS = 10_000_000


def flat(spark: SparkSession, rows: int = ROWS) -> DataFrame:
    """Two longs, a double, a string, an int and a timestamp."""
    return spark.range(0, rows, 1, 8).selectExpr(
        "id",
        "(id * 7919) % 1000003 as k",
        "cast(hash(id) as double) / 1000 as d",
        "concat('name-', cast(id % 100000 as string)) as s",
        "cast(id % 1000 as int) as i",
        "timestamp_micros(1704067200000000 + id * 1000000) as ts",
    )


def nested(spark: SparkSession, rows: int = ROWS // 4) -> DataFrame:
    """A struct, a list and a map beside a long."""
    return spark.range(0, rows, 1, 8).selectExpr(
        "id",
        "named_struct('a', id % 1000, 'b', concat('n', cast(id % 5000 as string))) as st",
        "array(id, id + 1, id % 10) as li",
        "map('x', cast(id % 100 as double), 'y', cast(id % 7 as double)) as ma",
    )


FLAT_DDL = "id bigint, k bigint, d double, s string, i int, ts timestamp"
NESTED_DDL = "id bigint, st struct<a: bigint, b: string>, li array<bigint>, ma map<string, double>"
