"""Namespaces of a Glue catalog: its databases, with location, description and parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from frazil.catalog.identifiers import Identifier, shown
from frazil.catalog.pointer.glue.connection import ALREADY_EXISTS, NOT_FOUND, GlueConnection
from frazil.catalog.pointer.glue.entries import GlueTable, database_input, database_properties
from frazil.catalog.pointer.glue.names import GlueNames
from frazil.catalog.pointer.glue.tables import GlueTables
from frazil.errors import NamespaceAlreadyExistsError, NamespaceNotEmptyError, NoSuchNamespaceError


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

    def below(self, levels: Identifier) -> list[Identifier]:
        """Return all databases, sorted, or what lies below one, which is nothing."""
        if levels:
            return []
        found = self._glue.pages("get_databases", "DatabaseList")
        return sorted((str(entry["Name"]),) for entry in found if entry is not None)

    def is_there(self, namespace: Identifier) -> bool:
        """Return whether there is a database of that name."""
        return self._find(namespace) is not None

    def missing(self, namespace: Identifier) -> NoSuchNamespaceError:
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
            took_place=lambda: self._is_as(namespace, properties),
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
            took_place=lambda: self._is_as(namespace, wanted, before=found),
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

    def _is_as(
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
