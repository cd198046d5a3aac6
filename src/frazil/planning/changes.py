"""What snapshots changed, by files: added, removed, and those whose deletes differ.

Two snapshots are compared by the manifests that only one of them has, so that what is read grows
with the change and not with the table; only where delete files came or went are the other data
files looked at, as columns.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import polars as pl
from pyroaring import BitMap64

from frazil.format.manifests import EntryStatus, ManifestContent, ManifestFile
from frazil.format.metadata import TableMetadata
from frazil.format.predicates.expressions import Expression
from frazil.format.schema import Schema
from frazil.format.snapshots import APPEND, Snapshot
from frazil.format.snapshots.json_form import stored_id
from frazil.planning.deletes.index import DeleteIndex
from frazil.planning.frames import concat_entries, live_entries, no_entries
from frazil.planning.load import ManifestLoader, of_data, of_deletes
from frazil.planning.plan import plan
from frazil.planning.scan_plan import ScanPlan
from frazil.storage.files import FileIO
from frazil.storage.vectors import read_deletion_vector

_FILE = ("file_path", "sequence_number")
_DELETE = ("file_path", "content_offset", "sequence_number")
_PlanOf = Callable[..., ScanPlan]
"""Plans some manifests as if they were a snapshot's."""


@dataclass(frozen=True, slots=True)
class TakenRows:
    """Rows of some files that one set of deletes takes and another does not.

    Attributes:
        plan: the files with the deletes that take the rows.
        base: the same files, under the same ordinals, with the deletes that must not.
    """

    plan: ScanPlan
    base: ScanPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFiles:
    """What one snapshot changed.

    Attributes:
        snapshot: the snapshot.
        added: files that its parent does not have, with the snapshot's deletes on them.
        removed: files that only its parent has, with the parent's deletes on them.
        deleted: rows of files of both that only the snapshot's deletes take.
        restored: rows of files of both that only the parent's deletes took.
    """

    snapshot: Snapshot
    added: ScanPlan
    removed: ScanPlan
    deleted: TakenRows
    restored: TakenRows


def appended_files(
    metadata: TableMetadata,
    snapshots: Sequence[Snapshot],
    io: FileIO,
    *,
    where: Expression | None = None,
    schema: Schema | None = None,
    statistics: Mapping[str, Collection[int]] | None = None,
) -> ScanPlan:
    """The data files that those of the snapshots added which are appends.

    Deletes are not applied: an incremental read yields the rows as they were appended. The
    arguments are those of `plan`.

    Raises:
        InvalidManifestError, MissingFileError, StorageError, PredicateError: as `plan`.
    """
    appends = [snapshot for snapshot in snapshots if snapshot.operation == APPEND]
    ids = [stored_id(snapshot.snapshot_id) for snapshot in appends]
    loader = ManifestLoader.of(metadata, io, schema)
    # By path: snapshots of v1 that name their manifests inline share them.
    written = {
        manifest.manifest_path: manifest
        for snapshot in appends
        for manifest in loader.manifests(snapshot)
        if manifest.content is ManifestContent.DATA
        and manifest.added_snapshot_id == stored_id(snapshot.snapshot_id)
    }
    manifests = list(written.values())
    entries = concat_entries(loader.entries(manifests)) if manifests else no_entries()
    is_added = (pl.col("status") == int(EntryStatus.ADDED)) & pl.col("snapshot_id").is_in(ids)
    newest = appends[-1] if appends else None
    whole = plan(
        metadata,
        newest,
        io,
        where=where,
        schema=schema,
        manifests=manifests,
        statistics=statistics,
    )
    return whole.where_files(_counted_rows(whole.files, _listings(entries.filter(is_added))))


def changed_files(
    metadata: TableMetadata,
    snapshot: Snapshot,
    parent: Snapshot | None,
    io: FileIO,
    *,
    where: Expression | None = None,
    schema: Schema | None = None,
) -> ChangedFiles:
    """What a snapshot changed, compared with its parent; None is an empty table.

    Args:
        where: a predicate bound to `schema`; files without such rows are left out.
        schema: the schema to read by; the current one unless given.

    Raises:
        InvalidManifestError, MissingFileError, StorageError, PredicateError: as `plan`.
    """
    loader = ManifestLoader.of(metadata, io, schema)
    manifests = loader.manifests(snapshot)
    parents = () if parent is None else loader.manifests(parent)
    plan_of: _PlanOf = partial(plan, metadata, snapshot, io, where=where, schema=schema)
    data, parents_data = of_data(manifests), of_data(parents)
    deletes, parents_deletes = of_deletes(manifests), of_deletes(parents)
    only_here, only_there = (
        _unshared_manifests(data, parents_data),
        _unshared_manifests(parents_data, data),
    )
    live_here, live_there = (
        _load_live_entries(loader, only_here),
        _load_live_entries(loader, only_there),
    )
    added = _surplus_files(live_here, live_there)
    removed = _surplus_files(live_there, live_here)
    gone, come = (
        _unshared_manifests(parents_deletes, deletes),
        _unshared_manifests(deletes, parents_deletes),
    )
    before = after = plan_of(manifests=[])
    touched = _touched_paths(loader, plan_of, data, come, gone)
    if len(touched):
        holding = _holding_manifests(loader, data, touched)
        after = plan_of(manifests=[*holding, *deletes])
        before = plan_of(manifests=[*holding, *parents_deletes])
        common = ~_counted_rows(after.files, added)
        before, after = before.where_files(common), after.where_files(common)
    return ChangedFiles(
        snapshot=snapshot,
        added=_plan_of_files(plan_of, only_here, deletes, added),
        removed=_plan_of_files(plan_of, only_there, parents_deletes, removed),
        deleted=_rows_taken_by(after, before),
        restored=_rows_taken_by(before, after),
    )


def _plan_of_files(
    plan_of: _PlanOf,
    data: Sequence[ManifestFile],
    deletes: Sequence[ManifestFile],
    wanted: pl.DataFrame,
) -> ScanPlan:
    """The wanted files of these manifests, with the deletes on them."""
    if wanted.is_empty():
        return plan_of(manifests=[])
    whole = plan_of(manifests=[*data, *deletes])
    return whole.where_files(_counted_rows(whole.files, wanted))


def _touched_paths(
    loader: ManifestLoader,
    plan_of: _PlanOf,
    data: Sequence[ManifestFile],
    only_here: Sequence[ManifestFile],
    only_there: Sequence[ManifestFile],
) -> pl.Series:
    """Paths of data files that a delete which came or went may apply to."""
    keys_here = _load_live_entries(loader, only_here).select(_DELETE).unique()
    keys_there = _load_live_entries(loader, only_there).select(_DELETE).unique()
    paths = [pl.Series("file_path", [], dtype=pl.String)]
    for manifests, keys, others in (
        (only_here, keys_here, keys_there),
        (only_there, keys_there, keys_here),
    ):
        changed = keys.join(others, on=_DELETE, how="anti", nulls_equal=True)
        if changed.is_empty():
            continue
        matched = plan_of(manifests=[*data, *manifests])
        which = matched.deletes.join(changed, on=_DELETE, how="semi", nulls_equal=True)
        index = matched.delete_index.for_deletes(which["delete"])
        paths.append(matched.restricted_to(index.ordinals()).files["file_path"])
    return pl.concat(paths).unique()


def _rows_taken_by(whole: ScanPlan, other: ScanPlan) -> TakenRows:
    """What those deletes take that do not apply to the same file in the other plan."""
    both = whole.deletes.select("delete", *_DELETE).join(
        other.deletes.select(pl.col("delete").alias("other"), *_DELETE),
        on=_DELETE,
        nulls_equal=True,
    )
    # Only where a delete is in both plans its files have to be compared.
    here = whole.delete_index.for_deletes(both["delete"]).expanded_pairs()
    there = (
        other.delete_index.for_deletes(both["other"]).expanded_pairs().rename({"delete": "other"})
    )
    known = there.join(both.select("delete", "other"), on="other").select("ordinal", "delete")
    left = here.join(known, on=["ordinal", "delete"], how="anti")
    index = whole.delete_index.without_deletes(both["delete"]).union(DeleteIndex(left))
    ordinals = index.ordinals()
    return TakenRows(
        replace(whole, delete_index=index).restricted_to(ordinals),
        other.restricted_to(ordinals),
    )


def _unshared_manifests(
    manifests: Sequence[ManifestFile], others: Sequence[ManifestFile]
) -> list[ManifestFile]:
    known = {each.manifest_path for each in others}
    return [each for each in manifests if each.manifest_path not in known]


def _load_live_entries(loader: ManifestLoader, manifests: Sequence[ManifestFile]) -> pl.DataFrame:
    frames = loader.entries([each for each in manifests if each.has_live_files])
    return live_entries(concat_entries(frames)) if frames else no_entries()


def _holding_manifests(
    loader: ManifestLoader, manifests: Sequence[ManifestFile], paths: pl.Series
) -> list[ManifestFile]:
    """The manifests that have a live file of one of these paths."""
    live = [each for each in manifests if each.has_live_files]
    frames = loader.entries(live)
    wanted = paths.implode()
    return [
        manifest
        for manifest, frame in zip(live, frames, strict=True)
        if live_entries(frame)["file_path"].is_in(wanted).any()
    ]


def _listings(entries: pl.DataFrame) -> pl.DataFrame:
    """How often each file is listed: a table may list one twice, and its rows count twice."""
    return entries.group_by(_FILE).agg(pl.len().cast(pl.Int64).alias("count"))


def _surplus_files(entries: pl.DataFrame, others: pl.DataFrame) -> pl.DataFrame:
    """The files that are listed more often here, with how much more often."""
    joined = _listings(entries).join(_listings(others), on=_FILE, how="left", suffix="_there")
    more = pl.col("count") - pl.col("count_there").fill_null(0)
    return joined.select(*_FILE, more.alias("count")).filter(pl.col("count") > 0)


def _counted_rows(files: pl.DataFrame, counted: pl.DataFrame) -> pl.Series:
    """True for the first so many rows of each counted file."""
    numbered = files.select(*_FILE, pl.int_range(pl.len()).over(_FILE).alias("nth"))
    joined = numbered.join(counted, on=_FILE, how="left", maintain_order="left")
    return joined.select((pl.col("nth") < pl.col("count")).fill_null(False))["nth"]


MOST_VECTORS: Final = 64
MOST_BYTES: Final = 16 * 1024 * 1024
"""Up to so many vectors, and bytes of them, are compared here instead of by a read of the files."""


def without_contained(taken: TakenRows, io: FileIO) -> TakenRows:
    """The rows taken without files of which nothing can be: whose vector is part of the base's.

    A new vector of a data file holds the old one's positions (rule 217), so that it gives no row
    back; that is seen from the vectors alone. Where they are many or large all files stay.

    Raises:
        InvalidDataFileError, MissingFileError, StorageError: a vector cannot be read.
    """
    vectors, base = _vectors(taken.plan), _vectors(taken.base)
    both = vectors.join(base, on="ordinal", suffix="_base")
    sizes = pl.sum_horizontal("content_size_in_bytes", "content_size_in_bytes_base")
    size = int(both.select(sizes.sum()).item())
    if both.is_empty() or len(both) > MOST_VECTORS or size > MOST_BYTES:
        return taken
    contained = [
        row["ordinal"]
        for row in both.iter_rows(named=True)
        if _positions(io, row, "").issubset(_positions(io, row, "_base"))
    ]
    keep = ~taken.plan.files["ordinal"].is_in(contained)
    return TakenRows(taken.plan.where_files(keep), taken.base.where_files(keep))


def _vectors(plan: ScanPlan) -> pl.DataFrame:
    """The vectors of files to which nothing else applies, a row a file."""
    index = plan.delete_index
    each = pl.repeat(1, len(plan.deletes), dtype=pl.Int64, eager=True)
    counts = index.sums(plan.deletes["delete"], each)
    alone = index.for_files(counts.filter(pl.col("sum") == 1)["ordinal"]).expanded_pairs()
    columns = ["file_path", "record_count", "content_offset", "content_size_in_bytes"]
    vectors = plan.deletes.filter(pl.col("file_format") == "puffin").select("delete", *columns)
    return alone.join(vectors, on="delete").drop("delete")


def _positions(io: FileIO, vector: Mapping[str, Any], suffix: str) -> BitMap64:
    return read_deletion_vector(
        io,
        vector[f"file_path{suffix}"],
        offset=vector[f"content_offset{suffix}"],
        length=vector[f"content_size_in_bytes{suffix}"],
        cardinality=vector[f"record_count{suffix}"],
    )
