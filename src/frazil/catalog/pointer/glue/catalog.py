"""Tables of AWS Glue's Data Catalog, shared with Java's GlueCatalog, PyIceberg and Athena.

A commit writes a metadata file and changes the table in Glue, if it still is of the same version.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from frazil.catalog.identifiers import (
    Identifier,
    parse_named_namespace,
    parse_table_identifier,
    require_folder_names,
    shown,
)
from frazil.catalog.outcome import Sending
from frazil.catalog.pointer.glue.connection import GlueConnection
from frazil.catalog.pointer.glue.entries import GlueTable, new_table_input
from frazil.catalog.pointer.glue.names import GlueNames
from frazil.catalog.pointer.glue.namespaces import GlueNamespaces
from frazil.catalog.pointer.glue.settings import PROPERTY_NAMES, PROPERTY_PREFIXES, GlueSettings
from frazil.catalog.pointer.glue.tables import GlueTables
from frazil.catalog.pointer.pointer_race import PointerRace
from frazil.catalog.pointer.record_catalog import RecordCatalog
from frazil.catalog.protocol import Capability, LoadedTable, StagedTable
from frazil.errors import (
    NoSuchNamespaceError,
    NoSuchTableError,
)
from frazil.format.metadata import TableMetadata
from frazil.storage.files import FileIO


class GlueCatalog(RecordCatalog[GlueNamespaces]):
    """AWS Glue's Data Catalog, and services that speak its protocol.

    Properties: ``warehouse``, ``glue.region``, ``glue.access-key-id`` and the other properties of
    `frazil.catalog.pointer.glue.settings`, and ``commit.status-check.*`` for changes of names; a
    table's own count for its commits.
    """

    kind: ClassVar[str] = "glue"
    capabilities: ClassVar[frozenset[Capability]] = RecordCatalog.capabilities | {
        Capability.NAMESPACE_PROPERTIES,
        Capability.RENAMES,
        Capability.TABLE_LOCATIONS,
    }
    property_names: ClassVar[frozenset[str] | None] = PROPERTY_NAMES
    property_prefixes: ClassVar[tuple[str, ...]] = PROPERTY_PREFIXES

    def __init__(
        self, name: str, properties: Mapping[str, str], *, io: FileIO | None = None
    ) -> None:
        super().__init__(name, properties, io=io)
        settings = GlueSettings.of(properties)
        names = GlueNames(settings.skips_name_validation)
        checks = self.properties
        self._names = names
        self._connection = GlueConnection(name, settings, checks)
        self._tables = GlueTables(self._connection, names, status_checks=checks)
        self._namespaces = GlueNamespaces(
            self._connection, names, self._tables, status_checks=checks
        )

    def close(self) -> None:
        self._connection.close()

    # -- tables ----------------------------------------------------------------------------------

    def list_tables(self, namespace: str | Sequence[str]) -> list[Identifier]:
        levels = parse_named_namespace(namespace)
        if self._names.fault_of_namespace(levels) is not None:
            raise self._tables.no_namespace(levels)
        return self._tables.names_in(levels)

    def stage_table(self, identifier: str | Sequence[str], metadata: TableMetadata) -> StagedTable:
        name = parse_table_identifier(identifier)
        self._names.require_table(name)
        self._require_namespace(name[:-1])
        if self._tables.find(name) is not None:
            raise self._tables.taken_name_error(name)
        return StagedTable(name, metadata, self.io)

    def rename_table(self, source: str | Sequence[str], target: str | Sequence[str]) -> None:
        old, new = parse_table_identifier(source), parse_table_identifier(target)
        table = self._tables.find_iceberg(old)
        if table is None:
            raise self._no_table(old)
        if old == new:
            return
        self._names.require_table(new)
        self._tables.rename(old, table, new)

    def default_table_location(self, identifier: str | Sequence[str]) -> str:
        name = parse_table_identifier(identifier)
        require_folder_names(name)
        with contextlib.suppress(NoSuchNamespaceError):
            properties = self._namespaces.properties_of(name[:-1])
            if location := properties.get("location"):
                return self._in_location(location, name)
        return self._in_warehouse(name, f"{'.'.join(name[:-1])}.db", name[-1])

    def _find(self, name: Identifier) -> str | None:
        table = self._tables.find_iceberg(name)
        return None if table is None else self._tables.pointer_of(name, table)

    def _insert(self, table: LoadedTable, sending: Sending) -> None:
        name = table.identifier
        self._names.require_table(name)
        made = new_table_input(name[-1], table.metadata, table.metadata_location)
        self._tables.insert(
            name,
            made,
            took_place=lambda: self._was_made(table, made),
            properties=table.metadata.properties,
            sending=sending,
        )

    def _swap(self, base: LoadedTable, updated: TableMetadata) -> LoadedTable:
        name, found = base.identifier, self._tables.find_iceberg(base.identifier)
        if found is None:
            raise NoSuchTableError(f"the table {shown(name)} was dropped or renamed")
        self._check_pointer(name, base.metadata_location, self._tables.pointer_of(name, found))
        table = self._successor(base, updated)
        with self._metadata_file(table) as sending:
            self._tables.update(
                name,
                found,
                new_table_input(name[-1], updated, table.metadata_location, before=found),
                took_place=lambda: self._was_moved(base, table),
                properties=base.metadata.properties,
                sending=sending,
            )
        return table

    def _drop(self, name: Identifier) -> None:
        found = self._tables.find_iceberg(name)
        if found is None:
            raise self._no_table(name)
        self._tables.delete(name, found)

    def _no_table(self, name: Identifier) -> NoSuchTableError:
        found = self._tables.find(name)
        if found is not None and not found.is_iceberg:
            return self._tables.of_other_format(name, found)
        return self._tables.missing(name)

    # -- lost answers ----------------------------------------------------------------------------

    def _was_made(self, table: LoadedTable, made: Mapping[str, Any]) -> bool | None:
        """Whether the table is there; a call that may come late is sent again until one is."""
        found = self._tables.find(table.identifier)
        if found is None:
            return self._tables.insert_again(table.identifier, made)
        return PointerRace(None, table, lambda: _pointer(found)).took_place(self.io)

    def _was_moved(self, base: LoadedTable, table: LoadedTable) -> bool | None:
        """Whether the pointer was moved by a call without an answer."""

        def settled_pointer() -> str | None:
            return _pointer(self._tables.settled_table(base.identifier, base.metadata_location))

        return PointerRace(base, table, settled_pointer).took_place(self.io)


def _pointer(table: GlueTable | None) -> str | None:
    return None if table is None else table.pointer
