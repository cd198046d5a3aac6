"""Mends what a check found, as far as nothing is lost by it that is not lost already."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import polars as pl

from frazil.format.html_text import ShownInNotebooks
from frazil.planning.deletes.own_files import Rule
from frazil.table.maintenance.check import CheckResult
from frazil.table.maintenance.checks.deletes import IN_CURRENT, SCHEMAS_APART
from frazil.table.maintenance.checks.metadata import ANSWERS
from frazil.table.maintenance.delete_repair import remove_superfluous
from frazil.table.port import HandlePort
from frazil.table.snapshots.correct_entries import CorrectEntries, Figures
from frazil.table.snapshots.overwrite import DeleteFiles
from frazil.table.updates import statistics

_FIGURES: Final = {"size": "file_size_in_bytes", "record count": "record_count"}
_OF_ENTRIES: Final = ("data", "position deletes", "equality deletes", "deletion vector")
_STATISTICS: Final = ("statistics", "partition statistics")
_MENDED: Final = "mended"
_ANSWER: Final = "answer"
_ROLL_BACK: Final = "roll back to a snapshot before it: nothing tells which deletes are meant"
_OF_RULES: Final = {
    Rule.TWO_VECTORS.value: "roll back to a snapshot before it: no vector has all positions of the "
    "others",
    Rule.BESIDE_A_VECTOR.value: "readers ignore the file",
    **dict.fromkeys(
        (
            Rule.OTHER_PARTITION.value,
            Rule.NO_DATA_FILE.value,
            Rule.NO_EQUALITY_IDS.value,
            SCHEMAS_APART,
        ),
        _ROLL_BACK,
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RepairResult(ShownInNotebooks):
    """What a repair mended, and what it left.

    Attributes:
        removed_data_files_count: missing data files that the table no longer names; their rows are
            lost.
        corrected_files_count: files whose sizes or row counts the table now states as they are.
        removed_statistics_count: statistics that are gone and no longer registered.
        removed_delete_files_count: delete files and vectors beside a newer vector of the same data
            file that has all of their positions, or that readers ignore beside a vector.
        frame: the problems that are left, as in `CheckResult`, with the `answer`: what can be done.
    """

    removed_data_files_count: int
    corrected_files_count: int
    removed_statistics_count: int
    removed_delete_files_count: int
    frame: pl.DataFrame

    def __repr__(self) -> str:
        lines = [
            "Repair",
            f"  removed    {self.removed_data_files_count:,} missing data files, "
            f"{self.removed_statistics_count:,} statistics, "
            f"{self.removed_delete_files_count:,} delete files",
            f"  corrected  {self.corrected_files_count:,} files",
        ]
        lines += [
            f"  left       {row['problem']} {row['kind']} {row['file_path']}: {row[_ANSWER]}"
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
    superfluous, settled = remove_superfluous(table, check.frame)
    mended = pl.concat([lost, wrong["file_path"], gone["file_path"]])
    is_mended = _names(mended) & pl.col("problem").is_in(["missing", *_FIGURES])
    left = check.frame.filter(~settled).filter(~is_mended)
    return RepairResult(
        removed_data_files_count=len(lost),
        corrected_files_count=len(figures),
        removed_statistics_count=len(gone),
        removed_delete_files_count=superfluous,
        frame=left.with_columns(_answer().alias(_ANSWER)),
    )


def _answer() -> pl.Expr:
    """What can be done about a problem that is left."""
    is_lost_delete = pl.col("kind").is_in([*_OF_ENTRIES[1:]]) & (pl.col("problem") == "missing")
    return (
        pl.when(pl.col("problem").is_in(list(ANSWERS)))
        .then(pl.col("problem").replace_strict(ANSWERS, default=None, return_dtype=pl.String))
        .when(~pl.col(IN_CURRENT))
        .then(pl.lit("expire the snapshots that have it"))
        .when(pl.col("problem").is_in(list(_OF_RULES)))
        .then(pl.col("problem").replace_strict(_OF_RULES, default=None, return_dtype=pl.String))
        .when(is_lost_delete)
        .then(pl.lit("roll back to a snapshot before it, or delete its rows anew"))
        .otherwise(pl.lit("roll back to a sound snapshot"))
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
