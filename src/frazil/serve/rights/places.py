"""Where files may lie: what a client names is checked, and what the server opens is confined."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from frazil.errors import ValidationError
from frazil.format.changes import (
    AddSnapshot,
    SetLocation,
    SetPartitionStatistics,
    SetProperties,
    SetStatistics,
    Update,
)
from frazil.format.metadata import TableMetadata
from frazil.format.properties.table import (
    DATA_PATH,
    FOLDER_STORAGE_PATH,
    METADATA_PATH,
    OBJECT_STORAGE_PATH,
)
from frazil.format.snapshots import Snapshot
from frazil.format.views import ViewMetadata, ViewUpdate
from frazil.storage.caches import Caches
from frazil.storage.files import FileInfo, FileIO
from frazil.storage.paths import is_local, local_path, normalize_location, scheme_of
from frazil.storage.stores.remote_options import S3_SCHEMES
from frazil.storage.stores.store import Store

T = TypeVar("T")

LONGEST_LOCATION: Final = 800
"""In characters; a catalog's column of metadata files has 1000."""

PATH_PROPERTIES: Final = tuple(
    each.name for each in (DATA_PATH, FOLDER_STORAGE_PATH, METADATA_PATH, OBJECT_STORAGE_PATH)
)
_READING: Final = frozenset({"read", "open", "look up", "list"})
_ADVICE: Final = "a server with --any-location takes it"


@dataclass(frozen=True, slots=True)
class Places:
    """Folders that files may lie in.

    Attributes:
        roots: the folders; None is anywhere.
        others: folders below them that are not of these places, unless a root lies deeper.
    """

    roots: tuple[str, ...] | None = None
    others: tuple[str, ...] = ()

    @classmethod
    def of_folders(cls, *roots: str) -> Places:
        """Return the places in and below some folders."""
        return cls(tuple(_comparable(root) for root in roots))

    def with_folders(self, *more: str) -> Places:
        """Return these places and more of them; those are in them even if they are others'."""
        if self.roots is None:
            return self
        added = tuple(_comparable(each) for each in more)
        others = tuple(each for each in self.others if each not in added)
        return Places((*self.roots, *added), others)

    def without_folders(self, *others: str) -> Places:
        """Return these places but for some folders, which may be roots themselves."""
        if self.roots is None:
            return self
        taken = dict.fromkeys((*self.others, *(_comparable(each) for each in others)))
        return Places(
            self.roots, tuple(each for each in taken if _longest_match(self.roots, each) >= 0)
        )

    def hold(self, path: str) -> bool:
        """Whether the path lies in one of them."""
        if self.roots is None:
            return True
        if ".." in path.replace("\\", "/").split("/"):
            return False
        found = _comparable(path)
        return _longest_match(self.roots, found) > _longest_match(self.others, found)

    def require(self, path: str, what: str) -> None:
        """Check a path that a client names.

        Raises:
            ValidationError: it lies elsewhere, has a part ``..``, or is too long.
        """
        if len(path) > LONGEST_LOCATION or "\x00" in path or not path.strip():
            raise ValidationError(f"{what} must be a path of at most {LONGEST_LOCATION} characters")
        local = local_path(path)
        if local is not None and not local.startswith("/"):
            raise ValidationError(f"{what} is {path!r}: give a URI, or a path from the root")
        if not self.hold(path):
            raise ValidationError(
                f"{what} is {path!r}, which lies outside of the places that this client may "
                f"use; {_ADVICE}"
            )

    def require_properties(self, properties: Mapping[str, str]) -> None:
        """Check the properties of a table that name folders; what it raises is as of `require`."""
        for name in PATH_PROPERTIES:
            if name in properties:
                self.require(properties[name], f"the property {name}")

    def require_updates(self, updates: Iterable[Update | ViewUpdate]) -> None:
        """Check every path that updates name; what it raises is as of `require`."""
        for update in updates:
            match update:
                case SetLocation(location):
                    self.require(location, "the location")
                case SetProperties(properties):
                    self.require_properties(properties)
                case AddSnapshot(snapshot):
                    self._require_all(_of_snapshot(snapshot), "a file of the snapshot")
                case SetStatistics(statistics):
                    self.require(statistics.statistics_path, "the statistics file")
                case SetPartitionStatistics(of_partitions):
                    self.require(of_partitions.statistics_path, "the partition statistics file")

    def require_metadata(self, metadata: TableMetadata) -> None:
        """Check every path that a table's metadata names; what it raises is as of `require`."""
        self.require(metadata.location, "the table's location")
        self.require_properties(metadata.properties)
        for snapshot in metadata.snapshots:
            self._require_all(_of_snapshot(snapshot), "a file of a snapshot")
        older = (each.metadata_file for each in metadata.metadata_log)
        statistics = (each.statistics_path for each in metadata.statistics)
        of_partitions = (each.statistics_path for each in metadata.partition_statistics)
        self._require_all((*statistics, *of_partitions), "a statistics file")
        self._require_all(older, "an older metadata file")

    def _require_all(self, paths: Iterable[str], what: str) -> None:
        for path in paths:
            self.require(path, what)


ANYWHERE: Final = Places()


class ConfinedIO(FileIO):
    """Files of some places alone, whatever names another: metadata, a manifest, a client.

    Args:
        properties: of the stores.
        reads: where files may be read.
        writes: where files may be made and removed.
        caches: what is kept; nobody else's unless given.
    """

    def __init__(
        self,
        properties: Mapping[str, str],
        *,
        reads: Places,
        writes: Places,
        caches: Caches | None = None,
    ) -> None:
        super().__init__(properties, caches=caches)
        self.reads = reads
        self.writes = writes

    def list(self, prefix: str) -> Iterator[FileInfo]:
        """Every file below a folder of these places."""
        self._require(self.reads, prefix)
        return super().list(prefix)

    def upload(self, source: str, path: str) -> None:
        """Copy a file of the local disk, if it and the target are of these places."""
        self._require(self.reads, source)
        super().upload(source, path)

    def move_folder(self, source: str, target: str) -> None:
        """Give a folder another name, if both are of these places."""
        self._require(self.writes, target)
        super().move_folder(source, target)

    def rename_if_absent(self, source: str, target: str) -> None:
        """Give a file another name, if both are of these places."""
        self._require(self.writes, target)
        super().rename_if_absent(source, target)

    def move(self, source: str, target: str) -> None:
        """Give a file another name, if both are of these places."""
        self._require(self.writes, target)
        super().move(source, target)

    def _run(
        self,
        verb: str,
        path: str,
        on_disk: Callable[[str], T],
        on_store: Callable[[Store, str], T],
    ) -> T:
        self._require(self.reads if verb in _READING else self.writes, path)
        return super()._run(verb, path, on_disk, on_store)

    @staticmethod
    def _require(places: Places, path: str) -> None:
        if not places.hold(path):
            raise ValidationError(
                f"{path!r} lies outside of the places that this server opens files in; {_ADVICE}"
            )


def folders_of(metadata: TableMetadata | ViewMetadata) -> tuple[str, ...]:
    """Return the folders that the files of a table or a view lie in."""
    named = (metadata.properties.get(name) for name in PATH_PROPERTIES)
    return (metadata.location, *(each for each in named if each))


def _of_snapshot(snapshot: Snapshot) -> tuple[str, ...]:
    listed = () if snapshot.manifest_list is None else (snapshot.manifest_list,)
    return (*listed, *(snapshot.manifests or ()))


def _longest_match(folders: Iterable[str], path: str) -> int:
    """How long the longest of the folders is that a path lies in; -1 where it lies in none."""
    return max(
        (len(each) for each in folders if path == each or path.startswith(f"{each}/")), default=-1
    )


def _comparable(path: str) -> str:
    """One spelling of a path, and one scheme of a store."""
    if is_local(path):
        return normalize_location(path).rstrip("/")
    scheme, rest = scheme_of(path), path.partition(":")[2]
    known = "s3" if scheme in S3_SCHEMES else scheme
    return f"{known}:{rest.rstrip('/')}"
