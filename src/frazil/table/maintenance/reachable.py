"""Every file that a table's metadata reaches: what maintenance must leave in place."""

from __future__ import annotations

from dataclasses import dataclass

from frazil.catalog.metadata_files import metadata_files_of
from frazil.catalog.pointer.versions import HINT
from frazil.catalog.protocol import LoadedTable
from frazil.format.manifests import ManifestFile
from frazil.planning.load import manifests_by_path
from frazil.storage.files import FileIO
from frazil.storage.locations import metadata_location
from frazil.storage.paths import join, parent_of


@dataclass(frozen=True, slots=True)
class ReachableMetadata:
    """The metadata of a table and of all its snapshots.

    Attributes:
        manifests: of all snapshots, each once; the files that they hold are reachable too.
        paths: of manifests, manifest lists, statistics, metadata files and the version hint.
        metadata_folders: where these metadata files lie.
    """

    manifests: tuple[ManifestFile, ...]
    paths: frozenset[str]
    metadata_folders: frozenset[str]


def reachable_metadata(io: FileIO, table: LoadedTable) -> ReachableMetadata:
    """Return what a table reaches, data files and deletes aside.

    Metadata files count that the log of the current one names; what only logs of older ones name
    is nothing that a reader or a writer of the table needs.

    Raises:
        InvalidManifestError, MissingFileError, StorageError: a snapshot cannot be read, so nothing
            can be said to be unreachable.
    """
    metadata = table.metadata
    manifests = manifests_by_path(io, metadata.snapshots)
    log = (entry.metadata_file for entry in metadata.metadata_log)
    files = (table.metadata_location, *log)
    folders = {metadata_location(metadata), *map(parent_of, files)}
    lists = (snapshot.manifest_list for snapshot in metadata.snapshots)
    paths = [
        *manifests,
        *(path for path in lists if path is not None),
        *metadata.statistics_paths,
        *files,
        *(join(folder, HINT) for folder in folders),
    ]
    return ReachableMetadata(tuple(manifests.values()), frozenset(paths), frozenset(folders))


def metadata_folders(io: FileIO, table: LoadedTable) -> frozenset[str]:
    """Return where metadata files of a table lie or lay, by the logs of older ones too.

    Raises:
        InvalidMetadataError, StorageError: an older one cannot be read.
    """
    return frozenset(map(parent_of, metadata_files_of(io, table.metadata, table.metadata_location)))
