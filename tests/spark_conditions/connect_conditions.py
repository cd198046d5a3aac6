"""Conditions over Spark Connect. Run by `test_spark_conditions_connect`."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from frazil.errors import PredicateError
from frazil.format.schema import Schema
from frazil.format.types import DoubleType, LongType, NestedField
from frazil.spark.conditions import condition_of

SCHEMA = Schema((NestedField(1, "id", LongType()), NestedField(2, "g", DoubleType())))


def main(remote: str) -> None:
    spark = SparkSession.builder.remote(remote).getOrCreate()
    rows = spark.sql("select id, if(id = 2, double('NaN'), id / 2) as g from range(4)")
    spark.range(2).createOrReplaceTempView("two")
    for where in (
        "id in (select id from two) and t.id < 1",
        "not exists (select 1 from two where two.id = t.id)",
        "g > 1.5 and abs(id) > 0",
        F.col("t.g") > 1.5,
        "id = 3",
        "upper(nothing) = 'A'",
        "id + 1",
        F.col("id") + 1,
        F.col("nothing") > 1,
        "id = = 1",
    ):
        try:
            made = condition_of(
                where, SCHEMA, spark=spark, case_sensitive=False, time_zone="UTC", alias="t"
            )
        except PredicateError as error:
            print("REFUSED", str(error).splitlines()[0])
            continue
        found = [
            sorted(row.id for row in part(rows).collect())
            for part in (made.matching, made.not_matching)
        ]
        print("ROWS", *found, made.implied.to_sql())
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
