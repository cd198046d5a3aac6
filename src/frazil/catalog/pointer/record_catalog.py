"""RecordCatalog: a pointer catalog of a database or service, with a record for each name."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Generic, Protocol, TypeVar

from frazil.catalog.identifiers import (
    Identifier,
    parse_named_namespace,
    parse_namespace,
    require_folder_names,
    shown,
)
from frazil.catalog.metadata_files import metadata_bytes
from frazil.catalog.outcome import Sending, new_metadata_file
from frazil.catalog.pointer.catalog import PointerCatalog
from frazil.catalog.protocol import LoadedTable, property_changes
from frazil.errors import ConfigurationError, NoSuchNamespaceError
from frazil.format.metadata import TableMetadata
from frazil.storage.locations import metadata_version, new_metadata_file_path
from frazil.storage.paths import join, normalize_location


class Namespaces(Protocol):
    """The namespaces of such a catalog."""

    def create(self, levels: Identifier, properties: Mapping[str, str]) -> None:
        """Make a namespace; NamespaceAlreadyExistsError if it is there."""

    def drop(self, levels: Identifier) -> None:
        """Remove a namespace; NamespaceNotEmptyError if something lies in it."""

    def update(
        self, levels: Identifier, updates: Mapping[str, str], removals: Sequence[str]
    ) -> None:
        """Change a namespace's properties; NoSuchNamespaceError if it is not there."""

    def properties_of(self, levels: Identifier) -> dict[str, str]:
        """Return a namespace's properties; NoSuchNamespaceError if it is not there."""

    def is_there(self, levels: Identifier) -> bool:
        """Return whether there is a namespace."""

    def missing_error(self, levels: Identifier) -> NoSuchNamespaceError:
        """Return the error for a namespace that is not there."""

    def children(self, levels: Identifier) -> list[Identifier]:
        """Return the namespaces directly below one that is there, sorted."""


NamespacesT = TypeVar("NamespacesT", bound=Namespaces)


class RecordCatalog(PointerCatalog, Generic[NamespacesT]):
    """A pointer catalog that keeps a record of each namespace and of each table.

    A kind of such a catalog says what its namespaces are, and how a record is made and changed.
    """

    _namespaces: NamespacesT

    def create_namespace(
        self, namespace: str | Sequence[str], properties: Mapping[str, str] | None = None
    ) -> None:
        self._namespaces.create(parse_named_namespace(namespace), properties or {})

    def drop_namespace(self, namespace: str | Sequence[str]) -> None:
        self._namespaces.drop(parse_named_namespace(namespace))

    def list_namespaces(self, parent: str | Sequence[str] = ()) -> list[Identifier]:
        levels = parse_namespace(parent)
        if levels:
            self._require_namespace(levels)
        return self._namespaces.children(levels)

    def namespace_exists(self, namespace: str | Sequence[str]) -> bool:
        return self._namespaces.is_there(parse_named_namespace(namespace))

    def load_namespace_properties(self, namespace: str | Sequence[str]) -> dict[str, str]:
        return self._namespaces.properties_of(parse_named_namespace(namespace))

    def update_namespace_properties(
        self,
        namespace: str | Sequence[str],
        *,
        updates: Mapping[str, str] | None = None,
        removals: Sequence[str] = (),
    ) -> None:
        changes = property_changes(updates, removals)
        self._namespaces.update(parse_named_namespace(namespace), changes, removals)

    def _create(self, name: Identifier, metadata: TableMetadata) -> LoadedTable:
        table = self._loaded_table(name, metadata, new_metadata_file_path(metadata, version=0))
        with self._metadata_file(table) as sending:
            self._insert(table, sending)
        return table

    def _register(
        self, name: Identifier, metadata: TableMetadata, metadata_location: str
    ) -> LoadedTable:
        table = self._loaded_table(name, metadata, metadata_location)
        self._insert(table, Sending())
        return table

    def _require_namespace(self, namespace: Identifier) -> None:
        if not self._namespaces.is_there(namespace):
            raise self._namespaces.missing_error(namespace)

    @abstractmethod
    def _insert(self, table: LoadedTable, sending: Sending) -> None:
        """Make the record of a table whose metadata file is written, if the name is still free."""

    def _successor(self, base: LoadedTable, updated: TableMetadata) -> LoadedTable:
        """The table that a commit makes of the base; its metadata file has the next number."""
        version = metadata_version(base.metadata_location)
        path = new_metadata_file_path(updated, version=0 if version is None else version + 1)
        return self._loaded_table(base.identifier, updated, path)

    def _metadata_file(self, table: LoadedTable) -> AbstractContextManager[Sending]:
        """Write a table's metadata file for the change that the block sends."""
        path = table.metadata_location
        return new_metadata_file(self.io, path, metadata_bytes(self.io, table.metadata, path=path))

    def _in_location(self, location: str, name: Identifier) -> str:
        """Where a new table lies in a namespace that has a location."""
        require_folder_names(name[-1:])
        return join(normalize_location(location), name[-1])

    def _in_warehouse(self, name: Identifier, *folders: str) -> str:
        """Where a new table lies in a namespace that has no location."""
        warehouse = self.properties.get("warehouse")
        if not warehouse:
            raise ConfigurationError(
                f"no location for {shown(name)}: set the catalog's warehouse or the namespace's "
                f"location"
            )
        require_folder_names(name)
        return join(normalize_location(warehouse), *folders)
