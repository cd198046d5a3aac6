"""Mends what a check found, as far as nothing is lost by it that is not lost already."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import polars as pl

from frazil.format.html_text import ShownInNotebooks
from frazil.table.maintenance.check import IN_CURRENT, CheckResult
from frazil.table.port import HandlePort
from frazil.table.snapshots.correct_entries import CorrectEntries, Figures
from frazil.table.snapshots.overwrite import DeleteFiles
from frazil.table.updates import statistics

_FIGURES: Final = {"size": "file_size_in_bytes", "record count": "record_count"}
_OF_ENTRIES: Final = ("data", "position deletes", "equality deletes", "deletion vector")
_STATISTICS: Final = ("statistics", "partition statistics")
_MENDED: Final = "mended"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RepairResult(ShownInNotebooks):
    """What a repair mended, and what it left.

    Attributes:
        removed_data_files_count: missing data files that the table no longer names; their rows are
            lost.
        corrected_files_count: files whose sizes or row counts the table now states as they are.
        removed_statistics_count: statistics that are gone and no longer registered.
        frame: the problems that are left, as in `CheckResult`.
    """

    removed_data_files_count: int
    corrected_files_count: int
    removed_statistics_count: int
    frame: pl.DataFrame

    def __repr__(self) -> str:
        lines = [
            "Repair",
            f"  removed    {self.removed_data_files_count:,} missing data files, "
            f"{self.removed_statistics_count:,} statistics",
            f"  corrected  {self.corrected_files_count:,} files",
        ]
        lines += [
            f"  left       {row['problem']} {row['kind']} {row['file_path']}"
            for row in self.frame.head(10).iter_rows(named=True)
        ]
        if len(self.frame) > 10:
            lines.append(f"  left       and {len(self.frame) - 10:,} more")
        return "\n".join(lines)


def repair(table: HandlePort, check: CheckResult) -> RepairResult:
    """Mend the current snapshot of `main` and the statistics; see `Maintenance.repair`."""
    problems = check.frame.with_columns(pl.lit(False).alias(_MENDED))
    current = problems.filter(IN_CURRENT, pl.col("kind").is_in(_OF_ENTRIES))
    lost = current.filter(pl.col("problem") == "missing", pl.col("kind") == "data")["file_path"]
    lost = lost.unique(maintain_order=True)
    wrong = current.filter(pl.col("problem").is_in(list(_FIGURES)), ~_names(lost))
    figures = {
        path: Figures(**{_FIGURES[row["problem"]]: row["found"] for row in rows.to_dicts()})
        for (path,), rows in wrong.group_by("file_path", maintain_order=True)
    }
    gone = problems.filter(pl.col("problem") == "missing", pl.col("kind").is_in(_STATISTICS))
    if len(lost):
        table.run(DeleteFiles(table.io, removed_paths=lost.to_list()))
    if figures:
        table.run(CorrectEntries(table.io, {str(path): each for path, each in figures.items()}))
    _forget_statistics(table, set(gone["file_path"]))
    mended = pl.concat([lost, wrong["file_path"], gone["file_path"]])
    is_mended = _names(mended) & pl.col("problem").is_in(["missing", *_FIGURES])
    return RepairResult(
        removed_data_files_count=len(lost),
        corrected_files_count=len(figures),
        removed_statistics_count=len(gone),
        frame=check.frame.filter(~is_mended),
    )


def _forget_statistics(table: HandlePort, paths: set[str]) -> None:
    metadata = table.metadata
    for file in metadata.statistics:
        if file.statistics_path in paths:
            table.run(statistics.remove_statistics(file.snapshot_id))
    for each in metadata.partition_statistics:
        if each.statistics_path in paths:
            table.run(statistics.remove_partition_statistics(each.snapshot_id))


def _names(paths: pl.Series) -> pl.Expr:
    return pl.col("file_path").is_in(paths.implode())
