"""Many manifests at once: read and decoded in parallel, through the cache."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Final, TypeVar

import polars as pl

from frazil.format.manifests import ManifestContent, ManifestFile
from frazil.format.metadata import TableMetadata
from frazil.format.metadata.partition_sources import schema_with_sources
from frazil.format.partitions.partitioning import PartitionSpec
from frazil.format.schema import Schema
from frazil.format.snapshots import Snapshot
from frazil.planning.cache import ManifestCache
from frazil.planning.frames import concat_entries, select_columns
from frazil.storage.avro import decode_manifest_lists, manifests_of
from frazil.storage.avro.columns import ENTRY_DTYPES, decode_manifests, map_dtype, value_column
from frazil.storage.avro.container import read_container
from frazil.storage.avro.manifest_layout import STATISTICS
from frazil.storage.files import FileIO
from frazil.storage.forks import check_threads
from frazil.storage.moved import store_key, telling_of_moves
from frazil.storage.side_by_side import lasting_threads

Item = TypeVar("Item")
_READERS = 16
_BATCH_BYTES = 2 * 1024 * 1024
_BATCH_MANIFESTS = 64
_LISTS_AT_ONCE = 64
_BYTES_PER_FILE = 40
"""Of a manifest whose list does not state how many files it has: from below."""
_BYTES_PER_ENTRY = 300
"""A decoded entry in memory, about, without statistics."""

FILES_AT_ONCE: Final = 250_000
"""Files whose entries are worked on together: about 100 MB."""


@dataclass(frozen=True, slots=True)
class ManifestLoader:
    """Reads manifests of one table as columns.

    Attributes:
        io: the table's files.
        specs: every partition spec of the table, by id.
        schema: the schema that partition types are derived from.
        cache: where decoded manifests are kept.
    """

    io: FileIO
    specs: Mapping[int, PartitionSpec]
    schema: Schema
    cache: ManifestCache

    @classmethod
    def of(
        cls,
        metadata: TableMetadata,
        io: FileIO,
        schema: Schema | None = None,
        *,
        cache: ManifestCache | None = None,
    ) -> ManifestLoader:
        """Return the loader of a table, by its current schema unless another is given.

        Raises:
            UnsupportedError: this process was forked from one that planned.
        """
        check_threads()
        kept = ManifestCache.of(io) if cache is None else cache
        return cls(io, metadata.specs_by_id, schema_with_sources(metadata, schema), kept)

    def manifests(self, snapshot: Snapshot) -> tuple[ManifestFile, ...]:
        """The manifests of a snapshot, in the order of its list.

        Raises:
            InvalidManifestError, MissingFileError, StorageError: it cannot be read.
        """
        return listed_manifests(self.io, snapshot, cache=self.cache)

    def has_room(self, manifests: Sequence[ManifestFile]) -> bool:
        """Whether the cache has room for all of these at once, without their statistics.

        More than that would only push out what is kept, and itself.
        """
        return sum(map(file_count_of, manifests)) * _BYTES_PER_ENTRY <= self.cache.max_bytes

    def entries(
        self,
        manifests: Sequence[ManifestFile],
        *,
        statistics: Collection[str] = (),
        values: Mapping[str, Collection[int]] | None = None,
        keep: bool = True,
    ) -> list[pl.DataFrame]:
        """Return each manifest's entries, in the form of `frazil.storage.avro.columns`.

        A frame may hold more statistics columns than were asked for.

        Args:
            manifests: which to read.
            statistics: the maps to decode whole.
            values: the fields whose values to decode, of each map.
            keep: whether what had to be decoded is kept.

        Raises:
            InvalidManifestError, MissingFileError, StorageError: one cannot be read.
        """
        wanted = {name: frozenset(ids) for name, ids in (values or {}).items()}
        columns = [*statistics, *(value_column(n, i) for n, ids in wanted.items() for i in ids)]
        keys = self._keys(manifests)
        frames: list[pl.DataFrame | None] = [self.cache.manifest(key) for key in keys]
        missing = [
            index
            for index, frame in enumerate(frames)
            if frame is None or not set(columns) <= set(frame.columns)
        ]
        for index, frame in self._entries_of(manifests, missing, statistics, wanted):
            kept = frames[index]
            if kept is not None:
                frame = kept.hstack([c for c in frame if c.name not in kept.columns])
            frames[index] = frame
            if keep:
                self.cache.keep_manifest(keys[index], frame)
        return [frame for frame in frames if frame is not None]

    def _entries_of(
        self,
        manifests: Sequence[ManifestFile],
        indexes: Sequence[int],
        statistics: Collection[str],
        values: Mapping[str, Collection[int]],
    ) -> Iterator[tuple[int, pl.DataFrame]]:
        def decode(
            batch: Sequence[int], data: Sequence[Future[bytes]]
        ) -> list[tuple[int, pl.DataFrame]]:
            files = [
                (manifests[i], read_container(read.result(), file=manifests[i].manifest_path))
                for i, read in zip(batch, data, strict=True)
            ]
            decoded = decode_manifests(
                files,
                specs=self.specs,
                schema=self.schema,
                statistics=statistics,
                values=values,
            )
            return [(i, each.entries) for i, each in zip(batch, decoded, strict=True)]

        # Threads that wait for the store, and as many that decode as there are processors.
        readers = lasting_threads(_READERS, "frazil-read")
        decoders = lasting_threads(os.cpu_count() or 1, "frazil-decode")
        started: list[Future[bytes]] = []
        running: list[Future[list[tuple[int, pl.DataFrame]]]] = []
        try:
            for batch in manifest_batches(manifests, indexes):
                reads = [readers.submit(self.io.read, manifests[i].manifest_path) for i in batch]
                started += reads
                running.append(decoders.submit(decode, batch, reads))
            for future in running:
                yield from future.result()
        finally:
            for decoding in running:
                decoding.cancel()
            for reading in started:
                reading.cancel()

    def _keys(self, manifests: Sequence[ManifestFile]) -> list[Hashable]:
        """Path and length, with all else that the decoded columns depend on."""
        store = store_key(self.io)
        types = {
            spec_id: str([f.source_ids and self._source_type(f.source_id) for f in spec.fields])
            for spec_id, spec in self.specs.items()
        }
        return [
            (
                store,
                manifest.manifest_path,
                manifest.manifest_length,
                manifest.sequence_number,
                manifest.added_snapshot_id,
                manifest.first_row_id,
                types.get(manifest.partition_spec_id),
            )
            for manifest in manifests
        ]

    def _source_type(self, field_id: int) -> str:
        field = self.schema.field_or_none(field_id)
        return "dropped" if field is None else str(field.field_type)


def listed_manifests(
    io: FileIO, snapshot: Snapshot, *, cache: ManifestCache | None = None
) -> tuple[ManifestFile, ...]:
    """Return the manifests of a snapshot, in the order of its list, which is read once.

    Raises:
        InvalidManifestError, MissingFileError, StorageError: it cannot be read.
    """
    if snapshot.manifest_list is None:
        return manifests_of(io, snapshot)
    cache = ManifestCache.of(io) if cache is None else cache
    key = (store_key(io), snapshot.manifest_list)
    found = cache.manifest_list(key)
    if found is None:
        with telling_of_moves(io, snapshot.manifest_list):
            found = manifests_of(io, snapshot)
        cache.keep_manifest_list(key, found)
    return found


def lists_of_manifests(
    io: FileIO, snapshots: Iterable[Snapshot], *, cache: ManifestCache | None = None
) -> list[tuple[ManifestFile, ...]]:
    """Return the manifests of each snapshot; the lists are read beside each other.

    Raises:
        InvalidManifestError, MissingFileError, StorageError: one cannot be read.
    """
    cache = ManifestCache.of(io) if cache is None else cache
    store, wanted = store_key(io), list(snapshots)
    found: dict[int, tuple[ManifestFile, ...]] = {}
    missing: list[tuple[int, str]] = []
    for index, snapshot in enumerate(wanted):
        path = snapshot.manifest_list
        kept = None if path is None else cache.manifest_list((store, path))
        if kept is not None:
            found[index] = kept
        elif path is not None:
            missing.append((index, path))
        else:
            found[index] = manifests_of(io, snapshot)
    readers = lasting_threads(_READERS, "frazil-read")
    for start in range(0, len(missing), _LISTS_AT_ONCE):
        some = missing[start : start + _LISTS_AT_ONCE]
        paths = [path for _, path in some]
        data = readers.map(partial(_read_list, io), paths)
        for (index, path), manifests in zip(
            some, decode_manifest_lists(list(zip(paths, data, strict=True))), strict=True
        ):
            found[index] = manifests
            cache.keep_manifest_list((store, path), manifests)
    return [found[index] for index in range(len(wanted))]


def manifests_by_path(io: FileIO, snapshots: Iterable[Snapshot]) -> dict[str, ManifestFile]:
    """Every manifest of some snapshots once, by its path, in the order of their lists."""
    listed = chain.from_iterable(lists_of_manifests(io, snapshots))
    return {manifest.manifest_path: manifest for manifest in listed}


def of_data(manifests: Sequence[ManifestFile]) -> tuple[ManifestFile, ...]:
    """The manifests of data files."""
    return tuple(m for m in manifests if m.content is ManifestContent.DATA)


def of_deletes(manifests: Sequence[ManifestFile]) -> tuple[ManifestFile, ...]:
    """The manifests of delete files."""
    return tuple(m for m in manifests if m.content is ManifestContent.DELETES)


def _read_list(io: FileIO, path: str) -> bytes:
    with telling_of_moves(io, path):
        return io.read(path)


def batches_of_files(
    manifests: Sequence[ManifestFile], files_at_once: int | None = None
) -> Iterator[list[ManifestFile]]:
    """Yield neighbouring manifests that have so many files together, or one that has more."""
    most = FILES_AT_ONCE if files_at_once is None else files_at_once
    return _batches(manifests, file_count_of, most)


def file_count_of(manifest: ManifestFile) -> int:
    """The live files of a manifest; where its list does not state them, about, and not fewer."""
    added, existing = manifest.added_files_count, manifest.existing_files_count
    if added is None or existing is None:
        return manifest.manifest_length // _BYTES_PER_FILE
    return added + existing


def manifest_batches(
    manifests: Sequence[ManifestFile], indexes: Sequence[int]
) -> Iterator[list[int]]:
    """Yield the indexes of manifests to decode at once: small ones together, large ones alone."""
    return _batches(
        indexes, lambda at: manifests[at].manifest_length, _BATCH_BYTES, _BATCH_MANIFESTS
    )


def _batches(
    items: Iterable[Item], size_of: Callable[[Item], int], most: int, most_items: int | None = None
) -> Iterator[list[Item]]:
    """Neighbours that are of so much size together, or one that is of more."""
    batch: list[Item] = []
    size = 0
    for item in items:
        own = size_of(item)
        if batch and (size + own > most or len(batch) == most_items):
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += own
    if batch:
        yield batch


def entries(
    metadata: TableMetadata,
    snapshot: Snapshot | None,
    io: FileIO,
    *,
    manifests: Sequence[ManifestFile] | None = None,
    schema: Schema | None = None,
    statistics: Collection[str] = STATISTICS,
    cache: ManifestCache | None = None,
) -> pl.DataFrame:
    """Every entry of a snapshot's manifests, deleted ones too, in the order of its list.

    Args:
        metadata: the table.
        snapshot: whose manifests; None has none.
        io: the table's files.
        manifests: read these in place of the snapshot's.
        schema: the schema that partition types are derived from; the current one unless given.
        statistics: the statistics maps to decode, each a list of structs of key and value.
        cache: where decoded manifests are kept; with the files unless given.

    Returns:
        The columns of `frazil.storage.avro.columns.ENTRY_DTYPES`, `spec_id`, `partition` (a struct
        by partition field id over all specs, null in tables without partitions), the maps,
        `manifest_path` and `manifest_content` (0 data, 1 deletes).

    Raises:
        InvalidManifestError, MissingFileError, StorageError: a manifest cannot be read.
    """
    loader = ManifestLoader.of(metadata, io, schema, cache=cache)
    if manifests is None:
        manifests = () if snapshot is None else loader.manifests(snapshot)
    frames = loader.entries(manifests, statistics=statistics)
    parts = [
        frame.with_columns(
            pl.lit(manifest.manifest_path).alias("manifest_path"),
            pl.lit(int(manifest.content), pl.Int32).alias("manifest_content"),
        )
        for manifest, frame in zip(manifests, frames, strict=True)
    ]
    none = pl.DataFrame(
        schema={
            **ENTRY_DTYPES,
            "spec_id": pl.Int32(),
            **{name: map_dtype(name) for name in statistics},
            "manifest_path": pl.String(),
            "manifest_content": pl.Int32(),
        }
    )
    found = concat_entries(parts) if parts else none
    columns = [*ENTRY_DTYPES, "spec_id", "partition", *statistics]
    return select_columns(found, [*columns, "manifest_path", "manifest_content"])
