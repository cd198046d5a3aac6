"""Namespaces of the SQL catalog: rows of properties, and the names that tables' rows imply."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, delete, func, insert, or_, select, union, update
from sqlalchemy.engine import Connection

from frazil.catalog.identifiers import Identifier, shown
from frazil.catalog.pointer.sql.database import Database
from frazil.catalog.pointer.sql.schema import NAMESPACE_PROPERTIES, TABLES
from frazil.errors import (
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    ValidationError,
)

_EXISTS = "exists"
_KEY = NAMESPACE_PROPERTIES.c.property_key
_VALUE = NAMESPACE_PROPERTIES.c.property_value


class SqlNamespaces:
    """The namespaces of one catalog in a database.

    A namespace is there when it has a property or when something lies in it; the property
    ``exists`` keeps one that has neither.
    """

    def __init__(
        self, database: Database, catalog: str, *, status_checks: Mapping[str, str]
    ) -> None:
        self._database = database
        self._catalog = catalog
        self._status_checks = status_checks

    def create(self, levels: Identifier, properties: Mapping[str, str]) -> None:
        """Make a namespace; NamespaceAlreadyExistsError if it is there."""
        text = namespace_text(levels)
        rows = {**properties, _EXISTS: "true"}
        taken = NamespaceAlreadyExistsError(
            f"the namespace {shown(levels)} exists in {self._catalog}"
        )

        def work(connection: Connection) -> None:
            if self.is_stored(connection, text):
                raise taken
            for depth in range(2, len(levels) + 1):
                self.hold_name(connection, levels[:depth])
            self._refuse_table(connection, levels)
            self._insert(connection, text, rows)

        self._database.change(
            f"the namespace {shown(levels)}",
            work,
            took_place=self._outcome_of_change(text, lambda: ({}, rows)),
            properties=self._status_checks,
            taken=taken,
        )

    def drop(self, levels: Identifier) -> None:
        """Remove an empty namespace."""
        text = namespace_text(levels)
        before: dict[str, str] = {}

        def work(connection: Connection) -> None:
            if not self.is_stored(connection, text):
                raise self.missing_error(levels)
            if inside := self._one_found(connection, text, _is_below):
                raise NamespaceNotEmptyError(
                    f"the namespace {shown(levels)} is not empty: it holds {inside}"
                )
            before.update(self._locked_rows(connection, text))
            connection.execute(delete(NAMESPACE_PROPERTIES).where(self._is_property_of(text)))

        self._database.change(
            f"the end of the namespace {shown(levels)}",
            work,
            took_place=self._outcome_of_change(text, lambda: (before, {})),
            properties=self._status_checks,
        )

    def update(
        self, levels: Identifier, updates: Mapping[str, str], removals: Sequence[str]
    ) -> None:
        """Set and remove properties; other writers may change others at the same time."""
        text = namespace_text(levels)
        before: dict[str, str] = {}
        after: dict[str, str] = {}

        def work(connection: Connection) -> None:
            if not self.is_stored(connection, text):
                raise self.missing_error(levels)
            found = self._locked_rows(connection, text)
            kept = {key: value for key, value in found.items() if key not in removals}
            # The marker keeps a namespace that has no other property and no table.
            wanted = {**kept, **updates, _EXISTS: found.get(_EXISTS, "true")}
            before.clear()
            before.update(found)
            after.clear()
            after.update(wanted)
            if gone := found.keys() - wanted.keys():
                connection.execute(
                    delete(NAMESPACE_PROPERTIES).where(
                        self._is_property_of(text), _KEY.in_(sorted(gone))
                    )
                )
            for key in sorted(key for key in found.keys() & updates.keys() if key != _EXISTS):
                connection.execute(
                    update(NAMESPACE_PROPERTIES)
                    .where(self._is_property_of(text), NAMESPACE_PROPERTIES.c.property_key == key)
                    .values(property_value=updates[key])
                )
            self._insert(
                connection, text, {key: wanted[key] for key in wanted.keys() - found.keys()}
            )

        self._database.change(
            f"the change of the properties of {shown(levels)}",
            work,
            took_place=self._outcome_of_change(text, lambda: (before, after)),
            properties=self._status_checks,
        )

    def properties_of(self, levels: Identifier) -> dict[str, str]:
        """A namespace's properties; NoSuchNamespaceError if it is not there."""
        text = namespace_text(levels)

        def work(connection: Connection) -> dict[str, str]:
            if not self.is_stored(connection, text):
                raise self.missing_error(levels)
            return _texts(
                connection.execute(select(_KEY, _VALUE).where(self._is_property_of(text)))
            )

        rows = self._database.read(work)
        return {key: value for key, value in rows.items() if key != _EXISTS}

    def children(self, levels: Identifier) -> list[Identifier]:
        """The namespaces directly below one, sorted."""
        every = union(
            select(TABLES.c.table_namespace).where(self._tables_here()),
            select(NAMESPACE_PROPERTIES.c.namespace).where(self._properties_here()),
        )
        texts = self._database.read(lambda connection: connection.scalars(every).all())
        depth = len(levels)
        known = {tuple(text.split(".")) for text in texts if isinstance(text, str) and text}
        return sorted(
            {
                found[: depth + 1]
                for found in known
                if len(found) > depth and found[:depth] == levels
            }
        )

    def is_there(self, levels: Identifier) -> bool:
        """Whether there is a namespace."""
        text = namespace_text(levels)
        return self._database.read(lambda connection: self.is_stored(connection, text))

    def is_stored(self, connection: Connection, text: str) -> bool:
        """Whether the namespace was made or something lies in it."""
        return self._one_found(connection, text, _is_same_or_below) is not None

    def hold_name(self, connection: Connection, name: Identifier) -> None:
        """Wait for others who give the name to a table or a namespace, until the transaction ends.

        Their rows lie in two tables, so no key keeps them apart. Writers of SQLite take turns.
        """
        if connection.dialect.name == "postgresql":
            text = "\0".join((self._catalog, *name))
            digest = hashlib.sha256(text.encode()).digest()[:8]
            key = int.from_bytes(digest, "big", signed=True)
            connection.execute(select(func.pg_advisory_xact_lock(key)))

    def missing_error(self, levels: Identifier) -> NoSuchNamespaceError:
        """The error for a namespace that is not there."""
        return NoSuchNamespaceError(
            f"there is no namespace {shown(levels)} in the catalog {self._catalog}: "
            f"make it with create_namespace"
        )

    def _refuse_table(self, connection: Connection, levels: Identifier) -> None:
        """Raise the error of a name that a table or view has, or the name of a level above it."""
        for depth in range(2, len(levels) + 1):
            named = (TABLES.c.table_namespace == namespace_text(levels[: depth - 1])) & (
                TABLES.c.table_name == levels[depth - 1]
            )
            query = select(TABLES.c.table_name).where(self._tables_here(), named).limit(1)
            if connection.execute(query).first() is not None:
                raise NamespaceAlreadyExistsError(
                    f"{shown(levels[:depth])} is a table or a view in {self._catalog}, so no "
                    f"namespace can have its name"
                )

    def _outcome_of_change(
        self, text: str, states: Callable[[], tuple[Mapping[str, str], Mapping[str, str]]]
    ) -> Callable[[], bool | None]:
        """Whether the rows are as after the change or as before it; None if they are neither."""

        def took_place() -> bool | None:
            before, after = states()
            found = self._database.look(lambda connection: self._settled_rows(connection, text))
            if found == after:
                return True
            return False if found == before else None

        return took_place

    def _settled_rows(self, connection: Connection, text: str) -> dict[str, str]:
        found = self._locked_rows(connection, text)
        if _EXISTS not in found:
            # An unfinished INSERT shows no row: another INSERT of its key waits for its end.
            self._insert(connection, text, {_EXISTS: "true"})
        return found

    def _locked_rows(self, connection: Connection, text: str) -> dict[str, str]:
        return _texts(
            connection.execute(
                select(_KEY, _VALUE)
                .where(self._is_property_of(text))
                .order_by(_KEY)
                .with_for_update()
            )
        )

    def _insert(self, connection: Connection, text: str, rows: Mapping[str, str]) -> None:
        if rows:
            connection.execute(
                insert(NAMESPACE_PROPERTIES),
                [
                    {
                        "catalog_name": self._catalog,
                        "namespace": text,
                        "property_key": key,
                        "property_value": rows[key],
                    }
                    # In one order, so that writers wait for each other in no circle.
                    for key in sorted(rows)
                ],
            )

    def _one_found(
        self,
        connection: Connection,
        text: str,
        is_counted: Callable[[ColumnElement[str], str], ColumnElement[bool]],
    ) -> str | None:
        """A table in the namespace or below it, or a namespace that is counted."""
        for query in (
            select(TABLES.c.table_name).where(
                self._tables_here(), _is_same_or_below(TABLES.c.table_namespace, text)
            ),
            select(NAMESPACE_PROPERTIES.c.namespace).where(
                self._properties_here(), is_counted(NAMESPACE_PROPERTIES.c.namespace, text)
            ),
        ):
            if (found := connection.scalars(query.limit(1)).first()) is not None:
                return str(found)
        return None

    def _is_property_of(self, text: str) -> ColumnElement[bool]:
        return (NAMESPACE_PROPERTIES.c.namespace == text) & self._properties_here()

    def _tables_here(self) -> ColumnElement[bool]:
        return TABLES.c.catalog_name == self._catalog

    def _properties_here(self) -> ColumnElement[bool]:
        return NAMESPACE_PROPERTIES.c.catalog_name == self._catalog


def namespace_text(levels: Identifier) -> str:
    """A namespace as its rows write it."""
    for level in levels:
        if "." in level:
            raise ValidationError(
                f"the namespace level {level!r} holds a dot, which separates levels here"
            )
    return ".".join(levels)


def _texts(rows: Iterable[Any]) -> dict[str, str]:
    return {str(key): "" if value is None else str(value) for key, value in rows}


def _is_same_or_below(column: ColumnElement[str], text: str) -> ColumnElement[bool]:
    return or_(column == text, _is_below(column, text))


def _is_below(column: ColumnElement[str], text: str) -> ColumnElement[bool]:
    # LIKE ignores case on SQLite and has wildcards; a prefix comparison has neither.
    return func.substr(column, 1, len(text) + 1) == f"{text}."
