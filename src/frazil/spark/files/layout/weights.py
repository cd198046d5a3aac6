"""What reading a file weighs, for Spark to make tasks of equal work."""

from __future__ import annotations

import polars as pl

from frazil.planning.scan_plan import ScanPlan


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
