"""What every catalog does: names of namespaces and tables, and the swap of a table's pointer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from frazil.catalog.identifiers import (
    Identifier,
    parse_namespace,
    parse_table_identifier,
    shown,
)
from frazil.catalog.metadata_files import read_metadata
from frazil.catalog.outcome import after_the_change
from frazil.catalog.purge import refuse_purge_without_gc, remove_files_of
from frazil.errors import NoSuchNamespaceError, NoSuchTableError, TableAlreadyExistsError
from frazil.format.changes import (
    AssertCreate,
    Requirement,
    Update,
    apply_updates,
    check_requirements,
    dropped_metadata_files,
    with_previous_metadata,
)
from frazil.format.metadata import TableMetadata
from frazil.format.properties.table import DELETE_AFTER_COMMIT
from frazil.storage.files import FileIO
from frazil.storage.paths import redact_properties


@dataclass(frozen=True, slots=True)
class LoadedTable:
    """A table as it was when the catalog was asked.

    Attributes:
        identifier: namespace levels and the table's name.
        metadata: the content of the metadata file.
        metadata_location: that file's path.
    """

    identifier: Identifier
    metadata: TableMetadata
    metadata_location: str


class Catalog(ABC):
    """Namespaces, tables, and one atomic step: a table's pointer moves to new metadata (rule 214).

    Identifiers and namespaces are given as ``"db.t"`` or ``("db", "t")``.

    Attributes:
        name: the catalog's, as in its rows and in the configuration.
        properties: as configured; secrets stay in them, so never print them (repr does not).
        io: reads and writes the tables' files.
    """

    kind: ClassVar[str] = "catalog"

    def __init__(
        self, name: str, properties: Mapping[str, str], *, io: FileIO | None = None
    ) -> None:
        self.name = name
        self.properties = dict(properties)
        self.io = io if io is not None else FileIO(properties)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {redact_properties(self.properties)})"

    # -- namespaces ------------------------------------------------------------------------------

    @abstractmethod
    def create_namespace(
        self, namespace: str | Sequence[str], properties: Mapping[str, str] | None = None
    ) -> None:
        """Make a namespace.

        Raises:
            NamespaceAlreadyExistsError: it exists.
            UnsupportedError: properties were given and the catalog keeps none.
        """

    @abstractmethod
    def drop_namespace(self, namespace: str | Sequence[str]) -> None:
        """Remove an empty namespace.

        Raises:
            NoSuchNamespaceError: it does not exist.
            NamespaceNotEmptyError: it holds tables, views or namespaces.
        """

    @abstractmethod
    def list_namespaces(self, parent: str | Sequence[str] = ()) -> list[Identifier]:
        """The namespaces directly below a namespace, or the top ones, sorted.

        Raises:
            NoSuchNamespaceError: the parent does not exist.
        """

    @abstractmethod
    def namespace_exists(self, namespace: str | Sequence[str]) -> bool:
        """Whether the namespace was made or holds something."""

    @abstractmethod
    def load_namespace_properties(self, namespace: str | Sequence[str]) -> dict[str, str]:
        """The namespace's properties; NoSuchNamespaceError if it does not exist."""

    @abstractmethod
    def update_namespace_properties(
        self,
        namespace: str | Sequence[str],
        *,
        updates: Mapping[str, str] | None = None,
        removals: Sequence[str] = (),
    ) -> None:
        """Set and remove properties in one step.

        Raises:
            NoSuchNamespaceError: it does not exist.
            ValidationError: a key is both set and removed.
            UnsupportedError: the catalog keeps no properties of namespaces.
        """

    # -- tables ----------------------------------------------------------------------------------

    @abstractmethod
    def list_tables(self, namespace: str | Sequence[str]) -> list[Identifier]:
        """The tables directly in a namespace, sorted; NoSuchNamespaceError if it does not exist."""

    def list_tables_below(self, namespace: str | Sequence[str] = ()) -> list[Identifier]:
        """The tables in a namespace and in all namespaces below it, or of the catalog, sorted.

        NoSuchNamespaceError if it does not exist; one that is dropped meanwhile holds none.
        """
        top = parse_namespace(namespace)
        found = self.list_tables(top) if top else []
        waiting = self.list_namespaces(top)
        while waiting:
            current = waiting.pop()
            try:
                found.extend(self.list_tables(current))
                waiting.extend(self.list_namespaces(current))
            except NoSuchNamespaceError:
                continue
        return sorted(found)

    @abstractmethod
    def rename_table(self, source: str | Sequence[str], target: str | Sequence[str]) -> None:
        """Give a table another name.

        Raises:
            NoSuchTableError: there is no such table.
            TableAlreadyExistsError: the target's name is taken.
            NoSuchNamespaceError: the target's namespace does not exist.
            UnsupportedError: the catalog cannot rename.
        """

    @abstractmethod
    def default_table_location(self, identifier: str | Sequence[str]) -> str:
        """Where a new table lies unless its creator says otherwise.

        Raises:
            ConfigurationError: neither the namespace nor the catalog has a location.
        """

    def create_table(self, identifier: str | Sequence[str], metadata: TableMetadata) -> LoadedTable:
        """Make a table of new metadata; of concurrent creators exactly one succeeds.

        How it ends is as in commit_table.

        Raises:
            TableAlreadyExistsError: the name is taken.
            NoSuchNamespaceError: the namespace does not exist.
            ValidationError: the metadata does not fit the catalog.
            CommitFailedError: no answer came, and the table was not made.
            CommitStateUnknownError: no answer came and none could be had; nothing was deleted.
        """
        name = parse_table_identifier(identifier)
        self._require_namespace(name[:-1])
        if self._find(name) is not None:
            raise TableAlreadyExistsError(f"the table {shown(name)} exists in {self.name}")
        return self._create(name, metadata)

    def load_table(self, identifier: str | Sequence[str]) -> LoadedTable:
        """The table as it is now.

        Raises:
            NoSuchTableError: there is no such table.
            InvalidMetadataError: its metadata file, or the catalog's own record, is broken.
            MissingFileError: its metadata file is gone.
        """
        name = parse_table_identifier(identifier)
        location = self._find(name)
        if location is None:
            raise NoSuchTableError(f"there is no table {shown(name)} in the catalog {self.name}")
        return LoadedTable(name, read_metadata(self.io, location), location)

    def table_exists(self, identifier: str | Sequence[str]) -> bool:
        """Whether there is a table of that name; its metadata is not read."""
        return self._find(parse_table_identifier(identifier)) is not None

    def register_table(
        self, identifier: str | Sequence[str], metadata_location: str
    ) -> LoadedTable:
        """Make a table of an existing metadata file.

        Raises:
            TableAlreadyExistsError: the name is taken.
            NoSuchNamespaceError: the namespace does not exist.
            MissingFileError, InvalidMetadataError: the file is not a table's metadata.
        """
        name = parse_table_identifier(identifier)
        self._require_namespace(name[:-1])
        metadata = read_metadata(self.io, metadata_location)
        if self._find(name) is not None:
            raise TableAlreadyExistsError(f"the table {shown(name)} exists in {self.name}")
        return self._register(name, metadata, metadata_location)

    def drop_table(self, identifier: str | Sequence[str]) -> None:
        """Remove a table from the catalog; beside writers it is afterwards whole or gone.

        Raises:
            NoSuchTableError: there is no such table.
            CommitFailedError: no answer came, and the table is as it was.
            CommitStateUnknownError: no answer came and none could be had.
        """
        self._drop(parse_table_identifier(identifier))

    def purge_table(self, identifier: str | Sequence[str]) -> None:
        """Remove a table from the catalog, and every file that its snapshots reach.

        Raises:
            NoSuchTableError: there is no such table.
            ValidationError: the table's gc.enabled is false; nothing was changed.
            StorageError: files could not be deleted; the table is gone from the catalog.
        """
        table = self.load_table(identifier)
        refuse_purge_without_gc(table.metadata, shown(table.identifier))
        self._purge(table)

    def commit_table(
        self,
        identifier: str | Sequence[str],
        requirements: Sequence[Requirement],
        updates: Sequence[Update],
    ) -> LoadedTable:
        """Check the requirements against the table as it is, apply the updates, swap the pointer.

        With AssertCreate the updates make a new table. Updates that change nothing swap nothing.

        A commit ends in one of three ways:

        - It is refused: a ValidationError, ConfigurationError, UnsupportedError, NotFoundError
          (but MissingFileError), AlreadyExistsError or CommitFailedError says that the swap
          was not sent, or that the catalog has refused it. The metadata file of this try is
          deleted, and what the caller wrote for the commit is part of nothing.
        - It takes place and returns. What follows the swap, such as the deletion of old metadata
          files, makes no failure of it; an error there is logged.
        - Everything else says nothing of the outcome: CommitStateUnknownError, StorageError,
          an error of another kind, an interruption. The swap may have been sent and may still be
          under way. If it was sent nothing is deleted, and the caller may not delete either.

        Returns:
            The table after the commit.

        Raises:
            CommitFailedError: a requirement does not hold, another writer was first, or no
                answer came and the catalog shows that the swap did not take place.
            CommitStateUnknownError: no answer came and none could be had.
            NoSuchTableError: there is no such table, and no AssertCreate.
            ValidationError: the updates contradict the table or the specification.
            StorageError: the store or the database failed.
        """
        name = parse_table_identifier(identifier)
        location = self._find(name)
        creates = any(isinstance(requirement, AssertCreate) for requirement in requirements)
        if location is None and not creates:
            raise NoSuchTableError(f"there is no table {shown(name)} in the catalog {self.name}")
        if location is None:
            self._require_namespace(name[:-1])
            check_requirements(None, requirements)
            return self._create(name, apply_updates(None, updates))
        base = LoadedTable(name, read_metadata(self.io, location), location)
        check_requirements(base.metadata, requirements, location=base.metadata_location)
        updated = apply_updates(base.metadata, updates)
        if updated is base.metadata:
            return base
        updated = with_previous_metadata(
            updated, base.metadata_location, updated_ms=base.metadata.last_updated_ms
        )
        committed = self._swap(base, updated)
        with after_the_change(f"old metadata files of {shown(name)} were not deleted"):
            self._delete_trimmed(base.metadata, updated)
        return committed

    def close(self) -> None:  # noqa: B027
        """Give back connections; the catalog is not used afterwards."""

    # -- what a catalog is made of ---------------------------------------------------------------

    @abstractmethod
    def _find(self, name: Identifier) -> str | None:
        """The current metadata file of a table, None if there is no table."""

    @abstractmethod
    def _create(self, name: Identifier, metadata: TableMetadata) -> LoadedTable:
        """Write the first metadata file and make the name, if it is still free."""

    @abstractmethod
    def _register(
        self, name: Identifier, metadata: TableMetadata, metadata_location: str
    ) -> LoadedTable:
        """Make the name point to an existing metadata file, if it is still free."""

    @abstractmethod
    def _swap(self, base: LoadedTable, updated: TableMetadata) -> LoadedTable:
        """Write the metadata and move the pointer, if it still points to the base."""

    @abstractmethod
    def _drop(self, name: Identifier) -> None:
        """Remove the name; NoSuchTableError if there is none."""

    def _purge(self, table: LoadedTable) -> None:
        # The name goes first: a half-deleted table must not be readable.
        self._drop(table.identifier)
        remove_files_of(self.io, table.metadata, table.metadata_location)

    def _require_namespace(self, namespace: Identifier) -> None:
        if not self.namespace_exists(namespace):
            raise NoSuchNamespaceError(
                f"there is no namespace {shown(namespace)} in the catalog {self.name}: "
                f"make it with create_namespace"
            )

    def _delete_trimmed(self, base: TableMetadata, updated: TableMetadata) -> None:
        # The swap took place: a malformed property must not turn it into a failure.
        if not DELETE_AFTER_COMMIT.of_or_default(updated.properties):
            return
        for failure in self.io.delete_many(dropped_metadata_files(base, updated)).values():
            raise failure
