"""Tables as folders: ``<warehouse>/<namespace>/<table>/metadata/v<N>.metadata.json`` (rule 215).

The layout of Java's HadoopCatalog.  A commit creates the file of the next version, which fails if
another writer has made it; ``version-hint.text`` only says where to start looking.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar
from uuid import uuid4

from frazil.catalog.identifiers import (
    Identifier,
    parse_named_namespace,
    parse_namespace,
    parse_table_identifier,
    require_folder_names,
    shown,
)
from frazil.catalog.metadata_files import metadata_bytes, names_uuid, read_metadata
from frazil.catalog.outcome import after_the_change, find_outcome
from frazil.catalog.pointer.catalog import PointerCatalog
from frazil.catalog.pointer.versions import EXTENSIONS, SeenVersions, Version, VersionFolder
from frazil.catalog.protocol import LoadedTable, StagedTable
from frazil.catalog.purge import refuse_purge_without_gc
from frazil.errors import (
    AlreadyExistsError,
    CommitFailedError,
    ConfigurationError,
    FrazilError,
    InvalidFormatError,
    MissingFileError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    StorageError,
    TableAlreadyExistsError,
    UnsupportedError,
    UnsupportedVersionError,
    ValidationError,
)
from frazil.format.metadata import TableMetadata
from frazil.format.properties.table import METADATA_CODEC, METADATA_PATH
from frazil.storage.files import FileIO
from frazil.storage.locations import metadata_extension
from frazil.storage.paths import is_local, join, normalize_location, parent_of
from frazil.storage.side_by_side import WAITING_THREADS, in_threads

_PLAIN, _GZIP, *_ = EXTENSIONS
_DROPPED = re.compile(r"\..*\.[0-9a-f]{32}\.dropped")
_LOCK_TRIES = 10
_OF_TABLES = frozenset({"data", "metadata"})


class FilesystemCatalog(PointerCatalog):
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
        self._seen = SeenVersions()

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
        for depth in range(1, len(levels)):
            if self._is_table(self._folder(levels[:depth])):
                raise NamespaceAlreadyExistsError(
                    f"{shown(levels[:depth])} is a table in {self.name}, so no namespace can lie "
                    f"below it"
                )
        if self.io.is_folder(folder):
            raise NamespaceAlreadyExistsError(
                f"the namespace {shown(levels)} exists in {self.name}"
            )
        self.io.make_folder(folder)

    def drop_namespace(self, namespace: str | Sequence[str]) -> None:
        levels = parse_named_namespace(namespace)
        self._require_namespace(levels)
        folder = self._folder(levels)
        inside = [name for name, _ in self.io.list_folder(folder)]
        if not all(_is_dropped(name) for name in inside):
            raise NamespaceNotEmptyError(f"the namespace {shown(levels)} is not empty")
        for name in inside:
            self.io.delete_folder(join(folder, name))
        self.io.delete_empty_folder(folder)

    def list_namespaces(self, parent: str | Sequence[str] = ()) -> list[Identifier]:
        levels = parse_namespace(parent)
        if levels:
            self._require_namespace(levels)
        return [(*levels, child) for child, is_table in self._children(levels) if not is_table]

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
        return [(*levels, child) for child, is_table in self._children(levels) if is_table]

    def rename_table(self, source: str | Sequence[str], target: str | Sequence[str]) -> None:
        raise UnsupportedError(
            "the filesystem catalog cannot rename tables: a table's name is its folder"
        )

    def default_table_location(self, identifier: str | Sequence[str]) -> str:
        return self._folder(parse_table_identifier(identifier))

    def _find(self, name: Identifier) -> str | None:
        found = self._seen.current(self._versions(name))
        return None if found is None else found.path

    def _read(self, name: Identifier, location: str) -> TableMetadata:
        mark = self._seen.mark_of(self._versions(name), location)
        return read_metadata(self.io, location, mark=mark)

    def _create(self, name: Identifier, metadata: TableMetadata) -> LoadedTable:
        versions = self._versions(name)
        self._check_location(name, metadata)
        metadata_extension(metadata.properties)
        # Of two creators with different codecs one must meet the other's file.
        path = versions.path_of(1, _PLAIN)
        self._check_atomic(path)
        taken = TableAlreadyExistsError(f"the table {shown(name)} exists in {self.name}")
        self._require_no_namespace(name)
        with self._made_and_locked(versions):
            if versions.newest_listed() is not None:
                raise taken
            try:
                self._put(path, metadata)
            except CommitFailedError:
                raise taken from None
            except BaseException:
                self._remove_empty_folders(name, versions)
                raise
            versions.write_hint(1)
        return self._loaded_table(name, metadata, path)

    def _register(
        self, name: Identifier, metadata: TableMetadata, metadata_location: str
    ) -> LoadedTable:
        if not self.io.is_same_place(metadata.location, self._folder(name)):
            raise UnsupportedError(
                f"cannot register {metadata_location} as {shown(name)}: its location is "
                f"{metadata.location}, and a table of this catalog lies in {self._folder(name)}"
            )
        return self._create(name, metadata)

    def _swap(self, base: LoadedTable, updated: TableMetadata) -> LoadedTable:
        if updated.location != base.metadata.location:
            raise ValidationError(
                f"cannot move {shown(base.identifier)} from {base.metadata.location} to "
                f"{updated.location}: the filesystem catalog's tables stay in their folder"
            )
        self._check_location(base.identifier, updated)
        metadata_extension(updated.properties)
        versions = self._versions(base.identifier)
        base_version = versions.version_of(base.metadata_location)
        # All who follow one version try one name, whatever codec they set.
        codec = METADATA_CODEC.of_or_default(base.metadata.properties)
        path = versions.path_of(base_version + 1, _GZIP if codec == "gzip" else _PLAIN)
        self._check_atomic(path)
        with self._hold_lock(base.identifier, versions):
            self._check_newest(base, versions, base_version)
            self._put(path, updated)
            # Before the look at a drop: a drop that this look does not see takes the hint as well.
            versions.write_hint(base_version + 1)
            if not is_local(path):
                self._check_not_dropped(base, versions, path)
                self._seen.keep(versions, Version(base_version + 1, path))
        return self._loaded_table(base.identifier, updated, path)

    def _check_newest(self, base: LoadedTable, versions: VersionFolder, base_version: int) -> None:
        newest = versions.newest_listed()
        if newest is None:
            raise _dropped_table_error(base.identifier)
        if newest.version != base_version:
            raise CommitFailedError(
                f"{shown(base.identifier)} is at version {newest.version}, not {base_version}: "
                f"another writer was first"
            )
        # The lock was not held when the base was read; a store without locks gets the requests
        # of a commit alone.
        uuid = base.metadata.table_uuid
        if (
            uuid is not None
            and is_local(newest.path)
            and not names_uuid(self.io, newest.path, uuid)
        ):
            raise NoSuchTableError(
                f"the table {shown(base.identifier)} was dropped and made anew: load it again"
            )

    def _check_not_dropped(self, base: LoadedTable, versions: VersionFolder, path: str) -> None:
        """Take back a version that was made after a drop had ended, where no lock keeps both apart.

        A drop deletes the newest version last and then looks for later ones, so a version whose
        base is there is seen by every drop that goes on.
        """
        was_dropped = False
        with after_the_change(f"whether {shown(base.identifier)} was dropped cannot be told"):
            was_dropped = not (
                self.io.exists(base.metadata_location) or versions.has_others_than(path)
            )
        if was_dropped:
            # The drop itself may have taken the late version.
            with contextlib.suppress(MissingFileError):
                self.io.delete(path)
            versions.delete_hint()
            raise _dropped_table_error(base.identifier)

    def _drop(self, name: Identifier) -> None:
        versions = self._versions(name)
        with self._hold_lock(name, versions):
            newest = versions.newest_listed()
            if newest is None:
                raise self._no_table(name)
            self._require_no_tables_below(name)
            self._remove(name, versions, newest.path)

    def _purge(self, table: LoadedTable) -> tuple[str, ...]:
        name = table.identifier
        versions = self._versions(name)
        with self._hold_lock(name, versions):
            current = self.load_table(name)
            refuse_purge_without_gc(current.metadata, shown(name))
            self._require_no_tables_below(name)
            files = self._files_of(current)
            # The manifests say which files lie elsewhere, so they go after the table's name.
            versions.delete_all(current.metadata.table_uuid)
            try:
                return files.remove()
            finally:
                self._remove(name, versions, None)

    def stage_table(self, identifier: str | Sequence[str], metadata: TableMetadata) -> StagedTable:
        staged = super().stage_table(identifier, metadata)
        self._require_no_namespace(staged.identifier)
        return staged

    def _require_no_namespace(self, name: Identifier) -> None:
        """Check that the folder of a new table is no namespace, whose tables it would hide.

        A folder that a failed creation has left holds `data` or `metadata`.
        """
        folder = self._folder(name)
        if not self.io.is_folder(folder) or self._is_table(folder):
            return
        if not any(self.io.list_folder(folder)) or self._table_below(name) is not None:
            raise TableAlreadyExistsError(f"{shown(name)} is a namespace in {self.name}")

    def _require_no_tables_below(self, name: Identifier) -> None:
        """Check that no other table lies in a table's folder: it would go with it."""
        below = self._table_below(name)
        if below is not None:
            raise ValidationError(
                f"cannot remove {shown(name)}: the table {shown(below)} lies in its folder; "
                f"move that one first"
            )

    def _table_below(self, name: Identifier) -> Identifier | None:
        """A table that lies somewhere below a folder; data files are not looked at."""
        for child, is_table in self._children(name):
            below = (*name, child)
            if is_table:
                return below
            if child not in _OF_TABLES and (found := self._table_below(below)) is not None:
                return found
        return None

    def _remove(self, name: Identifier, versions: VersionFolder, newest: str | None) -> None:
        """Remove a table's folder; on its way the table is whole or gone, never in between."""
        folder = self._folder(name)
        left = f"files of the dropped table {shown(name)} are left in {folder}"
        if is_local(folder):
            hidden = join(parent_of(folder), f".{name[-1][-50:]}.{uuid4().hex}.dropped")
            self.io.move_folder(folder, hidden)
            with after_the_change(left):
                self.io.delete_folder(hidden)
            return
        # Another may make the table anew at any moment: its files are not in this list.
        files = [file.path for file in self.io.list(folder)]
        if newest is not None:
            versions.delete_all(self._uuid_in(newest))
        with after_the_change(left):
            metadata_files = {path for path in files if path.startswith(f"{versions.folder}/v")}
            for failure in self.io.delete_many(set(files) - metadata_files).values():
                raise failure
            if not any(self.io.list(folder)):
                self.io.delete_folder(folder)

    def _require_namespace(self, namespace: Identifier) -> None:
        if not self.namespace_exists(namespace):
            raise NoSuchNamespaceError(
                f"there is no namespace {shown(namespace)} in the catalog {self.name} "
                f"({self._folder(namespace)}): make it with create_namespace"
            )

    def _put(self, path: str, metadata: TableMetadata) -> None:
        """Create the version's file, which is the swap; the file itself says whose it is.

        Raises CommitFailedError: another writer has made it; CommitStateUnknownError: no answer
        came, and the store does not tell; StorageError: the local disk has refused it.
        """
        data = metadata_bytes(self.io, metadata, path=path)
        try:
            self.io.create(path, data)
        except (AlreadyExistsError, StorageError) as error:
            # A store's own retry can meet the file that its first try has written.
            reason = error
        else:
            return
        if find_outcome(
            lambda: self._is_ours(path, data, reason),
            metadata.properties,
            change=f"the new version {path}",
            reason=str(reason),
        ):
            return
        if isinstance(reason, AlreadyExistsError) or self.io.exists(path):
            raise CommitFailedError(f"{path} exists: another writer was first")
        raise reason

    def _is_ours(self, path: str, data: bytes, error: Exception) -> bool | None:
        try:
            return self.io.read(path) == data
        except MissingFileError:
            # A request to a store may still be under way.
            refused = isinstance(error, AlreadyExistsError | MissingFileError)
            return False if refused or is_local(path) else None

    @contextlib.contextmanager
    def _hold_lock(self, name: Identifier, versions: VersionFolder) -> Iterator[None]:
        with contextlib.ExitStack() as held:
            try:
                held.enter_context(self.io.lock(versions.folder))
            except MissingFileError:
                raise self._no_table(name) from None
            yield

    @contextlib.contextmanager
    def _made_and_locked(self, versions: VersionFolder) -> Iterator[None]:
        with contextlib.ExitStack() as held:
            for attempt in range(1, _LOCK_TRIES + 1):
                self.io.make_folder(versions.folder)
                try:
                    held.enter_context(self.io.lock(versions.folder))
                    break
                except MissingFileError:
                    # The table that was there is dropped between the two steps.
                    if attempt == _LOCK_TRIES:
                        raise
            yield

    def _remove_empty_folders(self, name: Identifier, versions: VersionFolder) -> None:
        with contextlib.suppress(FrazilError):
            self.io.delete_empty_folder(versions.folder)
            self.io.delete_empty_folder(self._folder(name))

    def _uuid_in(self, path: str) -> str | None:
        # A broken table can be dropped, too.
        try:
            return read_metadata(self.io, path).table_uuid
        except (InvalidFormatError, UnsupportedVersionError):
            return None

    def _check_location(self, name: Identifier, metadata: TableMetadata) -> None:
        if not self.io.is_same_place(metadata.location, self._folder(name)):
            raise ValidationError(
                f"the location of {shown(name)} must be {self._folder(name)}, not "
                f"{metadata.location}: in the filesystem catalog the folder is the name"
            )
        if METADATA_PATH.name in metadata.properties:
            raise ValidationError(
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
        require_folder_names(levels)
        return join(self.warehouse, *levels)

    def _child_folders(self, levels: Identifier) -> list[str]:
        try:
            listed = self.io.list_folder(self._folder(levels))
        except MissingFileError:
            return []
        return [name for name, is_folder in listed if is_folder and not _is_dropped(name)]

    def _children(self, levels: Identifier) -> list[tuple[str, bool]]:
        """The folders below, and whether each is a table; they are looked at beside each other."""
        folder = self._folder(levels)
        return in_threads(
            lambda child: (child, self._is_table(join(folder, child))),
            self._child_folders(levels),
            threads=WAITING_THREADS,
            name="frazil-tables",
        )

    def _is_table(self, folder: str) -> bool:
        return VersionFolder(self.io, join(folder, "metadata")).holds_metadata()


def _dropped_table_error(name: Identifier) -> NoSuchTableError:
    return NoSuchTableError(f"the table {shown(name)} was dropped")


def _is_dropped(folder: str) -> bool:
    """Whether a folder is what a drop that was killed has left."""
    return _DROPPED.fullmatch(folder) is not None
