"""A snapshot and a predicate become a ScanPlan (rules 171-183)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Final, Protocol

import numpy as np
import polars as pl

from frazil.format.manifests import Content, ManifestContent, ManifestFile
from frazil.format.metadata import TableMetadata, parse_metadata
from frazil.format.partitions.partitioning import PartitionSpec
from frazil.format.predicates.bind import bind
from frazil.format.predicates.expressions import AlwaysTrue, Expression
from frazil.format.predicates.projection.project import inclusive_projection
from frazil.format.predicates.sql.parse import parse_predicate
from frazil.format.schema import Schema
from frazil.format.snapshots import Snapshot
from frazil.format.values.zones import PROCESS_ZONE
from frazil.planning.cache import ManifestCache
from frazil.planning.deletes.index import DeleteIndex
from frazil.planning.deletes.match import MatchedDeletes, match_deletes, may_hold_null_keys
from frazil.planning.deletes.own_files import PATH_BOUNDS, referenced_data_files
from frazil.planning.frames import (
    concat_entries,
    held_once,
    live_entries,
    no_entries,
    select_columns,
    with_single_values,
)
from frazil.planning.load import ManifestLoader, batches_of_files
from frazil.planning.prune import (
    keeps_partitions,
    may_match,
    may_match_manifests,
    must_match,
    needed_statistics,
    only_columns,
)
from frazil.planning.prune.ranges import VALUE_STATISTICS
from frazil.planning.scan_plan import ScanPlan, Skipped, SkipReason
from frazil.storage.avro.columns import value_column, with_values
from frazil.storage.avro.manifest_layout import PARTITION_PREFIX
from frazil.storage.files import FileIO
from frazil.storage.forks import check_threads
from frazil.storage.moved import store_key

FILE_COLUMNS = (
    "file_path",
    "file_format",
    "file_size_in_bytes",
    "record_count",
    "spec_id",
    "partition",
    "sequence_number",
    "file_sequence_number",
    "snapshot_id",
    "first_row_id",
    "split_offsets",
    "sort_order_id",
    "key_metadata",
    "scope",
)
DELETE_COLUMNS = (
    "content",
    *(name for name in FILE_COLUMNS if name not in ("first_row_id", "split_offsets")),
    "equality_ids",
    "referenced_data_file",
    "content_offset",
    "content_size_in_bytes",
)
_BY_FILE: Final = (SkipReason.EMPTY, SkipReason.PARTITION_VALUE, SkipReason.COLUMN_BOUNDS)
"""Why single files are left out, in the order of the tests."""


def plan(
    metadata: TableMetadata,
    snapshot: Snapshot | None,
    io: FileIO,
    *,
    where: Expression | None = None,
    schema: Schema | None = None,
    manifests: Sequence[ManifestFile] | None = None,
    cache: ManifestCache | None = None,
    statistics: Mapping[str, Collection[int]] | None = None,
    elsewhere: PruningElsewhere | None = None,
) -> ScanPlan:
    """What a scan of a snapshot reads.

    Args:
        metadata: the table.
        snapshot: what to read; None reads nothing.
        io: the table's files.
        where: a predicate bound to `schema`; files that hold none of its rows are left out.
        schema: the schema to read by; the current one unless given.
        manifests: read these in place of the snapshot's.
        cache: where decoded manifests are kept; with the files unless given.
        statistics: values of metrics to keep, as columns `<map>.<field id>` of the plan's files.
        elsewhere: prunes the files of large plans in other processes.

    Raises:
        InvalidManifestError: a manifest, or what the deletes say together, breaks the
            specification.
        MissingFileError, StorageError: a file cannot be read.
        PredicateError: the predicate is not bound.
        UnsupportedError: this process was forked from one that planned.
    """
    check_threads()
    schema = metadata.schema if schema is None else schema
    cache = ManifestCache.of(io) if cache is None else cache
    bound = AlwaysTrue() if where is None else where
    is_whole = manifests is None and isinstance(bound, AlwaysTrue) and not statistics
    if is_whole and snapshot is not None and snapshot.manifest_list is not None:
        return _of_snapshot(metadata, snapshot, io, schema, cache, bound, elsewhere)
    loader = ManifestLoader.of(metadata, io, schema, cache=cache)
    if manifests is None:
        manifests = () if snapshot is None else loader.manifests(snapshot)
    pruner = Pruner(metadata.specs_by_id, schema, bound)
    kept = statistics or {}
    return _plan_of_data(
        metadata,
        snapshot,
        loader,
        manifests,
        pruner,
        deletes_of=pruner,
        kept=kept,
        elsewhere=elsewhere,
    )


def kept_plan(
    metadata: TableMetadata,
    snapshot: Snapshot | None,
    io: FileIO,
    *,
    where: Expression,
    schema: Schema | None = None,
    elsewhere: PruningElsewhere | None = None,
) -> ScanPlan:
    """Return what `plan` does, the very same plan at the next call for the same rows.

    For predicates that a person writes: one of very many values costs more to look up than to plan.

    Args:
        metadata, snapshot, io, where, schema, elsewhere: as of `plan`.

    Raises:
        as `plan`.
    """
    check_threads()
    schema = metadata.schema if schema is None else schema
    if snapshot is None or snapshot.manifest_list is None:
        return plan(metadata, snapshot, io, where=where, schema=schema)
    cache = ManifestCache.of(io)
    return _of_snapshot(metadata, snapshot, io, schema, cache, where, elsewhere)


def _of_snapshot(
    metadata: TableMetadata,
    snapshot: Snapshot,
    io: FileIO,
    schema: Schema,
    cache: ManifestCache,
    bound: Expression,
    elsewhere: PruningElsewhere | None,
) -> ScanPlan:
    """The plan for a predicate, which is the same at every read of the snapshot."""
    key = (store_key(io), snapshot.manifest_list, snapshot.snapshot_id, bound)
    schemas, specs = _newest_first(schema, metadata), metadata.partition_specs
    known = cache.plan(key, schemas, specs)
    if known is not None:
        return known
    loader = ManifestLoader.of(metadata, io, schema, cache=cache)
    pruner = Pruner(metadata.specs_by_id, schema, bound)
    manifests = loader.manifests(snapshot)
    made = _plan_of_data(
        metadata,
        snapshot,
        loader,
        manifests,
        pruner,
        deletes_of=pruner,
        kept={},
        elsewhere=elsewhere,
    )
    cache.keep_plan(key, schemas, specs, made)
    return made


def plan_rewrite(
    metadata: TableMetadata,
    snapshot: Snapshot | None,
    io: FileIO,
    *,
    where: Expression,
    elsewhere: PruningElsewhere | None = None,
) -> ScanPlan:
    """What a copy-on-write change reads: files with matching rows, and every delete on their rows.

    `plan` leaves out deletes that reach no matching row; a file that is written anew also keeps
    rows that do not match, and needs the deletes of those too.

    Args:
        snapshot: what to change; None holds nothing.
        where: which rows are changed, bound to the current schema.
        elsewhere: prunes the files of large plans in other processes.

    Raises:
        InvalidManifestError, MissingFileError, StorageError, PredicateError: as `plan`.
    """
    specs, schema = metadata.specs_by_id, metadata.schema
    loader = ManifestLoader.of(metadata, io)
    manifests = () if snapshot is None else loader.manifests(snapshot)
    pruner = Pruner(specs, schema, where)
    every_row = Pruner(specs, schema, AlwaysTrue())
    return _plan_of_data(
        metadata,
        snapshot,
        loader,
        manifests,
        pruner,
        deletes_of=every_row,
        kept={},
        elsewhere=elsewhere,
    )


def _plan_of_data(
    metadata: TableMetadata,
    snapshot: Snapshot | None,
    loader: ManifestLoader,
    manifests: Sequence[ManifestFile],
    pruner: Pruner,
    *,
    deletes_of: Pruner,
    kept: Mapping[str, Collection[int]],
    elsewhere: PruningElsewhere | None,
) -> ScanPlan:
    """The plan of the data that one pruner leaves, with the deletes that another leaves."""
    schema, bound = pruner.schema, pruner.bound
    live = [manifest for manifest in manifests if manifest.has_live_files]
    data, skipped = pruner.manifests([m for m in live if m.content is ManifestContent.DATA])
    delete_manifests = [m for m in live if m.content is ManifestContent.DELETES]
    deletes = _delete_entries(loader, deletes_of, delete_manifests) if data else no_entries()
    keys = _equality_statistics(deletes)
    statistics = _union_of_ids(needed_statistics(bound), keys, kept)
    kept_columns = _value_columns(kept)
    found = _data_files(
        loader,
        data,
        pruner,
        statistics=statistics,
        columns=(*FILE_COLUMNS, *kept_columns, *_value_columns(keys)),
        elsewhere=elsewhere,
    )
    schemas = _newest_first(schema, metadata)
    specs = metadata.specs_by_id
    matched = match_deletes(found.files, deletes, specs=specs, schemas=schemas)
    files = found.files.with_columns(held_once(matched.data_scope.alias("scope")))
    deletes, index = _deletes_that_apply(deletes, matched)
    deletes = deletes.with_columns(referenced_data_files(deletes).alias("referenced_data_file"))
    decided = bool(files["all_rows_match"].all())
    columns = (
        *FILE_COLUMNS,
        "manifest",
        *(c for c in kept_columns if c in files.columns),
        "all_rows_match",
    )
    return ScanPlan(
        snapshot_id=None if snapshot is None else snapshot.snapshot_id,
        schema=schema,
        where=bound,
        residual=AlwaysTrue() if decided else bound,
        files=_with_places("ordinal", select_columns(files, columns)),
        deletes=_with_places("delete", select_columns(deletes, DELETE_COLUMNS)).with_columns(
            may_hold_null_keys(deletes, schemas)
        ),
        delete_index=index,
        manifests=tuple(manifest.manifest_path for manifest in data),
        skipped=(*skipped, *found.skipped),
        manifests_read=len(data) + len(delete_manifests),
    )


def plan_file(
    metadata_file: str, *, where: str | None = None, io: FileIO | None = None
) -> ScanPlan:
    """What a scan of the current snapshot of a metadata file reads.

    Args:
        metadata_file: the path of a table's metadata file.
        where: SQL text of a predicate; times without a zone are local times of the process.
        io: the table's files; those of the local disk unless given.

    Raises:
        PredicateError: the text is not a predicate on the table's columns.
        InvalidMetadataError, InvalidManifestError, MissingFileError, StorageError: as `plan`.
    """
    io = FileIO() if io is None else io
    metadata = parse_metadata(io.read(metadata_file), file=metadata_file)
    bound = None
    if where is not None:
        bound = bind(parse_predicate(where), metadata.schema, time_zone=PROCESS_ZONE)
    return plan(metadata, metadata.current_snapshot, io, where=bound)


@dataclass(frozen=True, slots=True)
class KeptFiles:
    """The files that a predicate leaves of some manifests.

    Attributes:
        files: live entries that may match, with the columns that were asked for, those of partition
            fields, `manifest` (the place of its manifest) and `all_rows_match`.
        skipped: live files that are left out, by reason; none has a count of 0.
    """

    files: pl.DataFrame
    skipped: tuple[Skipped, ...] = ()


@dataclass(frozen=True, slots=True)
class Pruner:
    """Leaves out manifests and files by one predicate. It may be sent to other processes.

    Attributes:
        specs: every partition spec of the table, by id.
        schema: that the predicate is bound to.
        bound: the predicate.
    """

    specs: Mapping[int, PartitionSpec]
    schema: Schema
    bound: Expression

    def manifests(
        self, manifests: Sequence[ManifestFile]
    ) -> tuple[list[ManifestFile], tuple[Skipped, ...]]:
        """The manifests that may hold files that match (rules 171, 172), and what is left out."""
        may = self.may_hold(manifests)
        left_out = [manifest for manifest, kept in zip(manifests, may, strict=True) if not kept]
        if not left_out:
            return list(manifests), ()
        counts = [(m.added_files_count, m.existing_files_count) for m in left_out]
        known = [a + e for a, e in counts if a is not None and e is not None]
        files = sum(known) if len(known) == len(counts) else None
        skipped = Skipped(SkipReason.MANIFEST_SUMMARY, len(left_out), files, None)
        return list(compress(manifests, may)), (skipped,)

    def may_hold(self, manifests: Sequence[ManifestFile]) -> list[bool]:
        """Whether the partition summaries of each manifest leave room for a match."""
        return may_match_manifests(self.bound, manifests, self.specs, self.schema)

    def partition_predicate(self, spec: PartitionSpec) -> Expression:
        """The predicate on the partitions of a spec."""
        return inclusive_projection(self.bound, spec, self.schema)

    def files(
        self,
        manifests: Sequence[ManifestFile],
        entries: Sequence[pl.DataFrame],
        *,
        columns: Collection[str],
        first: int = 0,
    ) -> KeptFiles:
        """The live files that may match, in the manifests' order.

        Args:
            manifests: whose they are.
            entries: of each.
            columns: which the kept files are to have; those that entries lack are left out.
            first: the place of the first of the manifests.
        """
        groups: dict[int, list[int]] = {}
        for index, manifest in enumerate(manifests):
            groups.setdefault(manifest.partition_spec_id, []).append(index)
        kept: list[pl.DataFrame] = []
        skipped: list[Skipped] = []
        for spec_id, indexes in groups.items():
            lengths = [len(entries[i]) for i in indexes]
            places = np.repeat(np.asarray(indexes, dtype=np.int32) + first, lengths)
            together = concat_entries([entries[i] for i in indexes])
            files = live_entries(together.with_columns(pl.Series("manifest", places, pl.Int32)))
            found, left_out = self._matching_files(files, self.specs[spec_id])
            kept.append(_needed_columns(found, columns))
            skipped += left_out
        if not kept:
            none = no_entries().with_columns(
                pl.lit(0, pl.Int32).alias("manifest"), pl.lit(True).alias("all_rows_match")
            )
            return KeptFiles(_needed_columns(none, columns))
        files = concat_entries(kept)
        if len(kept) > 1:
            files = files.sort("manifest", maintain_order=True)
        return KeptFiles(files, _totals_by_reason(skipped))

    def _matching_files(
        self, files: pl.DataFrame, spec: PartitionSpec
    ) -> tuple[pl.DataFrame, list[Skipped]]:
        skipped: list[Skipped] = []
        every = pl.lit(True).alias("all_rows_match")
        if isinstance(self.bound, AlwaysTrue) or files.is_empty():
            return files.with_columns(every), skipped
        for reason in _BY_FILE:
            kept = self._files_that_stay(reason, files, spec)
            if not kept.all():
                left_out = files["file_size_in_bytes"].filter(~kept)
                skipped.append(Skipped(reason, 0, len(left_out), int(left_out.sum())))
                files = files.filter(kept)
            if files.is_empty():
                return files.with_columns(every), skipped
        all_rows = must_match(self.bound, spec, self.schema, files)
        return files.with_columns(all_rows.alias("all_rows_match")), skipped

    def _files_that_stay(
        self, reason: SkipReason, files: pl.DataFrame, spec: PartitionSpec
    ) -> pl.Series:
        """The files that are not left out for one reason."""
        if reason is SkipReason.EMPTY:
            return files["record_count"] != 0
        if reason is SkipReason.PARTITION_VALUE:
            return keeps_partitions(self.partition_predicate(spec), files)
        return may_match(self.bound, spec, self.schema, files)


def _totals_by_reason(skipped: Iterable[Skipped]) -> tuple[Skipped, ...]:
    """Single files that are left out, once for each reason, in the order of the tests."""
    found = list(skipped)
    return tuple(
        Skipped(
            reason,
            0,
            sum(each.files or 0 for each in found if each.reason is reason),
            sum(each.size_in_bytes or 0 for each in found if each.reason is reason),
        )
        for reason in _BY_FILE
        if any(each.reason is reason for each in found)
    )


def _needed_columns(files: pl.DataFrame, columns: Collection[str]) -> pl.DataFrame:
    """The files with these columns, those of partition fields, and those of `KeptFiles`."""
    wanted = {*columns, "manifest", "all_rows_match"}
    names = [n for n in files.columns if n in wanted or n.startswith(PARTITION_PREFIX)]
    return with_single_values(files.select(names).rechunk())


class PruningElsewhere(Protocol):
    """Who prunes the files of a plan in another way than at once: other processes, or one that
    tells how far it is."""

    def __call__(
        self,
        loader: ManifestLoader,
        pruner: Pruner,
        manifests: Sequence[ManifestFile],
        *,
        statistics: Mapping[str, Collection[int]],
        columns: Collection[str],
    ) -> list[KeptFiles] | None:
        """What `files_of_manifests` gives for parts of the manifests, in their order.

        None where it is better done in this process.
        """


def files_of_manifests(
    loader: ManifestLoader,
    pruner: Pruner,
    manifests: Sequence[ManifestFile],
    *,
    statistics: Mapping[str, Collection[int]],
    columns: Collection[str],
    first: int = 0,
    keep: bool = False,
) -> KeptFiles:
    """The files of some manifests that a predicate leaves.

    Args:
        statistics: values to decode.
        columns: which the files are to have.
        first: the place of the first of the manifests.
        keep: whether decoded manifests are kept.

    Raises:
        InvalidManifestError, MissingFileError, StorageError: a manifest cannot be read.
    """
    entries = loader.entries(manifests, values=statistics, keep=keep)
    return pruner.files(manifests, entries, columns=columns, first=first)


def files_here(
    loader: ManifestLoader,
    pruner: Pruner,
    manifests: Sequence[ManifestFile],
    *,
    statistics: Mapping[str, Collection[int]],
    columns: Collection[str],
    on_read: Callable[[int, int], None] | None = None,
) -> list[KeptFiles]:
    """What `files_of_manifests` gives for parts of the manifests, one after the other.

    Args:
        on_read: called with how many manifests are behind it, and of how many.
    """
    keep = loader.has_room(manifests)
    found: list[KeptFiles] = []
    done = 0
    for batch in batches_of_files(manifests):
        found.append(
            files_of_manifests(
                loader,
                pruner,
                batch,
                statistics=statistics,
                columns=columns,
                first=done,
                keep=keep,
            )
        )
        done += len(batch)
        if on_read is not None:
            on_read(done, len(manifests))
    return found


def _data_files(
    loader: ManifestLoader,
    manifests: Sequence[ManifestFile],
    pruner: Pruner,
    *,
    statistics: Mapping[str, Collection[int]],
    columns: Collection[str],
    elsewhere: PruningElsewhere | None,
) -> KeptFiles:
    """The files that a predicate leaves; only of some manifests at a time there is more in memory.

    Args:
        statistics, columns: as of `files_of_manifests`.
    """
    found: list[KeptFiles] | None = None
    if elsewhere is not None:
        found = elsewhere(loader, pruner, manifests, statistics=statistics, columns=columns)
    if found is None:
        found = files_here(loader, pruner, manifests, statistics=statistics, columns=columns)
    if not found:
        return pruner.files((), (), columns=columns)
    skipped = [each for part in found for each in part.skipped]
    return KeptFiles(concat_entries([part.files for part in found]), _totals_by_reason(skipped))


def _delete_entries(
    loader: ManifestLoader, pruner: Pruner, manifests: Sequence[ManifestFile]
) -> pl.DataFrame:
    """The live delete files that may matter, with the statistics to match them by (rule 174)."""
    # A global equality delete has no partition, so nothing to leave its manifest out by.
    kept = list(compress(manifests, pruner.may_hold(manifests)))
    frames = loader.entries(kept, statistics=VALUE_STATISTICS)
    if not frames:
        return no_entries()
    groups: dict[int, list[pl.DataFrame]] = {}
    for manifest, frame in zip(kept, frames, strict=True):
        groups.setdefault(manifest.partition_spec_id, []).append(frame)
    found = []
    for spec_id, members in groups.items():
        deletes = live_entries(concat_entries(members))
        if not deletes.is_empty():
            keep = keeps_partitions(pruner.partition_predicate(pruner.specs[spec_id]), deletes)
            found.append(deletes.filter(keep))
    deletes = concat_entries(found) if found else live_entries(concat_entries(frames))
    wanted = _union_of_ids(_equality_statistics(deletes), PATH_BOUNDS)
    deletes = with_values(deletes, wanted)
    return deletes.filter(_may_delete_matches(pruner.bound, deletes, pruner.schema))


def _may_delete_matches(bound: Expression, deletes: pl.DataFrame, schema: Schema) -> pl.Series:
    """False for equality deletes whose keys cannot match: they delete nothing that is asked for.

    Only the equality columns count. Others in the file hold values of some older row.
    """
    keep = pl.Series([True]).new_from_index(0, len(deletes))
    if isinstance(bound, AlwaysTrue) or deletes.is_empty():
        return keep
    lists = deletes["equality_ids"].list.sort()
    for ids in lists.drop_nulls().unique():
        member = (lists == pl.Series([ids], dtype=lists.dtype)).fill_null(False)
        member &= deletes["content"] == int(Content.EQUALITY_DELETES)
        on_keys = only_columns(bound, set(ids))
        if isinstance(on_keys, AlwaysTrue) or not member.any():
            continue
        files = with_values(deletes, needed_statistics(on_keys))
        keep &= ~member | may_match(on_keys, PartitionSpec(), schema, files)
    return keep


def _equality_statistics(deletes: pl.DataFrame) -> dict[str, frozenset[int]]:
    """The statistics of the columns that equality deletes compare."""
    keys = frozenset(deletes["equality_ids"].explode().drop_nulls().unique().to_list())
    return dict.fromkeys(VALUE_STATISTICS, keys) if keys else {}


def _deletes_that_apply(
    deletes: pl.DataFrame, matched: MatchedDeletes
) -> tuple[pl.DataFrame, DeleteIndex]:
    """Only the deletes that apply to a file, and the index by their new places."""
    used = np.zeros(len(deletes), dtype=bool)
    used[matched.index.deletes().to_numpy()] = True
    scoped = deletes.with_columns(matched.delete_scope.alias("scope"))
    if used.all():
        return scoped, matched.index
    return scoped.filter(pl.Series(used)), matched.index.with_numbers(np.cumsum(used) - 1)


def _with_places(name: str, files: pl.DataFrame) -> pl.DataFrame:
    """The rows with their places, as longs."""
    return files.select(pl.int_range(pl.len(), dtype=pl.Int64).alias(name), pl.all())


def _value_columns(values: Mapping[str, Collection[int]]) -> list[str]:
    return [value_column(name, i) for name, ids in values.items() for i in sorted(ids)]


def _union_of_ids(
    *wanted: Mapping[str, Iterable[int]],
) -> dict[str, frozenset[int]]:
    merged: dict[str, frozenset[int]] = {}
    for one in wanted:
        for name, ids in one.items():
            merged[name] = merged.get(name, frozenset()) | frozenset(ids)
    return merged


def _newest_first(schema: Schema, metadata: TableMetadata) -> list[Schema]:
    others = sorted(metadata.schemas, key=lambda each: each.schema_id, reverse=True)
    return [schema, *others]
