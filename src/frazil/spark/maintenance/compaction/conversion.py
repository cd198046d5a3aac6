"""Equality deletes become position deletes or deletion vectors; no data file is written.

The cluster joins the keys of data files with the deletes once, as every read would have to. What it
finds is committed as a replacement: rows stay as they are, and streams pass over it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import polars as pl
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.errors import ConflictError
from frazil.format.manifests import Content
from frazil.format.metadata import TableMetadata
from frazil.format.predicates.expressions import AlwaysTrue, Expression
from frazil.format.snapshots import Snapshot
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
        commit = port.naming_engine(self.commit)

        def run_once() -> ConversionResult:
            base = port.newest()
            head = branch_head(base, commit.branch)
            if head is None or base.format_version < 2:
                return ConversionResult()
            conversion = _Conversion(port=port, base=base, head=head, commit=commit)
            return conversion.run(files_condition(port, base, self.where), self.on_progress)

        return run_with_retries(run_once, lambda _: port.retries, after=(ConflictError,))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Conversion:
    """One try, at one snapshot."""

    port: SparkPort
    base: TableMetadata
    head: Snapshot
    commit: SnapshotOptions

    def run(
        self,
        where: Expression,
        on_progress: Callable[[WriteProgress], None] | None,
    ) -> ConversionResult:
        io = self.port.io
        whole = plan(self.base, self.head, io)
        is_whole = isinstance(where, AlwaysTrue)
        some = whole if is_whole else plan_rewrite(self.base, self.head, io, where=where)
        chosen, left = _deletes_of(whole, some)
        gone = live_deletes(self.base, self.head, io).join(
            chosen, on=KEY, how="semi", nulls_equal=True
        )
        if is_whole:
            dangling = dangling_deletes(self.base, self.head, whole, io)
            gone = pl.concat([gone, dangling.filter(_BY_EQUALITY)])
        if gone.is_empty():
            return ConversionResult(left_equality_delete_files_count=left)
        converted = delete_file_entries(self.base, gone)
        written = NO_DELETES
        if len(chosen):
            written = self._write(some, chosen, on_progress)
        operation = replace_delete_files(
            self.port,
            self.base,
            self.head,
            converted,
            written=written,
            options=self.commit,
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
        self,
        some: ScanPlan,
        chosen: pl.DataFrame,
        on_progress: Callable[[WriteProgress], None] | None,
    ) -> WrittenDeletes:
        """Write the places of the rows that the deletes delete."""
        deletes = some.deletes.join(chosen, on=KEY, how="semi", nulls_equal=True)
        index = some.delete_index.for_deletes(deletes["delete"])
        files = some.restricted_to(index.ordinals())
        return write_deletes(
            self._places(replace(files, deletes=deletes, delete_index=index)),
            plan=files,
            metadata=self.base,
            io=self.port.io,
            on_progress=on_progress,
        )

    def _places(self, by_equality: ScanPlan) -> DataFrame:
        """The file and position of each row that the plan's deletes delete."""
        spark = self.port.spark
        reader = TableReader(spark, self.base, self.port.io)
        # The rows are read once: what was resolved before is used, nothing is resolved first.
        with temporary_settings(spark, {EQUALITY_SETTING: EqualityReading.KNOWN}):
            rows = reader.rows(by_equality, Projection(PLACES))
        return rows.where(F.col(DELETED)).select(FILE_ORDINAL_FIELD.name, POS)


_BY_EQUALITY: Final = pl.col("content") == int(Content.EQUALITY_DELETES)


def _deletes_of(whole: ScanPlan, some: ScanPlan) -> tuple[pl.DataFrame, int]:
    """The equality deletes that apply to files of `some` alone, and how many others there are.

    A delete that other files need too has to stay, and as long as it does nothing is won.
    """
    deletes = whole.deletes.filter(_BY_EQUALITY).select("delete", *KEY)
    if whole is some:
        return deletes.select(KEY), 0
    outside = whole.files.select("ordinal", "file_path").join(
        some.files.select("file_path"), on="file_path", how="anti"
    )
    needed = whole.delete_index.for_files(outside["ordinal"]).deletes()
    chosen = deletes.filter(~pl.col("delete").is_in(needed.implode()))
    return chosen.select(KEY), len(deletes) - len(chosen)
