"""What reading a file weighs, for Spark to make tasks of equal work."""

from __future__ import annotations

import polars as pl

from frazil.spark.read.inputs import ReadInput


def weighed_by_deletes(plan: ReadInput, files: pl.DataFrame) -> pl.DataFrame:
    """The files with a ``size`` of their own bytes and those of the deletes that apply to them.

    Spark cuts and packs files by the size that its file log states. Parts behind a file's end hold
    no row group: a size that is too large costs an empty part at most, one that is too small would
    lose rows, so sizes only grow here.

    Args:
        files: rows of the plan's files.
    """
    if plan.pairs.is_empty():
        return files
    bytes_of_delete = pl.coalesce("content_size", "size").cast(pl.Int64).clip(lower_bound=0)
    weights = (
        plan.pairs.join(files.select("ordinal"), on="ordinal", how="semi")
        .join(plan.deletes.select("delete", bytes_of_delete.alias("weight")), on="delete")
        .group_by("ordinal")
        .agg(pl.col("weight").sum())
    )
    joined = files.join(weights, on="ordinal", how="left", maintain_order="left")
    size = pl.col("size") + pl.col("weight").fill_null(0)
    return joined.with_columns(size.alias("size")).drop("weight")
