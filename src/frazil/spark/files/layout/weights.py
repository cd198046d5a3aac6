"""What reading a file weighs, for Spark to make tasks of equal work."""

from __future__ import annotations

from math import ceil

import polars as pl
from pyspark.sql import SparkSession

from frazil.planning.scan_plan import ScanPlan
from frazil.spark.session import costs
from frazil.spark.session.facts import is_connect


def weighed_by_deletes(plan: ScanPlan, files: pl.DataFrame) -> pl.DataFrame:
    """The files with a size of their own bytes and those of the deletes that apply to them.

    Spark cuts and packs files by the size that its file log states. Parts behind a file's end hold
    no row group: a size that is too large costs an empty part at most, one that is too small would
    lose rows, so sizes only grow here.

    Args:
        files: rows of the plan's files.
    """
    if plan.delete_index.is_empty:
        return files
    bytes_of_delete = pl.coalesce("content_size_in_bytes", "file_size_in_bytes").clip(lower_bound=0)
    sizes = plan.deletes.select("delete", bytes_of_delete.alias("size"))
    weights = plan.delete_index.sums(sizes["delete"], sizes["size"])
    joined = files.join(weights, on="ordinal", how="left", maintain_order="left")
    size = pl.col("file_size_in_bytes") + pl.col("sum").fill_null(0)
    return joined.with_columns(size).drop("sum")


def for_even_tasks(spark: SparkSession, files: pl.DataFrame) -> pl.DataFrame:
    """The files with sizes of which Spark makes as many tasks for each core.

    Spark fills one task after the other. Five tasks of four cores take as long as eight, and three
    cores wait for the last. So where tasks are few there are some more of them, each smaller. A
    session that sets by itself what a task reads gets what it sets.
    """
    work = files["file_size_in_bytes"] + costs.OPEN_COST
    total, largest = int(work.sum()), int(work.to_numpy().max(initial=0))
    tasks = ceil(total / costs.SPLIT)
    if tasks < 2 or is_connect(spark) or not _packs_as_spark_does(spark):
        return files
    cores = spark.sparkContext.defaultParallelism
    if not cores < tasks <= costs.EVEN_ROUNDS * cores:
        return files
    even = ceil(tasks / cores) * cores
    # A task is closed by the first file that does not fit: room for one is left in each.
    growth = even * costs.SPLIT / (total + even * largest)
    if growth <= 1:
        return files
    grown = (work * growth).cast(pl.Int64) - costs.OPEN_COST
    return files.with_columns(grown.alias("file_size_in_bytes"))


def _packs_as_spark_does(spark: SparkSession) -> bool:
    return all(
        spark.conf.get(name, None) in (None, str(own), f"{own}b")
        for name, own in costs.PACKING.items()
    )
