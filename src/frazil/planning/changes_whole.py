"""Snapshots whose changes are whole files, of many snapshots at once.

Where no delete file came or went, what a snapshot changed is the difference of two lists of data
files. Such snapshots are compared together, in columns, and planned as one; the others take
`frazil.planning.changes`, one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import polars as pl

from frazil.format.manifests import ManifestContent, ManifestFile
from frazil.format.metadata import TableMetadata
from frazil.format.predicates.expressions import Expression
from frazil.format.schema import Schema
from frazil.format.snapshots import Snapshot
from frazil.planning.deletes.index import DeleteIndex
from frazil.planning.frames import live_entries
from frazil.planning.load import ManifestLoader, lists_of_manifests
from frazil.planning.plan import plan
from frazil.planning.scan_plan import ScanPlan
from frazil.storage.files import FileIO

CHANGE: Final = "change"
"""The column with the place of the snapshot among those compared."""

_FILE: Final = ("file_path", "sequence_number")
_LISTS_AT_ONCE: Final = 32
_ENTRIES_AT_ONCE: Final = 500_000


@dataclass(frozen=True, slots=True)
class Compared:
    """A snapshot and its parent; None is an empty table."""

    snapshot: Snapshot
    parent: Snapshot | None


@dataclass(frozen=True, slots=True)
class WholeFiles:
    """Files of which every row came, or went, with a snapshot.

    Attributes:
        plan: the files, as often as they came or went; no deletes.
        changes: the place of each one's snapshot.
    """

    plan: ScanPlan
    changes: pl.Series


@dataclass(frozen=True, slots=True)
class WholeChanges:
    """What was compared together.

    Attributes:
        added: files that a parent does not have.
        removed: files that only a parent has.
        alone: places of the snapshots that have to be compared one after the other.
    """

    added: tuple[WholeFiles, ...]
    removed: tuple[WholeFiles, ...]
    alone: frozenset[int]


@dataclass(frozen=True, slots=True)
class _Difference:
    """The data manifests that only one of two snapshots has."""

    place: int
    snapshot: Snapshot
    is_under_deletes: bool
    here: tuple[ManifestFile, ...]
    there: tuple[ManifestFile, ...]


def whole_changes(
    metadata: TableMetadata,
    compared: Sequence[Compared],
    io: FileIO,
    *,
    where: Expression | None = None,
    schema: Schema | None = None,
) -> WholeChanges:
    """Return what these snapshots changed by whole files.

    Args:
        where: a predicate bound to `schema`; files without such rows are left out.
        schema: the schema to read by; the current one unless given.

    Raises:
        InvalidManifestError, MissingFileError, StorageError, PredicateError: as `plan`.
    """
    loader = ManifestLoader.of(metadata, io, schema)
    added: list[WholeFiles] = []
    removed: list[WholeFiles] = []
    alone: set[int] = set()
    for some in _in_parts(_differences(loader, compared, alone)):
        counts = _counts(loader, some)
        lone = _under_deletes(some, counts)
        alone |= lone
        counts = counts.filter(~pl.col(CHANGE).is_in(list(lone)))
        newest = some[-1].snapshot
        for found, wanted, side in (
            (added, counts.filter(pl.col("count") > 0), "here"),
            (removed, counts.filter(pl.col("count") < 0), "there"),
        ):
            if wanted.is_empty():
                continue
            manifests = {m.manifest_path: m for one in some for m in getattr(one, side)}
            whole = plan(
                metadata,
                newest,
                io,
                where=where,
                schema=schema,
                manifests=list(manifests.values()),
            )
            found.append(_wanted_files(whole, wanted))
    return WholeChanges(tuple(added), tuple(removed), frozenset(alone))


def _differences(
    loader: ManifestLoader, compared: Sequence[Compared], alone: set[int]
) -> Iterator[_Difference]:
    """Those of snapshots under their parent's deletes; the others are put among those alone."""
    for start in range(0, len(compared), _LISTS_AT_ONCE):
        some = compared[start : start + _LISTS_AT_ONCE]
        wanted = {
            snapshot.snapshot_id: snapshot
            for each in some
            for snapshot in (each.snapshot, each.parent)
            if snapshot is not None
        }
        found = lists_of_manifests(loader.io, wanted.values(), cache=loader.cache)
        lists = dict(zip(wanted, found, strict=True))
        for place, each in enumerate(some, start):
            here = lists[each.snapshot.snapshot_id]
            there = () if each.parent is None else lists[each.parent.snapshot_id]
            deletes = _paths(here, ManifestContent.DELETES)
            if deletes != _paths(there, ManifestContent.DELETES):
                alone.add(place)
                continue
            yield _Difference(
                place=place,
                snapshot=each.snapshot,
                is_under_deletes=bool(deletes),
                here=_unshared_manifests(here, there),
                there=_unshared_manifests(there, here),
            )


def _paths(manifests: Sequence[ManifestFile], content: ManifestContent) -> set[str]:
    return {each.manifest_path for each in manifests if each.content is content}


def _unshared_manifests(
    manifests: Sequence[ManifestFile], others: Sequence[ManifestFile]
) -> tuple[ManifestFile, ...]:
    known = _paths(others, ManifestContent.DATA)
    return tuple(
        each
        for each in manifests
        if each.content is ManifestContent.DATA
        and each.has_live_files
        and each.manifest_path not in known
    )


def _in_parts(differences: Iterator[_Difference]) -> Iterator[list[_Difference]]:
    """The differences in parts of about so many entries."""
    part: list[_Difference] = []
    entries = 0
    for each in differences:
        part.append(each)
        entries += sum(
            (manifest.added_files_count or 0) + (manifest.existing_files_count or 0)
            for manifest in (*each.here, *each.there)
        )
        if entries > _ENTRIES_AT_ONCE:
            yield part
            part, entries = [], 0
    if part:
        yield part


def _counts(loader: ManifestLoader, differences: Sequence[_Difference]) -> pl.DataFrame:
    """How often more each snapshot lists a file than its parent does; never 0."""
    rows = [
        (manifest, each.place, weight)
        for each in differences
        for manifests, weight in ((each.here, 1), (each.there, -1))
        for manifest in manifests
    ]
    distinct = {manifest.manifest_path: manifest for manifest, _, _ in rows}
    numbers = {path: number for number, path in enumerate(distinct)}
    listed = pl.DataFrame(
        [(numbers[manifest.manifest_path], place, weight) for manifest, place, weight in rows],
        schema={"manifest": pl.Int64, CHANGE: pl.Int64, "weight": pl.Int64},
        orient="row",
    )
    files = _live_files(loader.entries(list(distinct.values())))
    joined = files.join(listed, on="manifest")
    counts = joined.group_by(CHANGE, *_FILE).agg(pl.col("weight").sum().alias("count"))
    return counts.filter(pl.col("count") != 0).sort(CHANGE, *_FILE)


def _live_files(manifests: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """The live files of manifests, each with its manifest's place."""
    if not manifests:
        return pl.DataFrame(
            schema={"file_path": pl.String, "sequence_number": pl.Int64, "manifest": pl.Int64}
        )
    # Column by column: a query for each of thousands of small frames would take longer.
    columns = [pl.concat([frame[name] for frame in manifests]) for name in (*_FILE, "status")]
    places = np.repeat(np.arange(len(manifests)), [frame.height for frame in manifests])
    entries = pl.DataFrame([*columns, pl.Series("manifest", places, dtype=pl.Int64)])
    return live_entries(entries).drop("status")


def _under_deletes(differences: Sequence[_Difference], counts: pl.DataFrame) -> set[int]:
    """Those of which a file that came or went may be under a delete."""
    # Only what is as new as the snapshot itself is newer than every delete of its parent.
    newest = pl.DataFrame(
        [
            (each.place, each.snapshot.sequence_number)
            for each in differences
            if each.is_under_deletes
        ],
        schema={CHANGE: pl.Int64, "newest": pl.Int64},
        orient="row",
    )
    is_new = (pl.col("count") > 0) & (pl.col("sequence_number") >= pl.col("newest"))
    return set(counts.join(newest, on=CHANGE).filter(~is_new)[CHANGE].to_list())


def _wanted_files(whole: ScanPlan, wanted: pl.DataFrame) -> WholeFiles:
    """The wanted files of a plan, as often as they are counted."""
    files = whole.files.unique(subset=_FILE, keep="first", maintain_order=True)
    times = wanted.select(CHANGE, *_FILE, pl.col("count").abs()).select(
        pl.all().exclude("count").repeat_by("count").explode()
    )
    rows = times.join(files, on=_FILE, how="inner", maintain_order="left")
    numbered = rows.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias("ordinal"))
    chosen = replace(
        whole,
        files=numbered.select(files.columns),
        deletes=whole.deletes.clear(),
        delete_index=DeleteIndex.empty(),
        skipped=(),
    )
    return WholeFiles(chosen, rows[CHANGE])
