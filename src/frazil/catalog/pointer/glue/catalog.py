"""Tables and databases of AWS Glue's Data Catalog, as Java's GlueCatalog and PyIceberg have them.

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
from frazil.catalog.pointer.glue.connection import ALREADY_EXISTS, NOT_FOUND, GlueConnection
from frazil.catalog.pointer.glue.entries import (
    GlueTable,
    database_input,
    database_properties,
    new_table_input,
)
from frazil.catalog.pointer.glue.names import GlueNames
from frazil.catalog.pointer.glue.settings import PROPERTY_NAMES, PROPERTY_PREFIXES, GlueSettings
from frazil.catalog.pointer.glue.tables import GlueTables
from frazil.catalog.pointer.pointer_race import PointerRace
from frazil.catalog.pointer.record_catalog import RecordCatalog
from frazil.catalog.protocol import Capability, LoadedTable, StagedTable
from frazil.errors import (
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
)
from frazil.format.metadata import TableMetadata
from frazil.storage.files import FileIO


class GlueNamespaces:
    """The databases of one catalog.

    Args:
        connection: to the service.
        names: which names there can be.
        tables: of the same catalog.
        status_checks: say how long to ask after a lost answer.
    """

    def __init__(
        self,
        connection: GlueConnection,
        names: GlueNames,
        tables: GlueTables,
        *,
        status_checks: Mapping[str, str],
    ) -> None:
        self._glue = connection
        self._names = names
        self._tables = tables
        self._status_checks = status_checks

    def children(self, levels: Identifier) -> list[Identifier]:
        """Return all databases, sorted, or what lies below one, which is nothing."""
        if levels:
            return []
        found = self._glue.pages("get_databases", "DatabaseList")
        return sorted((str(entry["Name"]),) for entry in found if entry is not None)

    def is_there(self, namespace: Identifier) -> bool:
        """Return whether there is a database of that name."""
        return self._find(namespace) is not None

    def missing_error(self, namespace: Identifier) -> NoSuchNamespaceError:
        """Return the error for a namespace that is not there."""
        return self._tables.no_namespace(namespace)

    def properties_of(self, namespace: Identifier) -> dict[str, str]:
        """Return a namespace's properties; NoSuchNamespaceError if it is not there."""
        return database_properties(self._require_database(namespace))

    def create(self, namespace: Identifier, properties: Mapping[str, str]) -> None:
        """Make a database; NamespaceAlreadyExistsError if it is there."""
        self._names.require_namespace(namespace)
        taken = NamespaceAlreadyExistsError(
            f"the namespace {shown(namespace)} exists in {self._glue.name}"
        )
        self._glue.change(
            f"the namespace {shown(namespace)}",
            "create_database",
            {"DatabaseInput": database_input(namespace[0], properties)},
            took_place=lambda: self._change_took_place(namespace, properties),
            properties=self._status_checks,
            refusals={ALREADY_EXISTS: taken},
        )

    def update(
        self, namespace: Identifier, updates: Mapping[str, str], removals: Sequence[str]
    ) -> None:
        """Set and remove properties; of two writers at the same moment the later one wins."""
        before = self._require_database(namespace)
        found = database_properties(before)
        kept = {key: value for key, value in found.items() if key not in removals}
        wanted = {**kept, **updates}
        self._glue.change(
            f"the change of the properties of {shown(namespace)}",
            "update_database",
            {
                "Name": namespace[0],
                "DatabaseInput": database_input(namespace[0], wanted, before),
            },
            took_place=lambda: self._change_took_place(namespace, wanted, before=found),
            properties=self._status_checks,
            refusals={NOT_FOUND: self._tables.no_namespace(namespace)},
        )

    def drop(self, namespace: Identifier) -> None:
        """Remove a database."""
        self._require_database(namespace)
        # Glue would remove the tables with it.
        for entry in self._glue.pages("get_tables", "TableList", DatabaseName=namespace[0]):
            if entry is not None:
                raise self._not_empty(namespace, GlueTable(entry))
        self._glue.change(
            f"the end of the namespace {shown(namespace)}",
            "delete_database",
            {"Name": namespace[0]},
            took_place=lambda: not self.is_there(namespace),
            properties=self._status_checks,
            refusals={NOT_FOUND: self._tables.no_namespace(namespace)},
        )

    def _find(self, namespace: Identifier) -> dict[str, Any] | None:
        if self._names.fault_of_namespace(namespace) is not None:
            return None
        answer = self._glue.find("get_database", Name=namespace[0])
        return None if answer is None else answer["Database"]

    def _require_database(self, namespace: Identifier) -> dict[str, Any]:
        found = self._find(namespace)
        if found is None:
            raise self._tables.no_namespace(namespace)
        return found

    def _change_took_place(
        self,
        namespace: Identifier,
        wanted: Mapping[str, str],
        *,
        before: Mapping[str, str] | None = None,
    ) -> bool | None:
        """Whether the properties are those of a change, or as before it; None if neither."""
        found = self._find(namespace)
        properties = None if found is None else database_properties(found)
        if properties == wanted:
            return True
        return False if properties == before else None

    def _not_empty(self, namespace: Identifier, table: GlueTable) -> NamespaceNotEmptyError:
        kind = "Iceberg" if table.is_iceberg else table.format_name
        return NamespaceNotEmptyError(
            f"the namespace {shown(namespace)} is not empty: it holds {table.answer['Name']}, a "
            f"table of the format {kind}"
        )


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
            if location := self._namespaces.properties_of(name[:-1]).get("location"):
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
        return self._tables.missing_error(name)

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
