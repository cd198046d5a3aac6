"""Position deletes in fewer files, and as deletion vectors in tables of version 3."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import polars as pl
from pyspark.sql import Column

from frazil.errors import ConflictError
from frazil.format.manifests import Content
from frazil.format.metadata import TableMetadata
from frazil.format.predicates.expressions import AlwaysTrue, Expression
from frazil.planning.frames import partition_numbers
from frazil.planning.plan import plan, plan_rewrite
from frazil.planning.scan_plan import ScanPlan
from frazil.spark.delete_files.write import Granularity, WrittenDeletes, write_deletes_anew
from frazil.spark.maintenance.compaction.compact import files_condition
from frazil.spark.maintenance.compaction.delete_replacement import (
    KEY,
    NO_DELETES,
    delete_file_entries,
    live_deletes,
    needed_elsewhere,
    replace_delete_files,
)
from frazil.spark.maintenance.compaction.options import RewriteOptions, RewriteSettings
from frazil.spark.maintenance.compaction.results import PositionDeletesResult
from frazil.spark.port import SparkPort
from frazil.table.commit.retries import run_with_retries
from frazil.table.snapshots.producer import DEFAULT_OPTIONS, SnapshotOptions, branch_head

ChooseDeletes = Callable[[TableMetadata, ScanPlan], pl.DataFrame]
"""Gives the keys of deletes: their paths and offsets."""

_IS_VECTOR: Final = pl.col("file_format").str.to_lowercase() == "puffin"


@dataclass(frozen=True, slots=True, kw_only=True)
class RewritePositionDeletes:
    """Rewrite position deletes in fewer files, without those of data files that are gone.

    Attributes:
        where: only deletes whose data files all may hold matching rows; all unless given.
        granularity: of position delete files; the table's property unless given.
        options: options by the names of Java's ``rewrite_position_delete_files``.
        settings: options as keywords; they win.
        commit: where the snapshot goes, and what its summary says.
        choose: tells of a snapshot's plan which deletes are worth it, in place of their sizes.
    """

    where: str | Column | Expression | None = None
    granularity: Granularity | None = None
    options: Mapping[str, str] | None = None
    settings: RewriteSettings = field(default_factory=RewriteSettings)
    commit: SnapshotOptions = DEFAULT_OPTIONS
    choose: ChooseDeletes | None = None

    def run(self, port: SparkPort) -> PositionDeletesResult:
        """Run it; see `TableMaintenance.rewrite_position_deletes`."""
        once = partial(self._run_once, port, port.naming_engine(self.commit))
        return run_with_retries(once, lambda _: port.retries, after=(ConflictError,))

    def _run_once(self, port: SparkPort, commit: SnapshotOptions) -> PositionDeletesResult:
        base = port.newest()
        options = RewriteOptions.of_deletes(base, self.options, self.settings)
        where = files_condition(port, base, self.where)
        head = branch_head(base, commit.branch)
        if head is None or base.format_version < 2:
            return PositionDeletesResult()
        whole = plan(base, head, port.io)
        live = live_deletes(base, head, port.io)
        found = live.filter(pl.col("content") == int(Content.POSITION_DELETES))
        if not isinstance(where, AlwaysTrue):
            some = plan_rewrite(base, head, port.io, where=where)
            found = _of_files_alone(found, whole, some)
        if self.choose is None:
            old = _worth_it(found, options, base.format_version)
        else:
            old = found.join(self.choose(base, whole), on=KEY, how="semi", nulls_equal=True)
        if old.is_empty():
            return PositionDeletesResult()
        entries = delete_file_entries(base, old)
        written = self._write(port, base, whole, old, options)
        operation = replace_delete_files(port, base, head, entries, written=written, options=commit)
        return PositionDeletesResult(
            rewritten_delete_files_count=len(entries),
            added_delete_files_count=len(written.added),
            rewritten_bytes_count=sum(file.size_in_bytes for file in entries),
            added_bytes_count=sum(file.size_in_bytes for file in written.added),
            snapshot_id=operation.snapshot_id,
        )

    def _write(
        self,
        port: SparkPort,
        base: TableMetadata,
        whole: ScanPlan,
        old: pl.DataFrame,
        options: RewriteOptions,
    ) -> WrittenDeletes:
        """Write what the old deletes delete of files that are still there."""
        deletes = whole.deletes.join(old.select(KEY), on=KEY, how="semi", nulls_equal=True)
        index = whole.delete_index.for_deletes(deletes["delete"])
        if index.is_empty:
            return NO_DELETES
        files = whole.restricted_to(index.ordinals())
        return write_deletes_anew(
            port.spark,
            plan=replace(files, deletes=deletes, delete_index=index),
            metadata=base,
            io=port.io,
            granularity=self.granularity,
            target_size=options.sizes.target,
        )


def _of_files_alone(found: pl.DataFrame, whole: ScanPlan, some: ScanPlan) -> pl.DataFrame:
    """Those of some deletes that apply to files of a part of the plan, and to no others."""
    needed = needed_elsewhere(whole, some)
    elsewhere = whole.deletes.filter(pl.col("delete").is_in(needed.implode()))
    applied = found.join(whole.deletes.select(KEY), on=KEY, how="semi", nulls_equal=True)
    return applied.join(elsewhere.select(KEY), on=KEY, how="anti", nulls_equal=True)


def _worth_it(deletes: pl.DataFrame, options: RewriteOptions, format_version: int) -> pl.DataFrame:
    """Those that are worth a rewrite."""
    vectors, files = deletes.filter(_IS_VECTOR), deletes.filter(~_IS_VECTOR)
    if format_version > 2:
        # Delete files of version 2 become vectors, however large they are.
        return pl.concat([files, _small_puffin_files(vectors, options)])
    chosen, sizes = [files.clear()], options.sizes
    scoped = files.with_columns(partition_numbers(files).alias("scope"))
    size = pl.col("file_size_in_bytes")
    is_badly_sized = (size < sizes.smallest) | (size > sizes.largest)
    for _, of_partition in scoped.group_by("scope", maintain_order=True):
        members = of_partition.drop("scope")
        wanted = members if options.rewrites_all else members.filter(is_badly_sized)
        for run in sizes.group_slices(wanted["file_size_in_bytes"].to_numpy()):
            some = wanted[run]
            total = int(some["file_size_in_bytes"].sum())
            if options.rewrites_all or sizes.is_worth_it(len(some), total):
                chosen.append(some)
    return pl.concat(chosen)


def _small_puffin_files(vectors: pl.DataFrame, options: RewriteOptions) -> pl.DataFrame:
    """Vectors of Puffin files that together would fill fewer ones."""
    puffin = vectors.unique("file_path", maintain_order=True)
    if not options.rewrites_all:
        puffin = puffin.filter(pl.col("file_size_in_bytes") < options.sizes.smallest)
        if len(puffin) < max(2, options.sizes.min_input_files):
            return vectors.clear()
    return vectors.join(puffin.select("file_path"), on="file_path", how="semi")
