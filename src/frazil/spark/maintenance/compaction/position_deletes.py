"""Position deletes in fewer files, and as deletion vectors in tables of version 3."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import polars as pl
from pyspark.sql import Column

from frazil.errors import ConflictError
from frazil.format.manifests import Content
from frazil.format.metadata import TableMetadata
from frazil.format.predicates.expressions import AlwaysTrue, Expression
from frazil.format.snapshots import Snapshot
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
        commit = port.naming_engine(self.commit)

        def run_once() -> PositionDeletesResult:
            base = port.newest()
            chosen = RewriteOptions.of_deletes(base, self.options, self.settings)
            implied = files_condition(port, base, self.where)
            head = branch_head(base, commit.branch)
            if head is None or base.format_version < 2:
                return PositionDeletesResult()
            rewrite = _DeletesRewrite(
                port=port,
                base=base,
                head=head,
                commit=commit,
                options=chosen,
                choose=self.choose,
            )
            return rewrite.run(implied, self.granularity)

        return run_with_retries(run_once, lambda _: port.retries, after=(ConflictError,))


@dataclass(frozen=True, slots=True, kw_only=True)
class _DeletesRewrite:
    """One try, at one snapshot."""

    port: SparkPort
    base: TableMetadata
    head: Snapshot
    commit: SnapshotOptions
    options: RewriteOptions
    choose: ChooseDeletes | None

    def run(
        self,
        where: Expression,
        granularity: Granularity | None,
    ) -> PositionDeletesResult:
        io = self.port.io
        whole = plan(self.base, self.head, io)
        found = self._candidates(whole, where)
        if self.choose is None:
            old = self._worth_it(found)
        else:
            old = found.join(self.choose(self.base, whole), on=KEY, how="semi", nulls_equal=True)
        if old.is_empty():
            return PositionDeletesResult()
        entries = delete_file_entries(self.base, old)
        written = self._write(whole, old, granularity)
        operation = replace_delete_files(
            self.port,
            self.base,
            self.head,
            entries,
            written=written,
            options=self.commit,
        )
        return PositionDeletesResult(
            rewritten_delete_files_count=len(entries),
            added_delete_files_count=len(written.added),
            rewritten_bytes_count=sum(file.size_in_bytes for file in entries),
            added_bytes_count=sum(file.size_in_bytes for file in written.added),
            snapshot_id=operation.snapshot_id,
        )

    def _candidates(self, whole: ScanPlan, where: Expression) -> pl.DataFrame:
        """The position deletes and vectors that apply to files of the condition alone."""
        live = live_deletes(self.base, self.head, self.port.io)
        found = live.filter(pl.col("content") == int(Content.POSITION_DELETES))
        if isinstance(where, AlwaysTrue):
            return found
        some = plan_rewrite(self.base, self.head, self.port.io, where=where)
        outside = whole.files.select("ordinal", "file_path").join(
            some.files.select("file_path"), on="file_path", how="anti"
        )
        needed = whole.delete_index.for_files(outside["ordinal"]).deletes()
        elsewhere = whole.deletes.filter(pl.col("delete").is_in(needed.implode()))
        applied = found.join(whole.deletes.select(KEY), on=KEY, how="semi", nulls_equal=True)
        return applied.join(elsewhere.select(KEY), on=KEY, how="anti", nulls_equal=True)

    def _worth_it(self, deletes: pl.DataFrame) -> pl.DataFrame:
        """Those that are worth a rewrite."""
        vectors, files = deletes.filter(_IS_VECTOR), deletes.filter(~_IS_VECTOR)
        if self.base.format_version > 2:
            # Delete files of version 2 become vectors, however large they are.
            return pl.concat([files, self._small_puffin_files(vectors)])
        chosen = [files.clear()]
        scoped = files.with_columns(partition_numbers(files).alias("scope"))
        for _, of_partition in scoped.group_by("scope", maintain_order=True):
            members = of_partition.drop("scope")
            wanted = members if self.options.rewrites_all else members.filter(self._is_badly_sized)
            sizes = wanted["file_size_in_bytes"].to_numpy()
            for run in self.options.sizes.group_slices(sizes):
                some = wanted[run]
                size = int(some["file_size_in_bytes"].sum())
                if self.options.rewrites_all or self.options.sizes.is_worth_it(len(some), size):
                    chosen.append(some)
        return pl.concat(chosen)

    def _small_puffin_files(self, vectors: pl.DataFrame) -> pl.DataFrame:
        """Vectors of Puffin files that together would fill fewer ones."""
        puffin = vectors.unique("file_path", maintain_order=True)
        if not self.options.rewrites_all:
            sizes = self.options.sizes
            puffin = puffin.filter(pl.col("file_size_in_bytes") < sizes.smallest)
            if len(puffin) < max(2, sizes.min_input_files):
                return vectors.clear()
        return vectors.join(puffin.select("file_path"), on="file_path", how="semi")

    @property
    def _is_badly_sized(self) -> pl.Expr:
        size, sizes = pl.col("file_size_in_bytes"), self.options.sizes
        return (size < sizes.smallest) | (size > sizes.largest)

    def _write(
        self, whole: ScanPlan, old: pl.DataFrame, granularity: Granularity | None
    ) -> WrittenDeletes:
        """Write what the old deletes delete of files that are still there."""
        deletes = whole.deletes.join(old.select(KEY), on=KEY, how="semi", nulls_equal=True)
        index = whole.delete_index.for_deletes(deletes["delete"])
        if index.is_empty:
            return NO_DELETES
        files = whole.restricted_to(index.ordinals())
        return write_deletes_anew(
            self.port.spark,
            plan=replace(files, deletes=deletes, delete_index=index),
            metadata=self.base,
            io=self.port.io,
            granularity=granularity,
            target_size=self.options.sizes.target,
        )
