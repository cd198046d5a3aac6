"""The manifests that one operation reads and writes, kept between the tries of its commit."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl

from frazil.format.manifests import (
    DataFile,
    EntryStatus,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from frazil.format.metadata import TableMetadata
from frazil.format.properties.table import MANIFEST_CODEC
from frazil.format.snapshots import Snapshot
from frazil.planning.cache import ManifestCache
from frazil.planning.load import listed_manifests, manifest_batches
from frazil.storage import avro, locations
from frazil.storage.avro.columns import decode_manifests
from frazil.storage.avro.container import AvroContainer, read_container
from frazil.storage.avro.entry_values import entry_rows
from frazil.storage.avro.manifest_copy import (
    CarriedEntries,
    Carry,
    copy_manifest,
    rows_of,
)
from frazil.storage.files import FileIO
from frazil.storage.moved import store_key
from frazil.storage.side_by_side import WAITING_THREADS, FilesUnderWay, in_threads

ENTRIES_PER_MANIFEST = 10_000


class ManifestFiles:
    """Writes the manifests of one snapshot and remembers every file that it wrote.

    A manifest carries no sequence number until its list is written (rule 132), so one manifest
    serves every try of a commit (rule 136). Manifests are written beside each other and beside
    their list: all are there when `write_list` has returned.
    """

    def __init__(self, io: FileIO) -> None:
        self.io = io
        self._under_way = FilesUnderWay(io)
        self.commit_uuid = str(uuid.uuid4())
        self._counter = 0
        self._written: set[str] = set()
        self._attempts = 1
        self._lists: list[str] = []

    @property
    def written_paths(self) -> frozenset[str]:
        """Paths of the manifests written and not removed since."""
        return frozenset(self._written)

    def manifests_of(self, snapshot: Snapshot | None) -> tuple[ManifestFile, ...]:
        """The manifests of a snapshot, in the order of its list; none for no snapshot."""
        return () if snapshot is None else listed_manifests(self.io, snapshot)

    def container_of(self, manifest: ManifestFile) -> AvroContainer:
        """A manifest's records as bytes."""
        self._under_way.finish()
        data = self.io.read(manifest.manifest_path)
        return read_container(data, file=manifest.manifest_path)

    def open_manifests(
        self, metadata: TableMetadata, manifests: Sequence[ManifestFile]
    ) -> list[CarriedEntries]:
        """Manifests with all of their entries, to be carried over as they are."""
        self._under_way.finish()
        data = in_threads(
            lambda manifest: self.io.read(manifest.manifest_path),
            manifests,
            threads=WAITING_THREADS,
            name="frazil-manifests",
        )
        return carried_whole(metadata, list(zip(manifests, data, strict=True)))

    def carry(
        self,
        metadata: TableMetadata,
        sources: Sequence[CarriedEntries],
        *,
        spec_id: int,
        content: ManifestContent,
        snapshot_id: int,
    ) -> ManifestFile:
        """One new manifest of entries of others, all of one spec.

        Records are copied as bytes where the manifests are laid out like new ones.
        """
        path = self.reserved_path(metadata)
        definition = manifest_definition(metadata, spec_id, content, snapshot_id)
        copied = copy_manifest(self._under_way, path, sources, **definition)
        if copied is not None:
            return copied
        entries = [
            carried
            for source in sources
            for entry, carry in zip(entries_in(metadata, source), source.carry, strict=True)
            if (carried := _carry_entry(entry, Carry(carry), snapshot_id)) is not None
        ]
        return avro.write_manifest(self._under_way, path, entries, **definition)

    def files_at(
        self, metadata: TableMetadata, source: CarriedEntries, rows: pl.Series
    ) -> tuple[DataFile, ...]:
        """The files of these rows of a manifest, without their statistics."""
        manifest = source.manifest
        entries = entry_rows(
            source.entries[rows],
            source.flat_schema,
            metadata.spec_by_id(manifest.partition_spec_id),
            metadata.schema,
            file=manifest.manifest_path,
        )
        return tuple(entry.data_file for entry in entries)

    def write(
        self,
        metadata: TableMetadata,
        entries: Sequence[ManifestEntry],
        *,
        spec_id: int,
        content: ManifestContent,
        snapshot_id: int,
    ) -> ManifestFile:
        """One new manifest of the entries, all of one spec (rules 102, 103)."""
        return avro.write_manifest(
            self._under_way,
            self.reserved_path(metadata),
            entries,
            **manifest_definition(metadata, spec_id, content, snapshot_id),
        )

    def reserved_path(self, metadata: TableMetadata) -> str:
        """The path of a new manifest, which goes with the others if the commit does not use it."""
        path = locations.manifest_path(metadata, self.commit_uuid, self._counter)
        self._counter += 1
        self._written.add(path)
        return path

    def write_in_chunks(
        self,
        metadata: TableMetadata,
        entries: Sequence[ManifestEntry],
        *,
        spec_id: int,
        content: ManifestContent,
        snapshot_id: int,
    ) -> list[ManifestFile]:
        """New manifests of at most `ENTRIES_PER_MANIFEST` entries each."""
        return [
            self.write(
                metadata,
                entries[start : start + ENTRIES_PER_MANIFEST],
                spec_id=spec_id,
                content=content,
                snapshot_id=snapshot_id,
            )
            for start in range(0, len(entries), ENTRIES_PER_MANIFEST)
        ]

    def write_list(
        self,
        metadata: TableMetadata,
        manifests: Sequence[ManifestFile],
        *,
        snapshot_id: int,
        parent_snapshot_id: int | None,
        sequence_number: int,
        first_row_id: int | None,
    ) -> str:
        """A new manifest list for one try of the commit (rule 161); its path."""
        path = locations.manifest_list_path(
            metadata, snapshot_id, attempt=self._attempts, commit_id=self.commit_uuid
        )
        self._attempts += 1
        self._lists.append(path)
        written = avro.write_manifest_list(
            self.io,
            path,
            manifests,
            format_version=metadata.format_version,
            snapshot_id=snapshot_id,
            parent_snapshot_id=parent_snapshot_id,
            sequence_number=sequence_number,
            first_row_id=first_row_id,
        )
        self._under_way.finish()
        # The next commit begins with this list. A list of v1 does not say all that is known here.
        if metadata.format_version > 1:
            ManifestCache.of(self.io).keep_manifest_list((store_key(self.io), path), written)
        return path

    def keep_only(self, manifests: Iterable[str], manifest_list: str | None) -> None:
        """Remove the files written here that are not among those named: all, if none is."""
        self._under_way.settle()
        keep = set(manifests)
        unused = self._written - keep
        unused_lists = [path for path in self._lists if path != manifest_list]
        if unused or unused_lists:
            self.io.delete_many([*unused, *unused_lists])
        self._written -= unused
        self._lists = [path for path in self._lists if path == manifest_list]


def read_entries(
    io: FileIO, metadata: TableMetadata, manifest: ManifestFile
) -> list[ManifestEntry]:
    """The entries of a manifest with everything that they inherit (rules 132-141)."""
    return avro.read_manifest(io, manifest, specs=metadata.specs_by_id, schema=metadata.schema)


def entries_in(metadata: TableMetadata, source: CarriedEntries) -> list[ManifestEntry]:
    """The same of a manifest that is there already."""
    return rows_of(source, specs=metadata.specs_by_id, schema=metadata.schema)


def carried_whole(
    metadata: TableMetadata, files: Sequence[tuple[ManifestFile, bytes]]
) -> list[CarriedEntries]:
    """Manifests by their bytes, with all of their entries as they are."""
    found: list[CarriedEntries] = []
    for batch in manifest_batches([manifest for manifest, _ in files], range(len(files))):
        some = [
            (manifest, read_container(data, file=manifest.manifest_path))
            for manifest, data in files[batch[0] : batch[-1] + 1]
        ]
        decoded = decode_manifests(
            some, specs=metadata.specs_by_id, schema=metadata.schema, statistics=()
        )
        for (manifest, container), each in zip(some, decoded, strict=True):
            carry = pl.Series(np.full(len(each.entries), int(Carry.AS_IT_IS), dtype=np.int8))
            found.append(
                CarriedEntries(manifest, container, each.entries, carry, stated=each.stated)
            )
    return found


def as_existing(entry: ManifestEntry) -> ManifestEntry:
    """The entry as a later snapshot's manifest carries it (rules 111, 134)."""
    return (
        entry
        if entry.status is EntryStatus.EXISTING
        else dataclasses.replace(entry, status=EntryStatus.EXISTING)
    )


def _carry_entry(entry: ManifestEntry, carry: Carry, snapshot_id: int) -> ManifestEntry | None:
    match carry:
        case Carry.DROPPED:
            return None
        case Carry.EXISTING:
            return as_existing(entry)
        case Carry.DELETED:
            # Of a file that this snapshot removes (rules 109, 134).
            return dataclasses.replace(entry, status=EntryStatus.DELETED, snapshot_id=snapshot_id)
    return entry


def manifest_definition(
    metadata: TableMetadata, spec_id: int, content: ManifestContent, snapshot_id: int
) -> avro.ManifestDefinition:
    """What a new manifest of the table is."""
    return {
        "spec": metadata.spec_by_id(spec_id),
        "schema": metadata.schema,
        "format_version": metadata.format_version,
        "content": content,
        "snapshot_id": snapshot_id,
        "codec": MANIFEST_CODEC.of(metadata.properties),
    }
