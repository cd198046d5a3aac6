"""How much of each data file is deleted, as far as metadata tells it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from frazil.format.manifests import Content
from frazil.planning.deletes.runs import Runs
from frazil.planning.scan_plan import ScanPlan


def delete_load(plan: ScanPlan) -> pl.DataFrame:
    """Return what is deleted of each data file that deletes apply to.

    A delete of one data file counts as what it says. Of a delete that applies to several, position
    or equality, each has the share that its rows are of theirs.

    Returns:
        `ordinal`, `delete_files` (their number) and `deleted_rows`, an estimate.
    """
    index = plan.delete_index
    parts = [_load_of_pairs(plan, index.pairs), *(_load_of_runs(plan, runs) for runs in index.runs)]
    return (
        pl.concat(parts)
        .group_by("ordinal")
        .agg(pl.col("delete_files").sum(), pl.col("deleted_rows").sum())
        .filter(pl.col("delete_files") > 0)
    )


def _load_of_pairs(plan: ScanPlan, which: pl.DataFrame) -> pl.DataFrame:
    """The load of deletes of single files, and of a few."""
    deletes = plan.deletes.select(
        "delete", pl.col("record_count").alias("deletes"), "referenced_data_file", "content"
    )
    rows = plan.files.select("ordinal", "record_count")
    pairs = which.join(deletes, on="delete").join(rows, on="ordinal")
    is_of_one_file = pl.col("referenced_data_file").is_not_null() & (
        pl.col("content") == int(Content.POSITION_DELETES)
    )
    all_rows = pl.col("record_count").sum().over("delete")
    share = (pl.col("deletes") * pl.col("record_count") / all_rows).fill_nan(0.0)
    deleted = pl.when(is_of_one_file).then(pl.col("deletes").cast(pl.Float64)).otherwise(share)
    return (
        pairs.with_columns(deleted.alias("deleted"))
        .group_by("ordinal")
        .agg(
            pl.len().cast(pl.Int64).alias("delete_files"),
            pl.col("deleted").sum().alias("deleted_rows"),
        )
    )


def _load_of_runs(plan: ScanPlan, runs: Runs) -> pl.DataFrame:
    """The load of deletes of many files, without a look at each pair."""
    records = _by_number(plan.files["ordinal"], plan.files["record_count"])[runs.order]
    deletes = _by_number(plan.deletes["delete"], plan.deletes["record_count"])[runs.deletes]
    before = np.concatenate([[0.0], np.cumsum(records)])
    reached = before[runs.end] - before[runs.start]
    share = np.divide(deletes, reached, out=np.zeros(len(deletes)), where=reached > 0)
    return pl.DataFrame(
        {
            "ordinal": runs.order,
            "delete_files": runs.sums(np.ones(len(deletes))).astype(np.int64),
            "deleted_rows": np.maximum(runs.sums(share), 0.0) * records,
        }
    )


def _by_number(numbers: pl.Series, values: pl.Series) -> npt.NDArray[np.float64]:
    """The values at the places of their numbers."""
    placed = np.zeros(int(str(numbers.max())) + 1)
    placed[numbers.to_numpy()] = values.to_numpy()
    return placed
