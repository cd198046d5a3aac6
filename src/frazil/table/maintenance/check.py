"""Whether everything that a table's metadata names is there, and is what the metadata says."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

import polars as pl

from frazil.catalog.protocol import Catalog, LoadedTable
from frazil.errors import InvalidFormatError, MissingFileError
from frazil.format.html_text import ShownInNotebooks
from frazil.format.manifests import ManifestFile
from frazil.format.metadata import TableMetadata
from frazil.format.snapshots import Snapshot
from frazil.planning.cache import ManifestCache
from frazil.planning.load import (
    ManifestLoader,
    batches_of_files,
    file_count_of,
    listed_manifests,
)
from frazil.storage.files import FileIO
from frazil.storage.side_by_side import WAITING_THREADS, in_threads
from frazil.table.maintenance.checks.deletes import IN_CURRENT, check_deletes
from frazil.table.maintenance.checks.files import (
    PROBLEMS,
    STATED,
    check_entries,
    problem,
    stated_entries,
)
from frazil.table.maintenance.checks.metadata import metadata_problems
from frazil.table.maintenance.progress import (
    MaintenanceProgress,
    OnMaintenance,
    StageCount,
    tell_nobody,
)

_SHOWN: Final = 10
_FILES_BETWEEN: Final = 10_000
"""So many files are looked at before it is told."""
_STATED_OF_FILES: Final = ("file_path", "file_size_in_bytes", "record_count")
_DIGEST: Final = {"digest": pl.UInt64(), "other_digest": pl.UInt64()}

CheckFiles = Callable[[Sequence[ManifestFile]], tuple[int, pl.DataFrame, int]]
"""Looks at the files of manifests: how many there are, what is wrong with them, and how many
problems there are with those that are not named."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CheckResult(ShownInNotebooks):
    """What a check found.

    Attributes:
        frame: a Polars frame, a row for each problem: `file_path`; `kind` of the file; `problem`,
            which is ``missing``, ``unreadable``, ``size``, ``record count``, or of deletes
            ``two vectors`` (for one data file), ``beside a vector``, ``other partition`` (than the
            data file's), ``no data file`` or ``no equality ids``; or of the metadata ``value``
            (which others cannot read), ``elsewhere`` (a manifest that may be another table's) or
            ``name`` (which a namespace has too); what the metadata says (`stated`) and what was
            `found`; of a deletion vector `content_offset`; the `reason` that a file cannot be
            read; and whether the current snapshot of `main` has the file
            (`in_current_snapshot`). Of more than 100 000 problems with files of a large table some
            are left out.
        problems_count: all problems, with those that `frame` leaves out.
        snapshots_count, manifests_count, files_count: how many were looked at.
    """

    frame: pl.DataFrame
    problems_count: int
    snapshots_count: int
    manifests_count: int
    files_count: int

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong."""
        return self.frame.is_empty()

    def __repr__(self) -> str:
        lines = [
            "Check",
            f"  looked at  {self.snapshots_count:,} snapshots, {self.manifests_count:,} manifests, "
            f"{self.files_count:,} files",
        ]
        if self.is_sound:
            return "\n".join([*lines, "  problems   none"])
        counts = self.frame.group_by("problem", "kind", maintain_order=True).len()
        lines += [f"  {name:<12} {count:,} of {kind}" for name, kind, count in counts.rows()]
        for row in self.frame.head(_SHOWN).iter_rows(named=True):
            facts = "" if row["stated"] is None else f": {row['stated']} is {row['found']}"
            why = "" if row["reason"] is None else f": {row['reason']}"
            lines.append(f"  {row['problem']:<12} {row['file_path']}{facts}{why}")
        left_out = self.problems_count - len(self.frame.head(_SHOWN))
        if left_out:
            lines.append(f"  and {left_out:,} more")
        return "\n".join(lines)


def check_table(
    io: FileIO,
    table: LoadedTable,
    check_files: CheckFiles,
    *,
    catalog: Catalog,
    tell: OnMaintenance = tell_nobody,
) -> CheckResult:
    """Look at all that a table's snapshots reach, its statistics, and the log of its metadata.

    Args:
        table: as it is now.
        check_files: looks at data and delete files.
        catalog: that the table is in.
        tell: called with what it is at, by the threads that look.

    Raises:
        StorageError: the store does not answer.
    """
    metadata = table.metadata
    tell(MaintenanceProgress("reading manifests"))
    lists = _lists(io, metadata.snapshots)
    listed = {
        snapshot.snapshot_id: manifests
        for snapshot, (manifests, _) in zip(metadata.snapshots, lists, strict=True)
    }
    every = {m.manifest_path: m for m in chain.from_iterable(listed.values())}
    broken = check_manifests(io, metadata, list(every.values()), tell)
    problems = [frame for _, frame in lists if frame is not None]
    problems += [frame for frame in broken.values() if frame is not None]
    lost = {path for path, frame in broken.items() if frame is not None}
    readable = [m for m in every.values() if m.manifest_path not in lost]
    count, of_files, unnamed = check_files([each for each in readable if each.has_live_files])
    problems += [
        of_files,
        *_other_files(io, metadata),
        *metadata_problems(catalog, table, every.values()),
    ]
    found = pl.concat([pl.DataFrame(schema=PROBLEMS), *problems])
    current = listed.get(metadata.current_snapshot_id or -1, ())
    told = found.with_row_index("nth")
    inside = _numbers_in_snapshot(io, metadata, current, lost, told)
    of_files = told.select(*PROBLEMS, pl.col("nth").is_in(inside.implode()).alias(IN_CURRENT))
    tell(MaintenanceProgress("comparing deletes"))
    of_deletes = check_deletes(io, metadata, listed, lost)
    tell(MaintenanceProgress("done"))
    frame = pl.concat([of_files, of_deletes])
    return CheckResult(
        frame=frame,
        problems_count=len(frame) + unnamed,
        snapshots_count=len(metadata.snapshots),
        manifests_count=len(every),
        files_count=count,
    )


def check_files_here(
    io: FileIO, metadata: TableMetadata, tell: OnMaintenance = tell_nobody
) -> CheckFiles:
    """Return what looks at files beside the session, of some manifests at a time."""

    def check_files(manifests: Sequence[ManifestFile]) -> tuple[int, pl.DataFrame, int]:
        counting = StageCount(tell, "checking files", sum(map(file_count_of, manifests)))
        seen = _Seen()
        problems = [pl.DataFrame(schema=PROBLEMS)]
        for stated in _stated_facts(io, metadata, manifests):
            new = seen.take_new(stated)
            for some in new.iter_slices(_FILES_BETWEEN):
                problems.append(check_entries(io, some))
                counting.add(len(some))
            counting.add(len(stated) - len(new))
        return seen.files, pl.concat(problems), 0

    return check_files


class _Seen:
    """What entries stated before, as 128 bits of each: a file is not looked at again for it."""

    def __init__(self) -> None:
        self._entries = pl.DataFrame(schema=_DIGEST)
        self._paths = pl.DataFrame(schema=_DIGEST)

    @property
    def files(self) -> int:
        """How many files they are of."""
        return self._paths.n_unique()

    def take_new(self, stated: pl.DataFrame) -> pl.DataFrame:
        """Return the entries that state what none before did."""
        told = stated.with_columns(
            pl.struct(*STATED).hash(seed).alias(name) for seed, name in enumerate(_DIGEST)
        ).unique([*_DIGEST], keep="first", maintain_order=True)
        if len(self._entries):
            told = told.join(self._entries, on=[*_DIGEST], how="anti", maintain_order="left")
        self._entries = self._entries.vstack(told.select(*_DIGEST))
        path = pl.col("file_path")
        self._paths = self._paths.vstack(
            told.select(path.hash(seed).alias(name) for seed, name in enumerate(_DIGEST))
        )
        return told.drop(*_DIGEST)


def check_manifests(
    io: FileIO,
    metadata: TableMetadata,
    manifests: Sequence[ManifestFile],
    tell: OnMaintenance = tell_nobody,
) -> dict[str, pl.DataFrame | None]:
    """Return by path what is wrong with each manifest; None where nothing is."""
    counting = StageCount(tell, "checking manifests", len(manifests))

    def look(manifest: ManifestFile) -> pl.DataFrame | None:
        path = manifest.manifest_path
        try:
            size = io.size(path)
            if size != manifest.manifest_length:
                return problem(
                    path, "manifest", "size", stated=manifest.manifest_length, found=size
                )
            ManifestLoader.of(metadata, io, cache=ManifestCache(0)).entries([manifest])
        except MissingFileError:
            return problem(path, "manifest", "missing")
        except InvalidFormatError as error:
            return problem(path, "manifest", "unreadable", reason=str(error))
        finally:
            counting.add()
        return None

    results = in_threads(look, manifests, threads=WAITING_THREADS, name="frazil-check")
    paths = (manifest.manifest_path for manifest in manifests)
    return dict(zip(paths, results, strict=True))


def _stated_facts(
    io: FileIO, metadata: TableMetadata, manifests: Sequence[ManifestFile]
) -> Iterator[pl.DataFrame]:
    """What entries of some manifests at a time state of their files."""
    loader = ManifestLoader.of(metadata, io)
    keep = loader.has_room(manifests)
    for batch in batches_of_files(manifests):
        yield pl.concat(map(stated_entries, loader.entries(batch, keep=keep)))


def _lists(
    io: FileIO, snapshots: Iterable[Snapshot]
) -> list[tuple[tuple[ManifestFile, ...], pl.DataFrame | None]]:
    def look(snapshot: Snapshot) -> tuple[tuple[ManifestFile, ...], pl.DataFrame | None]:
        path = snapshot.manifest_list or ""
        try:
            # What was read before may be gone.
            return listed_manifests(io, snapshot, cache=ManifestCache(0)), None
        except MissingFileError:
            return (), problem(path, "manifest list", "missing")
        except InvalidFormatError as error:
            return (), problem(path, "manifest list", "unreadable", reason=str(error))

    return in_threads(look, snapshots, threads=WAITING_THREADS, name="frazil-check")


def _other_files(io: FileIO, metadata: TableMetadata) -> list[pl.DataFrame]:
    """What is wrong with statistics and with the metadata files of the log."""
    stated: list[tuple[str, str, int | None]] = [
        *(("statistics", f.statistics_path, f.file_size_in_bytes) for f in metadata.statistics),
        *(
            ("partition statistics", f.statistics_path, f.file_size_in_bytes)
            for f in metadata.partition_statistics
        ),
        *(("metadata file", entry.metadata_file, None) for entry in metadata.metadata_log),
    ]

    def look(file: tuple[str, str, int | None]) -> pl.DataFrame | None:
        kind, path, size = file
        try:
            found = io.size(path)
        except MissingFileError:
            return problem(path, kind, "missing")
        if size is None or size == found:
            return None
        return problem(path, kind, "size", stated=size, found=found)

    results = in_threads(look, stated, threads=WAITING_THREADS, name="frazil-check")
    return [frame for frame in results if frame is not None]


def _numbers_in_snapshot(
    io: FileIO,
    metadata: TableMetadata,
    manifests: Sequence[ManifestFile],
    lost: Collection[str],
    problems: pl.DataFrame,
) -> pl.Series:
    """The numbers of those problems whose file, with the figure stated, the current snapshot has.

    Args:
        lost: paths of manifests that cannot be read.
        problems: with a number (`nth`) each.
    """
    asked = problems.select("nth", "file_path", "stated")
    own: list[tuple[str, int | None, None]] = [
        (each.manifest_path, each.manifest_length, None) for each in manifests
    ]
    snapshot = metadata.current_snapshot
    if snapshot is not None and snapshot.manifest_list is not None:
        own.append((snapshot.manifest_list, None, None))
    schema = {name: STATED[name] for name in _STATED_OF_FILES}
    readable = [m for m in manifests if m.has_live_files and m.manifest_path not in lost]
    facts = chain(
        [pl.DataFrame(own, schema=schema, orient="row")],
        _stated_facts(io, metadata, readable if len(asked) else []),
    )
    path, *figures = _STATED_OF_FILES
    says_so = pl.any_horizontal(
        pl.col("stated").is_null(), *(pl.col("stated") == pl.col(name) for name in figures)
    )
    # Numbers alone are kept: a path that is kept holds the paths of its manifest.
    numbers = [
        asked.join(stated.select(path, *figures), on=path).filter(says_so)["nth"]
        for stated in facts
    ]
    return pl.concat(numbers).unique()
