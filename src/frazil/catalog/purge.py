"""Delete every file that a dropped table's snapshots reach."""

from __future__ import annotations

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


def remove_files_of(io: FileIO, metadata: TableMetadata, metadata_location: str) -> None:
    """Delete data files, manifests, manifest lists, statistics and metadata, in that order.

    A manifest that is missing or broken is skipped over: what it names stays, the rest goes.

    Raises:
        StorageError: some files could not be deleted; the message counts them and names one.
    """
    failures: dict[str, StorageError] = {}
    older = _older_metadata(io, metadata, metadata_location)
    lists = in_threads(
        lambda snapshot: _listed(io, snapshot),
        metadata.snapshots,
        threads=WAITING_THREADS,
        name="frazil-lists",
    )
    manifests = {manifest.manifest_path: manifest for manifest in chain.from_iterable(lists)}
    loader = ManifestLoader.of(metadata, io)
    for manifest in manifests.values():
        failures |= io.delete_many(_paths_in(loader, manifest))
    failures |= io.delete_many(manifests)
    failures |= io.delete_many(
        snapshot.manifest_list for snapshot in metadata.snapshots if snapshot.manifest_list
    )
    failures |= io.delete_many(file.statistics_path for file in metadata.statistics)
    failures |= io.delete_many(file.statistics_path for file in metadata.partition_statistics)
    failures |= io.delete_many(older)
    failures |= io.delete_many([metadata_location])
    if failures:
        path, reason = next(iter(failures.items()))
        raise StorageError(
            f"the table is dropped, but {len(failures)} of its files could not be deleted: "
            f"{path}: {reason}"
        )


def _older_metadata(io: FileIO, metadata: TableMetadata, location: str) -> list[str]:
    """Older metadata files, as far back as they can be read."""
    try:
        files = metadata_files_of(io, metadata, location)
    except (InvalidFormatError, UnsupportedVersionError, StorageError):
        files = tuple(entry.metadata_file for entry in metadata.metadata_log)
    return [path for path in files if path != location]


def _listed(io: FileIO, snapshot: Snapshot) -> tuple[ManifestFile, ...]:
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
