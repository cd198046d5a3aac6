"""Writes whose tasks fail at their first attempt, after rows went into files."""

from __future__ import annotations

import sys

from pyspark import TaskContext
from pyspark.sql import SparkSession

import frazil


def fails_once(batches):
    """The rows; the first attempt fails at the end."""
    yield from batches
    if TaskContext.get().attemptNumber() == 0:
        raise RuntimeError("the first attempt fails")


def main(folder):
    spark = (
        SparkSession.builder.master("local[2, 3]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "100")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    lake = frazil.connect(spark, warehouse=f"{folder}/lake")
    lake.create_namespace("db")
    rows = spark.range(0, 4000, 1, 2).mapInArrow(fails_once, "id bigint")
    hint = {"distribution-mode": "none"}
    expected = list(range(4000))
    for name, partition_by, options in (
        ("plain", [], None),
        # Failing before the shuffle and behind it.
        ("hashed", ["bucket(3, id)"], None),
        ("direct", ["bucket(3, id)"], hint),
    ):
        table = lake.create_table(f"db.{name}", "id bigint", partition_by=partition_by)
        table.append(rows, options={"target-file-size-bytes": "4096", **(options or {})})
        found = sorted(row["id"] for row in table.to_df().collect())
        assert found == expected, (name, len(found))
    spark.stop()
    print("right")


if __name__ == "__main__":
    main(*sys.argv[1:])
