"""A score of how well files suit reads, from 0 to 100."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import polars as pl

from frazil.format.metadata import TableMetadata
from frazil.format.snapshots.summaries import count_in
from frazil.table.maintenance.optimizing.settings import OptimizingSettings

_SMALL_FILES: Final = 40
_EQUALITY_DELETES: Final = 40
_POSITION_DELETES: Final = 20
_WORST: Final = 2
"""A share of deleted rows that is so many times the trigger's is as bad as it gets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The health of a table or a partition: 100 less three penalties.

    Attributes:
        small_files: up to 40: the share of its files that files of the target size would spare.
        equality_deletes: up to 40: the share of rows deleted by value.
        position_deletes: up to 20: the share of rows deleted by position, vectors a third of it.
        files: how many data files.
        size_in_bytes: of them.
    """

    small_files: float = 0.0
    equality_deletes: float = 0.0
    position_deletes: float = 0.0
    files: int = 0
    size_in_bytes: int = 0

    @property
    def score(self) -> int:
        """100 for files that need no maintenance."""
        lost = self.small_files + self.equality_deletes + self.position_deletes
        return round(100 - lost)

    def __str__(self) -> str:
        parts = {
            "small files": self.small_files,
            "equality deletes": self.equality_deletes,
            "position deletes": self.position_deletes,
        }
        lost = [f"{name} −{points:.0f}" for name, points in parts.items() if points >= 0.5]
        return f"{self.score} of 100" + (f" ({', '.join(lost)})" if lost else "")


def partition_health(files: pl.DataFrame, settings: OptimizingSettings) -> pl.DataFrame:
    """Return the health of each scope of an evaluation's files.

    Returns:
        `scope`, `files`, `size`, `rows`, `position_rows`, `equality_rows`, `needed_files`, the
        three penalties and `score`; the worst first.
    """
    scale = settings.deleted_ratio / settings.vector_ratio
    weighed = pl.when("has_vectors").then(scale).otherwise(1.0) * pl.col("position_rows")
    summed = files.group_by("scope").agg(
        pl.len().cast(pl.Int64).alias("files"),
        pl.col("size", "rows", "position_rows", "equality_rows").sum(),
        weighed.sum().alias("weighed_rows"),
        ((pl.col("equality_files") > 0).sum()).cast(pl.Int64).alias("equality_files"),
    )
    return (
        summed.with_columns(
            ((pl.col("size") + settings.target_size - 1) // settings.target_size)
            .clip(lower_bound=1)
            .alias("needed_files")
        )
        .with_columns(_penalties(settings))
        .with_columns((100 - pl.sum_horizontal(PENALTIES)).alias("score"))
        .sort("score", "scope")
    )


PENALTIES: Final = ("small_files", "lost_by_equality", "lost_by_position")


def health_of(partitions: pl.DataFrame, settings: OptimizingSettings) -> Health:
    """Return the health of all partitions together, from what `partition_health` gives."""
    if partitions.is_empty():
        return Health()
    sums = partitions.select(
        pl.col(
            "files", "size", "rows", "position_rows", "equality_rows", "weighed_rows",
            "needed_files", "equality_files",
        ).sum()
    )  # fmt: skip
    row = sums.with_columns(_penalties(settings)).row(0, named=True)
    return Health(
        small_files=row["small_files"],
        equality_deletes=row["lost_by_equality"],
        position_deletes=row["lost_by_position"],
        files=row["files"],
        size_in_bytes=row["size"],
    )


def health_by_summary(metadata: TableMetadata) -> tuple[Health, Health] | None:
    """Return between what and what a table's health is, about, by its current snapshot's summary.

    No manifest is read. What the summary does not tell is how many partitions share the files: with
    each file in a partition of its own none is too small, with one partition they all may be.

    Returns:
        the worst and the best; None where the summary lacks a total.

    Raises:
        ConfigurationError: a property of the table is malformed.
    """
    settings = OptimizingSettings.of(metadata.properties)
    snapshot = metadata.current_snapshot
    if snapshot is None:
        return Health(), Health()
    files, size, rows = (
        count_in(snapshot.summary, f"total-{name}")
        for name in ("data-files", "files-size", "records")
    )
    if files is None or size is None or rows is None:
        return None
    if files == 0:
        return Health(), Health()
    by_position = count_in(snapshot.summary, "total-position-deletes") or 0
    by_value = count_in(snapshot.summary, "total-equality-deletes") or 0
    scale = settings.deleted_ratio / settings.vector_ratio if metadata.format_version > 2 else 1.0
    fewest = min(max(-(-size // settings.target_size), 1), files)
    is_one = all(not spec.fields for spec in metadata.partition_specs)
    frame = pl.DataFrame(
        {
            "files": [float(files)] * 2,
            "rows": [float(rows)] * 2,
            "needed_files": [float(fewest), float(fewest if is_one else files)],
            "weighed_rows": [by_position * scale] * 2,
            "equality_rows": [float(by_value)] * 2,
            "equality_files": [by_value] * 2,
        }
    ).with_columns(_penalties(settings))
    worst, best = (
        Health(
            small_files=row["small_files"],
            equality_deletes=row["lost_by_equality"],
            position_deletes=row["lost_by_position"],
            files=files,
            size_in_bytes=size,
        )
        for row in frame.iter_rows(named=True)
    )
    return worst, best


def _penalties(settings: OptimizingSettings) -> list[pl.Expr]:
    rows = pl.col("rows").clip(lower_bound=1)
    spared = (pl.col("files") - pl.col("needed_files")).clip(lower_bound=0)
    worst = _WORST * settings.deleted_ratio
    by_value = (pl.col("equality_rows") / rows / settings.deleted_ratio).clip(0, 1)
    return [
        (_SMALL_FILES * spared / pl.col("files")).alias("small_files"),
        # Every read joins, however few the keys are.
        pl.when(pl.col("equality_files") > 0)
        .then(_EQUALITY_DELETES * pl.max_horizontal(by_value, pl.lit(0.1)))
        .otherwise(0.0)
        .alias("lost_by_equality"),
        (_POSITION_DELETES * (pl.col("weighed_rows") / rows / worst).clip(0, 1)).alias(
            "lost_by_position"
        ),
    ]
