"""Mends what a check found, as far as nothing is lost by it that is not lost already."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from frazil.errors import InvalidDataFileError, MissingFileError
from frazil.format.html_text import ShownInNotebooks
from frazil.format.manifests import EntryStatus, ManifestContent, ManifestEntry
from frazil.format.metadata import TableMetadata
from frazil.planning.deletes.own_files import Rule
from frazil.storage.files import FileIO
from frazil.storage.vectors import read_deletion_vector
from frazil.table.maintenance.check import CheckResult
from frazil.table.maintenance.checks.deletes import IN_CURRENT, SCHEMAS_APART
from frazil.table.maintenance.checks.metadata import ANSWERS
from frazil.table.manifests.file_keys import FileKey, file_key
from frazil.table.manifests.files import ManifestFiles, entries_in
from frazil.table.port import HandlePort
from frazil.table.snapshots.correct_entries import CorrectEntries, Figures
from frazil.table.snapshots.overwrite import OverwriteFiles
from frazil.table.snapshots.rewrite import RewriteFiles
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
        table.run(OverwriteFiles(table.io, removed_paths=lost.to_list()))
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


_KEY: Final = ("file_path", "content_offset")


def remove_superfluous(table: HandlePort, problems: pl.DataFrame) -> tuple[int, pl.Series]:
    """Remove deletes that others of the same data file make superfluous, in one commit.

    Of several vectors of one data file that is the newest, if it has all positions of the others;
    beside a vector position delete files go, which no reader applies.

    Returns:
        How many went, and for each problem whether it is gone with them.

    Raises:
        ConflictError, CommitFailedError: others changed the table meanwhile.
    """
    told = {
        rule: {
            (row["file_path"], row["content_offset"])
            for row in problems.filter(IN_CURRENT, pl.col("problem") == rule.value).to_dicts()
        }
        for rule in (Rule.TWO_VECTORS, Rule.BESIDE_A_VECTOR)
    }
    metadata = table.metadata
    snapshot = metadata.current_snapshot
    none = pl.repeat(False, len(problems), dtype=pl.Boolean, eager=True)
    if snapshot is None or not any(told.values()):
        return 0, none
    vectors = _entries(table.io, metadata, told[Rule.TWO_VECTORS])
    removed, settled = [], set[FileKey]()
    for several in _by_data_file(vectors):
        older = _older_vectors(table.io, several)
        removed += older
        settled |= {file_key(each.data_file) for each in several} if older else set()
    ignored = _entries(table.io, metadata, told[Rule.BESIDE_A_VECTOR])
    removed += ignored
    settled |= {file_key(each.data_file) for each in ignored}
    if not removed:
        return 0, none
    files = [each.data_file for each in removed]
    table.run(RewriteFiles(table.io, removed_deletes=files, from_snapshot=snapshot.snapshot_id))
    rules = {rule.value for rule in told}
    gone = [
        row["problem"] in rules and row[IN_CURRENT] and tuple(row[n] for n in _KEY) in settled
        for row in problems.to_dicts()
    ]
    return len(removed), pl.Series(gone, dtype=pl.Boolean)


def _entries(io: FileIO, metadata: TableMetadata, keys: Collection[FileKey]) -> list[ManifestEntry]:
    """The live entries of the current snapshot's delete files with these keys."""
    if not keys:
        return []
    files = ManifestFiles(io)
    manifests = [
        each
        for each in files.manifests_of(metadata.current_snapshot)
        if each.content is ManifestContent.DELETES and each.has_live_files
    ]
    return [
        entry
        for opened in files.open_manifests(metadata, manifests)
        for entry in entries_in(metadata, opened)
        if entry.status is not EntryStatus.DELETED and file_key(entry.data_file) in keys
    ]


def _by_data_file(vectors: Sequence[ManifestEntry]) -> Iterator[list[ManifestEntry]]:
    found: dict[str | None, list[ManifestEntry]] = {}
    for each in vectors:
        found.setdefault(each.data_file.referenced_data_file, []).append(each)
    yield from found.values()


def _older_vectors(io: FileIO, vectors: Sequence[ManifestEntry]) -> list[ManifestEntry]:
    """All but the newest of a data file's vectors; none where that lacks positions of others."""
    *older, newest = sorted(vectors, key=lambda each: each.sequence_number or 0)
    if file_key(newest.data_file) in {file_key(each.data_file) for each in older}:
        return []
    try:
        kept, *others = (
            read_deletion_vector(
                io,
                each.data_file.file_path,
                offset=each.data_file.content_offset,
                length=each.data_file.content_size_in_bytes,
                cardinality=each.data_file.record_count,
            )
            for each in (newest, *older)
        )
    except (InvalidDataFileError, MissingFileError):
        return []
    return older if all(each <= kept for each in others) else []
