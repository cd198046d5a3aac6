"""The files of a plan as self-optimizing sees them: columns of sizes, ages and deletes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import polars as pl

from frazil.format.manifests import Content
from frazil.format.metadata import TableMetadata
from frazil.format.metadata.partition_sources import schema_with_sources
from frazil.planning.delete_load import delete_load
from frazil.planning.frames import partition_numbers
from frazil.planning.removal import partitions_of
from frazil.planning.scan_plan import ScanPlan
from frazil.table.maintenance.optimizing.settings import OptimizingSettings

IS_VECTOR = pl.col("file_format").str.to_lowercase() == "puffin"
IS_EQUALITY = pl.col("content") == int(Content.EQUALITY_DELETES)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What a plan's files are like.

    Attributes:
        files: one row for each data file: `ordinal`, `scope` (a number for each spec and
            partition), `size`, `rows`, `age_ms`, `position_files` and `position_rows` (deletes by
            position that apply to it, and about how many rows they delete), `has_vectors`,
            `equality_files` and `equality_rows` likewise, `is_fragment`, `is_undersized`,
            `has_many_deletes`.
        deletes: one row for each delete file or vector: `scope`, `content`, `age_ms`, `file_path`,
            `content_offset`, `size`, `is_vector`.
    """

    files: pl.DataFrame
    deletes: pl.DataFrame

    @property
    def equality_deletes(self) -> pl.DataFrame:
        """The rows of `deletes` that compare values."""
        return self.deletes.filter(IS_EQUALITY)

    @property
    def position_deletes(self) -> pl.DataFrame:
        """The other rows of `deletes`."""
        return self.deletes.filter(~IS_EQUALITY)


def evaluate(
    metadata: TableMetadata, plan: ScanPlan, settings: OptimizingSettings, *, now_ms: int
) -> Evaluation:
    """Return what a plan's files are like.

    Args:
        metadata: the table.
        plan: with every delete that applies to its files.
        settings: of the table.
        now_ms: the time from which ages are counted.
    """
    both = [plan.files, plan.deletes.filter(_count_of_deletes(plan))]
    numbers = partition_numbers(
        pl.concat([frame.select("spec_id", "partition") for frame in both], how="vertical_relaxed")
    ).alias("scope")
    ages = _ages(metadata, now_ms)
    size = pl.col("file_size_in_bytes")
    files = (
        plan.files.select(
            "ordinal",
            "snapshot_id",
            numbers[: len(plan.files)],
            size.cast(pl.Int64).alias("size"),
            pl.col("record_count").cast(pl.Int64).alias("rows"),
        )
        .join(ages, on="snapshot_id", how="left", maintain_order="left")
        .with_columns(pl.col("age_ms").fill_null(_oldest(metadata, now_ms)))
    )
    for name, which in (("position", ~IS_EQUALITY), ("equality", IS_EQUALITY)):
        load = delete_load(_only(plan, which)).select(
            "ordinal",
            pl.col("delete_files").alias(f"{name}_files"),
            pl.col("deleted_rows").alias(f"{name}_rows"),
        )
        if load.is_empty():
            nothing = (pl.lit(0, kind).alias(n) for n, kind in load.drop("ordinal").schema.items())
            files = files.with_columns(nothing)
            continue
        files = files.join(load, on="ordinal", how="left", maintain_order="left").with_columns(
            pl.col(f"{name}_files").fill_null(0), pl.col(f"{name}_rows").fill_null(0.0)
        )
    of_files = _only(plan, ~IS_EQUALITY & ~IS_VECTOR).delete_index.ordinals()
    limit = pl.when("has_vectors").then(settings.vector_ratio).otherwise(settings.deleted_ratio)
    files = files.with_columns(
        ((pl.col("position_files") > 0) & ~pl.col("ordinal").is_in(of_files.implode())).alias(
            "has_vectors"
        ),
        (pl.col("size") <= settings.fragment_size).alias("is_fragment"),
        (
            (pl.col("size") > settings.fragment_size) & (pl.col("size") < settings.smallest_size)
        ).alias("is_undersized"),
    ).with_columns((pl.col("position_rows") > limit * pl.col("rows")).alias("has_many_deletes"))
    deletes = (
        both[1]
        .select(
            "content",
            "snapshot_id",
            "file_path",
            "content_offset",
            numbers[len(plan.files) :],
            size.cast(pl.Int64).alias("size"),
            IS_VECTOR.alias("is_vector"),
            pl.col("record_count").cast(pl.Int64).alias("rows"),
        )
        .join(ages, on="snapshot_id", how="left", maintain_order="left")
        .with_columns(pl.col("age_ms").fill_null(_oldest(metadata, now_ms)))
    )
    return Evaluation(files.drop("snapshot_id"), deletes.drop("snapshot_id"))


def partition_paths(
    metadata: TableMetadata, plan: ScanPlan, evaluation: Evaluation
) -> dict[int, str]:
    """Return the partition of each scope as in paths; empty without partitions."""
    first = evaluation.files.group_by("scope", maintain_order=True).agg(pl.col("ordinal").first())
    files = first.select("ordinal").join(plan.files, on="ordinal", maintain_order="left")
    schema = schema_with_sources(metadata)
    return {
        scope: metadata.spec_by_id(spec_id).partition_path(schema, partition)
        for scope, spec_id, partition in zip(
            first["scope"],
            files["spec_id"],
            partitions_of(metadata, files),
            strict=True,
        )
    }


def _only(plan: ScanPlan, which: pl.Expr) -> ScanPlan:
    """The plan with some of its deletes."""
    index = plan.delete_index.of(plan.deletes.filter(which)["delete"])
    return replace(plan, delete_index=index)


def _count_of_deletes(plan: ScanPlan) -> pl.Series:
    return plan.deletes["delete"].is_in(plan.delete_index.deletes().implode())


def _ages(metadata: TableMetadata, now_ms: int) -> pl.DataFrame:
    return pl.DataFrame(
        [(each.snapshot_id, now_ms - each.timestamp_ms) for each in metadata.snapshots],
        schema={"snapshot_id": pl.Int64, "age_ms": pl.Int64},
        orient="row",
    )


def _oldest(metadata: TableMetadata, now_ms: int) -> int:
    """The age of what an expired snapshot wrote, at least."""
    return max((now_ms - each.timestamp_ms for each in metadata.snapshots), default=0)
