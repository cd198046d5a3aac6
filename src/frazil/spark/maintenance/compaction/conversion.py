"""Equality deletes become position deletes or deletion vectors; no data file is written.

The cluster joins the keys of data files with the deletes once, as every read would have to. What it
finds is committed as a replacement: rows stay as they are, and streams pass over it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import polars as pl
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.errors import ConflictError
from frazil.format.manifests import Content
from frazil.format.metadata import TableMetadata
from frazil.format.predicates.expressions import AlwaysTrue, Expression
from frazil.planning.plan import plan, plan_rewrite
from frazil.planning.scan_plan import ScanPlan
from frazil.spark.delete_files.write import WrittenDeletes, write_deletes
from frazil.spark.deletes.resolve import EQUALITY_SETTING, PLACES, EqualityReading
from frazil.spark.files.projection import DELETED, FILE_ORDINAL_FIELD, POS, Projection
from frazil.spark.maintenance.compaction.compact import files_condition
from frazil.spark.maintenance.compaction.delete_replacement import (
    KEY,
    NO_DELETES,
    dangling_deletes,
    delete_file_entries,
    live_deletes,
    needed_elsewhere,
    replace_delete_files,
)
from frazil.spark.maintenance.compaction.results import ConversionResult
from frazil.spark.port import SparkPort
from frazil.spark.read.reader import TableReader
from frazil.spark.session.facts import temporary_settings
from frazil.spark.write.files import WriteProgress
from frazil.table.commit.retries import run_with_retries
from frazil.table.snapshots.producer import DEFAULT_OPTIONS, SnapshotOptions, branch_head


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertEqualityDeletes:
    """Turn equality deletes into position deletes or deletion vectors.

    Attributes:
        where: only deletes whose data files all may hold matching rows; all unless given.
        on_progress: called as delete files are written.
        commit: where the snapshot goes, and what its summary says.
    """

    where: str | Column | Expression | None = None
    on_progress: Callable[[WriteProgress], None] | None = None
    commit: SnapshotOptions = DEFAULT_OPTIONS

    def run(self, port: SparkPort) -> ConversionResult:
        """Run it; see `TableMaintenance.convert_equality_deletes`."""
        once = partial(self._run_once, port, port.naming_engine(self.commit))
        return run_with_retries(once, lambda _: port.retries, after=(ConflictError,))

    def _run_once(self, port: SparkPort, commit: SnapshotOptions) -> ConversionResult:
        base, io = port.newest(), port.io
        head = branch_head(base, commit.branch)
        if head is None or base.format_version < 2:
            return ConversionResult()
        where, whole = files_condition(port, base, self.where), plan(base, head, io)
        is_whole = isinstance(where, AlwaysTrue)
        some = whole if is_whole else plan_rewrite(base, head, io, where=where)
        chosen, left = _deletes_of(whole, some)
        gone = live_deletes(base, head, io).join(chosen, on=KEY, how="semi", nulls_equal=True)
        if is_whole:
            dangling = dangling_deletes(base, head, whole, io)
            gone = pl.concat([gone, dangling.filter(_BY_EQUALITY)])
        if gone.is_empty():
            return ConversionResult(left_equality_delete_files_count=left)
        converted = delete_file_entries(base, gone)
        written = self._write(port, base, some, chosen) if len(chosen) else NO_DELETES
        operation = replace_delete_files(
            port, base, head, converted, written=written, options=commit
        )
        return ConversionResult(
            converted_equality_delete_files_count=len(gone),
            added_position_delete_files_count=len(written.added),
            removed_position_delete_files_count=len(written.removed),
            deleted_rows_count=written.deleted_rows,
            left_equality_delete_files_count=left,
            snapshot_id=operation.snapshot_id,
        )

    def _write(
        self, port: SparkPort, base: TableMetadata, some: ScanPlan, chosen: pl.DataFrame
    ) -> WrittenDeletes:
        """Write the places of the rows that the deletes delete."""
        deletes = some.deletes.join(chosen, on=KEY, how="semi", nulls_equal=True)
        index = some.delete_index.for_deletes(deletes["delete"])
        files = some.restricted_to(index.ordinals())
        return write_deletes(
            _places(port, base, replace(files, deletes=deletes, delete_index=index)),
            plan=files,
            metadata=base,
            io=port.io,
            on_progress=self.on_progress,
        )


def _places(port: SparkPort, base: TableMetadata, by_equality: ScanPlan) -> DataFrame:
    """The file and position of each row that the plan's deletes delete."""
    # The rows are read once: what was resolved before is used, nothing is resolved first.
    with temporary_settings(port.spark, {EQUALITY_SETTING: EqualityReading.KNOWN}):
        rows = TableReader(port.spark, base, port.io).rows(by_equality, Projection(PLACES))
    return rows.where(F.col(DELETED)).select(FILE_ORDINAL_FIELD.name, POS)


_BY_EQUALITY: Final = pl.col("content") == int(Content.EQUALITY_DELETES)


def _deletes_of(whole: ScanPlan, some: ScanPlan) -> tuple[pl.DataFrame, int]:
    """The equality deletes that apply to files of `some` alone, and how many others there are.

    A delete that other files need too has to stay, and as long as it does nothing is won.
    """
    deletes = whole.deletes.filter(_BY_EQUALITY).select("delete", *KEY)
    if whole is some:
        return deletes.select(KEY), 0
    chosen = deletes.filter(~pl.col("delete").is_in(needed_elsewhere(whole, some).implode()))
    return chosen.select(KEY), len(deletes) - len(chosen)
