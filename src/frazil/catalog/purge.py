"""Delete every file that a dropped table's snapshots reach."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import chain

from frazil.catalog.metadata_files import metadata_files_of
from frazil.errors import (
    InvalidFormatError,
    MissingFileError,
    StorageError,
    UnsupportedVersionError,
    ValidationError,
)
from frazil.format.manifests import ManifestFile
from frazil.format.metadata import TableMetadata
from frazil.format.properties.table import GC_ENABLED
from frazil.format.snapshots import Snapshot
from frazil.planning.load import ManifestLoader, listed_manifests
from frazil.storage.avro import read_file_paths
from frazil.storage.files import FileIO
from frazil.storage.side_by_side import WAITING_THREADS, in_threads


def refuse_purge_without_gc(metadata: TableMetadata, table: str) -> None:
    """Raise ValidationError if gc.enabled is false: the table's files may be another's."""
    if not GC_ENABLED.of(metadata.properties):
        raise ValidationError(
            f"cannot purge {table}: gc.enabled is false, its files may belong to another table; "
            f"drop it without purge, or set gc.enabled to true"
        )


@dataclass(frozen=True, slots=True)
class FilesToPurge:
    """The files that a table's snapshots reach, looked at before the table is dropped.

    Attributes:
        metadata, metadata_location: the table and its metadata file.
        older: its older metadata files.
        manifests: of all snapshots whose lists can be read.
        may_delete: whether a file may be deleted; others are kept, and no manifest is read of them.
    """

    io: FileIO
    metadata: TableMetadata
    metadata_location: str
    older: tuple[str, ...]
    manifests: tuple[ManifestFile, ...]
    may_delete: Callable[[str], bool]

    @classmethod
    def look(
        cls,
        io: FileIO,
        metadata: TableMetadata,
        metadata_location: str,
        *,
        may_delete: Callable[[str], bool],
    ) -> FilesToPurge:
        """Return the files of a table. A list that is missing or broken is skipped over."""
        lists = in_threads(
            lambda snapshot: _manifests_of(io, snapshot, may_delete),
            metadata.snapshots,
            threads=WAITING_THREADS,
            name="frazil-lists",
        )
        by_path = {manifest.manifest_path: manifest for manifest in chain.from_iterable(lists)}
        older = _older_metadata(io, metadata, metadata_location)
        return cls(
            io, metadata, metadata_location, tuple(older), tuple(by_path.values()), may_delete
        )

    def remove(self) -> tuple[str, ...]:
        """Delete data files, manifests, manifest lists, statistics and metadata, in that order.

        A manifest that is missing or broken is skipped over: what it names stays, the rest goes.
        Returns the files that were kept.
        Raises StorageError: some files could not be deleted; the message counts them and names one.
        """
        failures: dict[str, StorageError] = {}
        kept: dict[str, None] = {}

        def delete(paths: Iterable[str]) -> None:
            named = list(paths)
            kept.update((path, None) for path in named if not self.may_delete(path))
            failures.update(self.io.delete_many([path for path in named if path not in kept]))

        metadata = self.metadata
        loader = ManifestLoader.of(metadata, self.io)
        for manifest in self.manifests:
            if self.may_delete(manifest.manifest_path):
                delete(_paths_in(loader, manifest))
        delete(manifest.manifest_path for manifest in self.manifests)
        delete(path for snapshot in metadata.snapshots for path in snapshot.manifests or ())
        delete(each.manifest_list for each in metadata.snapshots if each.manifest_list)
        delete(file.statistics_path for file in metadata.statistics)
        delete(file.statistics_path for file in metadata.partition_statistics)
        delete(self.older)
        delete([self.metadata_location])
        if failures:
            path, reason = next(iter(failures.items()))
            raise StorageError(
                f"the table is dropped, but {len(failures)} of its files could not be deleted: "
                f"{path}: {reason}"
            )
        return tuple(kept)


def _older_metadata(io: FileIO, metadata: TableMetadata, location: str) -> list[str]:
    """Older metadata files, as far back as they can and may be read."""
    try:
        files = metadata_files_of(io, metadata, location)
    except (InvalidFormatError, UnsupportedVersionError, StorageError, ValidationError):
        files = tuple(entry.metadata_file for entry in metadata.metadata_log)
    return [path for path in files if path != location]


def _manifests_of(
    io: FileIO, snapshot: Snapshot, may_delete: Callable[[str], bool]
) -> tuple[ManifestFile, ...]:
    if snapshot.manifest_list is not None and not may_delete(snapshot.manifest_list):
        return ()
    if snapshot.manifests is not None:
        snapshot = replace(snapshot, manifests=tuple(filter(may_delete, snapshot.manifests)))
    try:
        return listed_manifests(io, snapshot)
    except (MissingFileError, InvalidFormatError):
        return ()


def _paths_in(loader: ManifestLoader, manifest: ManifestFile) -> tuple[str, ...]:
    try:
        [entries] = loader.entries([manifest])
        return tuple(entries["file_path"])
    except MissingFileError:
        return ()
    except InvalidFormatError:
        return _readable_paths(loader.io, manifest)


def _readable_paths(io: FileIO, manifest: ManifestFile) -> tuple[str, ...]:
    """Paths alone, of a manifest whose entries say something that no reader understands."""
    try:
        return read_file_paths(io, manifest.manifest_path)
    except (MissingFileError, InvalidFormatError):
        return ()
