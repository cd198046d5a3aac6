"""Which files are worth maintenance: minor, major and full runs, by the triggers of a table.

The rules are those of Amoro's self-optimizing, with four changes. Whether files have waited long
enough is told from the files themselves, so that no partition starves beside a busy one. One
equality delete that waited is enough, if reads gain by its conversion. Vectors are cheap to read:
files with them are rewritten at a larger share of deleted rows, and left alone below it. What
equality deletes delete counts after they were converted, when it is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import polars as pl

from frazil.format.manifests import Content
from frazil.format.metadata import TableMetadata
from frazil.format.metadata.partition_sources import schema_with_sources
from frazil.planning.delete_load import delete_load
from frazil.planning.frames import partition_numbers
from frazil.planning.removal import partitions_of
from frazil.planning.scan_plan import ScanPlan
from frazil.table.maintenance.optimizing.choices import (
    OptimizingChoice,
    OptimizingKind,
    OptimizingPlan,
    Work,
)
from frazil.table.maintenance.optimizing.costs import READ_COSTS, ReadCosts
from frazil.table.maintenance.optimizing.health import health_of, partition_health
from frazil.table.maintenance.optimizing.settings import OptimizingSettings


def plan_optimizing(
    metadata: TableMetadata,
    plan: ScanPlan,
    settings: OptimizingSettings,
    *,
    now_ms: int,
    costs: ReadCosts = READ_COSTS,
) -> OptimizingPlan:
    """Return what is worth doing to the files of a plan.

    Args:
        plan: with every delete that applies to its files.
        settings: triggers and thresholds.
        now_ms: the time from which ages are counted.
        costs: of reads, for the predicted gains.
    """
    seen = evaluate(metadata, plan, settings, now_ms=now_ms)
    paths = partition_paths(metadata, plan, seen)
    partitions = partition_health(seen.files, settings)
    by_gain = sorted(
        _Planner(seen, settings, costs, paths, metadata.format_version).choices(),
        key=lambda choice: -choice.gain_seconds,
    )
    taken, postponed = _split_by_limit(by_gain, settings.max_files)
    names = [paths[scope] for scope in partitions["scope"]]
    return OptimizingPlan(
        snapshot_id=plan.snapshot_id,
        health=health_of(partitions, settings),
        partitions=partitions.with_columns(pl.Series("partition", names, dtype=pl.String)),
        choices=taken,
        postponed=postponed,
        read_seconds=costs.of_files(seen.files) + len(seen.deletes) * costs.open_delete,
    )


def deletes_to_rewrite(
    metadata: TableMetadata, plan: ScanPlan, settings: OptimizingSettings, *, now_ms: int
) -> pl.DataFrame:
    """Return the position deletes and vectors that are worth a rewrite: their paths and offsets."""
    seen = evaluate(metadata, plan, settings, now_ms=now_ms)
    chosen = _deletes_to_rewrite(seen, seen.files, settings, metadata.format_version)
    return chosen.select("file_path", "content_offset")


@dataclass(frozen=True, slots=True)
class _Planner:
    """One look at a table."""

    seen: Evaluation
    settings: OptimizingSettings
    costs: ReadCosts
    paths: dict[int, str]
    version: int

    def choices(self) -> Iterator[OptimizingChoice]:
        """What is worth doing, in no order."""
        files = self.seen.files
        rewritten = [files["ordinal"].clear()]
        for choice in self._rewrites():
            rewritten.append(choice.ordinals)
            yield choice
        kept = files.filter(~pl.col("ordinal").is_in(pl.concat(rewritten).implode()))
        yield from self._conversion(kept)
        yield from self._delete_rewrite(kept)

    def _rewrites(self) -> Iterator[OptimizingChoice]:
        """Data files that are rewritten together."""
        waits = self.seen.equality_deletes.group_by("scope").agg(pl.len().alias("equality"))
        facts = (
            self.seen.files.group_by("scope", maintain_order=True)
            .agg(
                pl.col("is_fragment").sum().alias("fragments"),
                pl.col("age_ms").filter("is_fragment").max().fill_null(0).alias("waited"),
                pl.col("age_ms").max().alias("oldest"),
                pl.col("is_undersized").sum().alias("undersized"),
                pl.col("size").filter("is_undersized").sum().alias("undersized_size"),
                pl.col("size").filter("is_undersized").bottom_k(2).sum().alias("smallest_two"),
                pl.col("has_many_deletes").any().alias("many_deletes"),
                ((pl.col("position_files") + pl.col("equality_files")) > 0).any().alias("deletes"),
            )
            .join(waits, on="scope", how="left", maintain_order="left")
            .with_columns(pl.col("equality").fill_null(0))
        )
        settings = self.settings
        is_full = (
            pl.lit(settings.full_interval >= 0)
            & (pl.col("oldest") >= max(settings.full_interval, 0))
            & (pl.col("deletes") | (pl.col("fragments") > 1) | (pl.col("undersized") > 1))
        )
        is_many = pl.col("fragments") + pl.col("equality") >= settings.file_count
        is_minor = (pl.col("fragments") > 1) & (
            is_many | (pl.col("waited") >= settings.minor_interval)
        )
        merges = (
            (pl.col("undersized") > 1)
            & (pl.col("undersized_size") >= settings.target_size)
            & (pl.col("smallest_two") <= settings.target_size)
        )
        triggered = facts.with_columns(
            is_full.alias("full"),
            is_minor.alias("minor"),
            is_many.alias("many"),
            merges.alias("merges"),
        ).filter(pl.col("full") | pl.col("minor") | pl.col("merges") | pl.col("many_deletes"))
        members = self.seen.files.join(triggered.select("scope"), on="scope", how="semi")
        by_scope = {int(str(key)): f for (key,), f in members.group_by("scope")}
        for fact in triggered.iter_rows(named=True):
            yield from self._of_partition(fact, by_scope[fact["scope"]])

    def _of_partition(
        self, fact: dict[str, int], files: pl.DataFrame
    ) -> Iterator[OptimizingChoice]:
        if fact["full"]:
            wanted = files
            if not self.settings.full_rewrites_all:
                has_deletes = (pl.col("position_files") + pl.col("equality_files")) > 0
                wanted = files.filter(pl.col("is_fragment") | pl.col("is_undersized") | has_deletes)
            reason = f"its oldest file is {_age(fact['oldest'])} old"
            yield self._rewrite(OptimizingKind.FULL, wanted, reason)
            return
        left = files
        if fact["minor"]:
            count = f"{fact['fragments']} fragments"
            if fact["many"]:
                reason = f"there are {count} and {fact['equality']} equality deletes"
            else:
                reason = f"{count} wait, the oldest for {_age(fact['waited'])}"
            yield self._rewrite(OptimizingKind.MINOR, files.filter("is_fragment"), reason)
            left = files.filter(~pl.col("is_fragment"))
        heavy = left.filter("has_many_deletes")
        if len(heavy):
            share = float(heavy["position_rows"].sum()) / max(int(heavy["rows"].sum()), 1)
            reason = f"{share:.0%} of their rows are deleted by position"
            yield self._rewrite(OptimizingKind.MAJOR, heavy, reason)
        if fact["merges"]:
            small = left.filter(pl.col("is_undersized") & ~pl.col("has_many_deletes"))
            if len(small) > 1 and int(small["size"].sum()) >= self.settings.target_size:
                reason = f"{len(small)} files are smaller than they should be"
                yield self._rewrite(OptimizingKind.MAJOR, small, reason)

    def _rewrite(self, kind: OptimizingKind, files: pl.DataFrame, reason: str) -> OptimizingChoice:
        size = int(files["size"].sum())
        gone = pl.col("position_rows") / pl.col("rows").clip(lower_bound=1)
        live = float(files.select(((1 - gone.clip(0, 1)) * pl.col("size")).sum()).item())
        output = max(1, -(-int(live) // self.settings.target_size))
        deletes = int(str(files.select(pl.col("position_files").sum()).item()))
        before = self.costs.of_files(files) + deletes * self.costs.open_delete
        return OptimizingChoice(
            kind=kind,
            work=Work.REWRITE_FILES,
            partition=self.paths[int(files["scope"][0])],
            files=len(files),
            size_in_bytes=size,
            reason=reason,
            gain_seconds=before - self.costs.of_rewritten(output, live),
            cost_seconds=self.costs.of_rewrite(files, live),
            ordinals=files["ordinal"],
        )

    def _conversion(self, kept: pl.DataFrame) -> Iterator[OptimizingChoice]:
        """Equality deletes of files that stay become positions or vectors."""
        settings, deletes = self.settings, self.seen.equality_deletes
        if deletes.is_empty():
            return
        fragments = kept.group_by("scope").agg(pl.col("is_fragment").sum().alias("fragments"))
        facts = (
            deletes.group_by("scope")
            .agg(pl.len().alias("deletes"), pl.col("age_ms").max().alias("waited"))
            .join(fragments, on="scope", how="left")
            .with_columns((pl.col("deletes") + pl.col("fragments").fill_null(0)).alias("together"))
        )
        has_waited = pl.col("waited") >= settings.minor_interval
        due = facts.filter((pl.col("together") >= settings.file_count) | has_waited)
        if due.is_empty():
            return
        hit = kept.filter(pl.col("equality_files") > 0)
        if hit.is_empty():
            # The rewrites apply them all, and remove what applies to nothing afterwards.
            return
        rows = int(hit["rows"].sum())
        opened = len(deletes) * self.costs.open_delete
        tests = rows * (self.costs.test_key - self.costs.test_position)
        files = 1 if self.version > 2 else len(hit)
        gain = opened + tests - files * self.costs.open_delete
        if gain <= 0:
            # The position delete files of so few rows would cost more than the keys.
            return
        waited = int(str(due["waited"].max()))
        form = "vectors" if self.version > 2 else "positions"
        yield OptimizingChoice(
            kind=OptimizingKind.MINOR,
            work=Work.CONVERT,
            partition="",
            files=len(deletes),
            size_in_bytes=int(deletes["size"].sum()),
            reason=f"every read joins {rows:,} rows with them, the oldest for {_age(waited)}; "
            f"{form} say the same",
            gain_seconds=gain,
            cost_seconds=self.costs.of_files(hit) + opened,
        )

    def _delete_rewrite(self, kept: pl.DataFrame) -> Iterator[OptimizingChoice]:
        chosen = _deletes_to_rewrite(self.seen, kept, self.settings, self.version)
        if chosen.is_empty():
            return
        if self.version > 2 and not chosen["is_vector"].all():
            reason = "version 3 reads vectors faster than position delete files"
        elif self.version > 2:
            reason = "the vectors lie in many small Puffin files"
        else:
            reason = "data files have several position delete files each"
        scopes = kept.join(chosen.select("scope").unique(), on="scope", how="semi")
        reached = scopes.filter(pl.col("position_files") > 0)
        files = chosen.unique("file_path")
        after = 1 if self.version > 2 else min(len(reached), len(files) - 1)
        yield OptimizingChoice(
            kind=OptimizingKind.MINOR,
            work=Work.REWRITE_DELETES,
            partition="",
            files=len(files),
            size_in_bytes=int(files["size"].sum()),
            reason=reason,
            gain_seconds=(len(files) - after) * self.costs.open_delete,
            cost_seconds=2 * len(files) * self.costs.open_delete,
        )


def _deletes_to_rewrite(
    seen: Evaluation, kept: pl.DataFrame, settings: OptimizingSettings, version: int
) -> pl.DataFrame:
    """The position deletes and vectors that are worth a rewrite for the files that are kept."""
    deletes = seen.position_deletes
    if version > 2:
        vectors = deletes.filter("is_vector")
        small = vectors.filter(pl.col("size") <= settings.fragment_size)
        is_many = small["file_path"].n_unique() >= max(settings.file_count, 2)
        return pl.concat(
            [deletes.filter(~pl.col("is_vector")), small if is_many else vectors.clear()]
        )
    several = kept.filter(pl.col("position_files") > 1).select("scope").unique()
    return deletes.join(several, on="scope", how="semi")


def _split_by_limit(
    choices: list[OptimizingChoice], most: int
) -> tuple[tuple[OptimizingChoice, ...], tuple[OptimizingChoice, ...]]:
    """Choices whose data files are not too many, and the others; there is always one."""
    taken: list[OptimizingChoice] = []
    postponed: list[OptimizingChoice] = []
    files = 0
    for choice in choices:
        files += len(choice.ordinals)
        fits = choice.ordinals.is_empty() or files <= most or files == len(choice.ordinals)
        (taken if fits else postponed).append(choice)
        if not fits:
            files -= len(choice.ordinals)
    return tuple(taken), tuple(postponed)


def _age(milliseconds: int) -> str:
    seconds = milliseconds // 1000
    for unit, size in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} seconds"


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
        plan: with every delete that applies to its files.
        settings: of the table.
        now_ms: the time from which ages are counted.
    """
    both = [
        plan.files,
        plan.deletes.filter(plan.deletes["delete"].is_in(plan.delete_index.deletes().implode())),
    ]
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
        .with_columns(pl.col("age_ms").fill_null(_age_of_expired(metadata, now_ms)))
    )
    for name, which in (("position", ~IS_EQUALITY), ("equality", IS_EQUALITY)):
        load = delete_load(_with_deletes(plan, which)).select(
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
    of_files = _with_deletes(plan, ~IS_EQUALITY & ~IS_VECTOR).delete_index.ordinals()
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
        .with_columns(pl.col("age_ms").fill_null(_age_of_expired(metadata, now_ms)))
    )
    return Evaluation(files.drop("snapshot_id"), deletes.drop("snapshot_id"))


def partition_paths(
    metadata: TableMetadata, plan: ScanPlan, evaluation: Evaluation
) -> dict[int, str]:
    """Return the partition of each scope as in paths; empty without partitions."""
    first = evaluation.files.group_by("scope", maintain_order=True).agg(pl.col("ordinal").first())
    # The many files are looked through for the few, never hashed.
    some = plan.files.select("ordinal", "spec_id", "partition").join(
        first, on="ordinal", how="semi"
    )
    files = first.select("ordinal").join(some, on="ordinal", maintain_order="left")
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


def _with_deletes(plan: ScanPlan, which: pl.Expr) -> ScanPlan:
    """The plan with some of its deletes."""
    index = plan.delete_index.for_deletes(plan.deletes.filter(which)["delete"])
    return replace(plan, delete_index=index)


def _ages(metadata: TableMetadata, now_ms: int) -> pl.DataFrame:
    return pl.DataFrame(
        [(each.snapshot_id, now_ms - each.timestamp_ms) for each in metadata.snapshots],
        schema={"snapshot_id": pl.Int64, "age_ms": pl.Int64},
        orient="row",
    )


def _age_of_expired(metadata: TableMetadata, now_ms: int) -> int:
    """The age of what an expired snapshot wrote, at least."""
    return max((now_ms - each.timestamp_ms for each in metadata.snapshots), default=0)
