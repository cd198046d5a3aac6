"""PointerCatalog: updates are applied here, and a pointer moves to the new metadata file."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from frazil.catalog.identifiers import Identifier, parse_table_identifier, shown
from frazil.catalog.metadata_files import read_metadata, read_pointed_metadata
from frazil.catalog.outcome import after_the_change
from frazil.catalog.protocol import Capability, Catalog, LoadedTable, StagedTable
from frazil.errors import (
    CommitFailedError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
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
from frazil.later import later

if TYPE_CHECKING:
    from frazil.catalog.purge import FilesToPurge, refuse_purge_without_gc
else:
    FilesToPurge, refuse_purge_without_gc = later(
        "frazil.catalog.purge", "FilesToPurge", "refuse_purge_without_gc"
    )


class PointerCatalog(Catalog):
    """A catalog that knows of each table which metadata file is current.

    A commit checks the requirements and applies the updates in this process, writes the new
    metadata file and moves the pointer, if it still is where it was. A kind of such a catalog says
    where the pointers are.
    """

    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.CHANGES})

    def create_table(self, identifier: str | Sequence[str], metadata: TableMetadata) -> LoadedTable:
        return self._create(self.stage_table(identifier, metadata).identifier, metadata)

    def stage_table(self, identifier: str | Sequence[str], metadata: TableMetadata) -> StagedTable:
        name = parse_table_identifier(identifier)
        self._require_namespace(name[:-1])
        if self._find(name) is not None:
            raise TableAlreadyExistsError(f"the table {shown(name)} exists in {self.name}")
        return StagedTable(name, metadata, self.io)

    def create_staged_table(self, staged: StagedTable) -> LoadedTable:
        self._require_namespace(staged.identifier[:-1])
        return self._create(staged.identifier, staged.metadata)

    def load_table(self, identifier: str | Sequence[str]) -> LoadedTable:
        name = parse_table_identifier(identifier)
        location = self.metadata_location(name)
        return self._loaded_table(name, self._read(name, location), location)

    def metadata_location(self, identifier: str | Sequence[str]) -> str:
        name = parse_table_identifier(identifier)
        location = self._find(name)
        if location is None:
            raise self._no_table(name)
        return location

    def table_exists(self, identifier: str | Sequence[str]) -> bool:
        return self._find(parse_table_identifier(identifier)) is not None

    def register_table(
        self, identifier: str | Sequence[str], metadata_location: str
    ) -> LoadedTable:
        name = parse_table_identifier(identifier)
        self._require_namespace(name[:-1])
        metadata = read_metadata(self.io, metadata_location)
        if self._find(name) is not None:
            raise TableAlreadyExistsError(f"the table {shown(name)} exists in {self.name}")
        return self._register(name, metadata, metadata_location)

    def drop_table(self, identifier: str | Sequence[str]) -> None:
        self._drop(parse_table_identifier(identifier))

    def purge_table(self, identifier: str | Sequence[str]) -> tuple[str, ...]:
        table = self.load_table(identifier)
        refuse_purge_without_gc(table.metadata, shown(table.identifier))
        return self._purge(table)

    def commit_table(
        self,
        identifier: str | Sequence[str],
        requirements: Sequence[Requirement],
        updates: Sequence[Update],
        *,
        base: LoadedTable | None = None,
    ) -> LoadedTable:
        name = parse_table_identifier(identifier)
        location = self._find(name)
        if base is not None and location is not None:
            self._check_pointer(name, base.metadata_location, location)
        creates = any(isinstance(requirement, AssertCreate) for requirement in requirements)
        if location is None and not creates:
            raise self._no_table(name)
        if location is None:
            self._require_namespace(name[:-1])
            check_requirements(None, requirements)
            return self._create(name, apply_updates(None, updates))
        current = self._loaded_table(name, self._read(name, location), location)
        check_requirements(current.metadata, requirements)
        updated = apply_updates(current.metadata, updates)
        if updated is current.metadata:
            return current
        updated = with_previous_metadata(
            updated, current.metadata_location, updated_ms=current.metadata.last_updated_ms
        )
        committed = self._swap(current, updated)
        with after_the_change(f"old metadata files of {shown(name)} were not deleted"):
            self._delete_trimmed(current.metadata, updated)
        return committed

    # -- what such a catalog is made of ----------------------------------------------------------

    @abstractmethod
    def _find(self, name: Identifier) -> str | None:
        """The current metadata file of a table, None if there is no table."""

    def _read(self, name: Identifier, location: str) -> TableMetadata:
        """What the metadata file holds that `_find` has found."""
        return read_pointed_metadata(self.io, location)

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

    def _purge(self, table: LoadedTable) -> tuple[str, ...]:
        files = self._files_of(table)
        # The name goes before the files: a half-deleted table must not be readable.
        self._drop(table.identifier)
        return files.remove()

    def _files_of(self, table: LoadedTable) -> FilesToPurge:
        may_delete = self.delete_policy(table.metadata)
        return FilesToPurge.look(
            self.io, table.metadata, table.metadata_location, may_delete=may_delete
        )

    def _loaded_table(
        self, name: Identifier, metadata: TableMetadata, metadata_location: str
    ) -> LoadedTable:
        return LoadedTable(name, metadata, metadata_location, self.io)

    def _check_pointer(self, name: Identifier, expected: str, found: str) -> None:
        """Refuse to swap another pointer than the one that the updates were made from.

        A commit may rest on more than requirements can say: on properties, on retention.
        """
        if found != expected:
            raise CommitFailedError(
                f"expected metadata file {expected} of {shown(name)}, found {found}: "
                f"another writer was first"
            )

    def _no_table(self, name: Identifier) -> NoSuchTableError:
        return NoSuchTableError(f"there is no table {shown(name)} in the catalog {self.name}")

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
        dropped = filter(self.delete_policy(updated), dropped_metadata_files(base, updated))
        for failure in self.io.delete_many(dropped).values():
            raise failure
