"""Tables as folders: ``<warehouse>/<namespace>/<table>/metadata/v<N>.metadata.json`` (rule 215).

The layout of Java's HadoopCatalog.  A commit creates the file of the next version, which fails if
another writer has made it; ``version-hint.text`` only says where to start looking.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import ClassVar

from frazil.catalog.base import Catalog, LoadedTable
from frazil.catalog.identifiers import (
    Identifier,
    parse_named_namespace,
    parse_namespace,
    parse_table_identifier,
    shown,
)
from frazil.catalog.metadata_files import metadata_bytes
from frazil.catalog.purge import remove_files_of
from frazil.catalog.versions import VersionFolder
from frazil.errors import (
    AlreadyExistsError,
    CommitFailedException,
    CommitStateUnknownException,
    ConfigurationError,
    MissingFileError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    StorageError,
    TableAlreadyExistsError,
    UnsupportedError,
    ValidationException,
)
from frazil.format.metadata import TableMetadata
from frazil.storage.files import FileIO
from frazil.storage.locations import metadata_extension
from frazil.storage.paths import is_local, join, normalize_location, same_location

_UNUSABLE = re.compile(r"[/\\]|^\.{1,2}$")


class FilesystemCatalog(Catalog):
    """Java's HadoopCatalog: nothing but folders, safe where the store creates files atomically.

    Namespaces keep no properties and tables cannot be renamed or moved, as in Java.  Writers of
    this library keep out of each other's way on local disks, S3, GCS and Azure; other stores are
    read only.
    """

    kind: ClassVar[str] = "filesystem"

    def __init__(
        self, name: str, properties: Mapping[str, str], *, io: FileIO | None = None
    ) -> None:
        super().__init__(name, properties, io=io)
        warehouse = properties.get("warehouse")
        if not warehouse:
            raise ConfigurationError(f"the filesystem catalog {name} needs the property warehouse")
        self.warehouse = normalize_location(warehouse)

    def create_namespace(
        self, namespace: str | Sequence[str], properties: Mapping[str, str] | None = None
    ) -> None:
        levels = parse_named_namespace(namespace)
        if properties:
            raise UnsupportedError(
                f"cannot create {shown(levels)} with properties: the filesystem catalog keeps none"
            )
        folder = self._folder(levels)
        if self._is_table(folder):
            raise NamespaceAlreadyExistsError(f"{shown(levels)} is a table in {self.name}")
        if self.io.is_folder(folder):
            raise NamespaceAlreadyExistsError(
                f"the namespace {shown(levels)} exists in {self.name}"
            )
        self.io.make_folder(folder)

    def drop_namespace(self, namespace: str | Sequence[str]) -> None:
        levels = parse_named_namespace(namespace)
        self._require_namespace(levels)
        folder = self._folder(levels)
        if self.io.list_folder(folder):
            raise NamespaceNotEmptyError(f"the namespace {shown(levels)} is not empty")
        self.io.delete_empty_folder(folder)

    def list_namespaces(self, parent: str | Sequence[str] = ()) -> list[Identifier]:
        levels = parse_namespace(parent)
        if levels:
            self._require_namespace(levels)
        return [
            (*levels, child)
            for child in self._child_folders(levels)
            if not self._is_table(join(self._folder(levels), child))
        ]

    def namespace_exists(self, namespace: str | Sequence[str]) -> bool:
        folder = self._folder(parse_named_namespace(namespace))
        return self.io.is_folder(folder) and not self._is_table(folder)

    def load_namespace_properties(self, namespace: str | Sequence[str]) -> dict[str, str]:
        levels = parse_named_namespace(namespace)
        self._require_namespace(levels)
        return {"location": self._folder(levels)}

    def update_namespace_properties(
        self,
        namespace: str | Sequence[str],
        *,
        updates: Mapping[str, str] | None = None,
        removals: Sequence[str] = (),
    ) -> None:
        raise UnsupportedError("the filesystem catalog keeps no properties of namespaces")

    def list_tables(self, namespace: str | Sequence[str]) -> list[Identifier]:
        levels = parse_named_namespace(namespace)
        self._require_namespace(levels)
        return [
            (*levels, child)
            for child in self._child_folders(levels)
            if self._is_table(join(self._folder(levels), child))
        ]

    def rename_table(self, source: str | Sequence[str], target: str | Sequence[str]) -> None:
        raise UnsupportedError(
            "the filesystem catalog cannot rename tables: a table's name is its folder"
        )

    def default_table_location(self, identifier: str | Sequence[str]) -> str:
        return self._folder(parse_table_identifier(identifier))

    def _find(self, name: Identifier) -> str | None:
        found = self._versions(name).current()
        return None if found is None else found.path

    def _create(self, name: Identifier, metadata: TableMetadata) -> LoadedTable:
        versions = self._versions(name)
        self._check_location(name, metadata)
        path = versions.path_of(1, metadata_extension(metadata.properties))
        self._check_atomic(path)
        self.io.make_folder(versions.folder)
        with self.io.lock(versions.folder):
            if versions.newest_listed() is not None:
                raise TableAlreadyExistsError(f"the table {shown(name)} exists in {self.name}")
            try:
                self._put(path, metadata)
            except CommitFailedException:
                raise TableAlreadyExistsError(
                    f"the table {shown(name)} exists in {self.name}"
                ) from None
            versions.write_hint(1)
        return LoadedTable(name, metadata, path)

    def _register(
        self, name: Identifier, metadata: TableMetadata, metadata_location: str
    ) -> LoadedTable:
        if not same_location(metadata.location, self._folder(name)):
            raise UnsupportedError(
                f"cannot register {metadata_location} as {shown(name)}: its location is "
                f"{metadata.location}, and a table of this catalog lies in {self._folder(name)}"
            )
        return self._create(name, metadata)

    def _swap(self, base: LoadedTable, updated: TableMetadata) -> LoadedTable:
        if updated.location != base.metadata.location:
            raise ValidationException(
                f"cannot move {shown(base.identifier)} from {base.metadata.location} to "
                f"{updated.location}: the filesystem catalog's tables stay in their folder"
            )
        self._check_location(base.identifier, updated)
        versions = self._versions(base.identifier)
        base_version = versions.version_of(base.metadata_location)
        path = versions.path_of(base_version + 1, metadata_extension(updated.properties))
        self._check_atomic(path)
        try:
            with self.io.lock(versions.folder):
                newest = versions.newest_listed()
                if newest is None or newest.version != base_version:
                    raise CommitFailedException(
                        f"{shown(base.identifier)} is at version "
                        f"{newest.version if newest else 'none'}, not {base_version}: "
                        f"another writer was first"
                    )
                self._put(path, updated)
                versions.write_hint(base_version + 1)
        except MissingFileError:
            raise NoSuchTableError(f"the table {shown(base.identifier)} was dropped") from None
        return LoadedTable(base.identifier, updated, path)

    def _drop(self, name: Identifier) -> None:
        if self._find(name) is None:
            raise NoSuchTableError(f"there is no table {shown(name)} in the catalog {self.name}")
        self.io.delete_folder(self._folder(name))

    def _purge(self, table: LoadedTable) -> None:
        # The folder holds the manifests that say which files lie elsewhere: they are read first.
        remove_files_of(self.io, table.metadata, table.metadata_location)
        self.io.delete_folder(self._folder(table.identifier))

    def _require_namespace(self, namespace: Identifier) -> None:
        if not self.namespace_exists(namespace):
            raise NoSuchNamespaceError(
                f"there is no namespace {shown(namespace)} in the catalog {self.name} "
                f"({self._folder(namespace)}): make it with create_namespace"
            )

    def _put(self, path: str, metadata: TableMetadata) -> None:
        """Create the version's file; on a doubtful answer the file itself says whose it is."""
        data = metadata_bytes(metadata, path=path)
        try:
            self.io.create(path, data)
        except (AlreadyExistsError, StorageError) as error:
            found = self._read_back(path, error)
            # A store's own retry can meet the file that its first try has written.
            if found == data:
                return
            if found is None and not isinstance(error, AlreadyExistsError):
                if is_local(path):
                    raise
                raise _unknown(path, error) from None
            raise CommitFailedException(f"{path} exists: another writer was first") from None

    def _read_back(self, path: str, error: Exception) -> bytes | None:
        try:
            return self.io.read(path)
        except MissingFileError:
            return None
        except StorageError:
            raise _unknown(path, error) from None

    def _check_location(self, name: Identifier, metadata: TableMetadata) -> None:
        if not same_location(metadata.location, self._folder(name)):
            raise ValidationException(
                f"the location of {shown(name)} must be {self._folder(name)}, not "
                f"{metadata.location}: in the filesystem catalog the folder is the name"
            )
        if "write.metadata.path" in metadata.properties:
            raise ValidationException(
                f"write.metadata.path cannot be set on {shown(name)}: "
                f"the filesystem catalog finds metadata only in the table's folder"
            )

    def _check_atomic(self, path: str) -> None:
        if not self.io.creates_atomically(path):
            raise UnsupportedError(
                f"cannot commit to {path}: its store does not create files atomically; "
                f"use the sql catalog"
            )

    def _versions(self, name: Identifier) -> VersionFolder:
        return VersionFolder(self.io, join(self._folder(name), "metadata"))

    def _folder(self, levels: Identifier) -> str:
        for level in levels:
            if _UNUSABLE.search(level):
                raise ValidationException(
                    f"{level!r} cannot be part of a name in a filesystem catalog"
                )
        return join(self.warehouse, *levels)

    def _child_folders(self, levels: Identifier) -> list[str]:
        try:
            listed = self.io.list_folder(self._folder(levels))
        except MissingFileError:
            return []
        return [name for name, is_folder in listed if is_folder]

    def _is_table(self, folder: str) -> bool:
        return VersionFolder(self.io, join(folder, "metadata")).holds_metadata()


def _unknown(path: str, error: Exception) -> CommitStateUnknownException:
    return CommitStateUnknownException(f"no certain answer came when {path} was created: {error}")
