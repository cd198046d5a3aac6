"""Views of the SQL catalog: rows of the type VIEW beside those of tables, as Java's JdbcCatalog."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from sqlalchemy.engine import Connection

from frazil.catalog.identifiers import (
    Identifier,
    parse_named_namespace,
    parse_table_identifier,
    shown,
)
from frazil.catalog.metadata_files import view_metadata_file
from frazil.catalog.outcome import Sending, new_metadata_file
from frazil.catalog.pointer.pointer_race import ViewRace
from frazil.catalog.pointer.sql.database import Database
from frazil.catalog.pointer.sql.namespaces import SqlNamespaces
from frazil.catalog.pointer.sql.rows import SqlRows
from frazil.catalog.pointer.view_pointers import PointerViewMethods
from frazil.catalog.views import LoadedView
from frazil.errors import (
    NoSuchTableError,
    UnsupportedError,
)
from frazil.storage.files import FileIO


class SqlViewMethods(PointerViewMethods):
    """The views of a catalog in a database of schema V1; V0 has no place for them."""

    name: str
    properties: dict[str, str]
    io: FileIO
    _database: Database
    _namespaces: SqlNamespaces
    _typed_rows: bool
    _view_rows: SqlRows

    def list_views(self, namespace: str | Sequence[str]) -> list[Identifier]:
        self._require_typed_rows()
        return self._view_rows.names_in(parse_named_namespace(namespace))

    def view_exists(self, identifier: str | Sequence[str]) -> bool:
        name = parse_table_identifier(identifier)
        return self._typed_rows and self._view_rows.location_of(name) is not None

    def drop_view(self, identifier: str | Sequence[str]) -> None:
        self._require_typed_rows()
        self._view_rows.delete(parse_table_identifier(identifier))

    def rename_view(self, source: str | Sequence[str], target: str | Sequence[str]) -> None:
        self._require_typed_rows()
        self._view_rows.rename(parse_table_identifier(source), parse_table_identifier(target))

    # -- pointers --------------------------------------------------------------------------------

    def _view_location(self, name: Identifier) -> str:
        self._require_typed_rows()
        location = self._view_rows.location_of(name)
        if location is None:
            raise self._view_rows.missing(name)
        return location

    def _require_free(self, name: Identifier) -> None:
        self._require_typed_rows()
        if not self._namespaces.is_there(name[:-1]):
            raise self._namespaces.missing(name[:-1])
        if self._view_rows.has_name(name):
            raise self._view_rows.taken_name_error(name)
        self._view_rows.require_no_namespace(name)

    def _insert_view(self, view: LoadedView, sending: Sending) -> None:
        self._view_rows.insert(
            view.identifier,
            view.metadata_location,
            took_place=lambda: self._view_took_place(None, view),
            properties=view.metadata.properties,
            sending=sending,
        )

    def _swap_view(self, base: LoadedView, view: LoadedView) -> LoadedView:
        rows, name, before = self._view_rows, base.identifier, base.metadata_location
        path = view.metadata_location

        def move(connection: Connection) -> None:
            if not rows.move_pointer(connection, name, base=before, to=path):
                rows.raise_lost_race(connection, name, before)

        with new_metadata_file(
            self.io, path, view_metadata_file(view.metadata, path=path)
        ) as sending:
            rows.swap(
                name,
                path,
                move=move,
                took_place=lambda: self._view_took_place(base, view),
                properties=base.metadata.properties,
                sending=sending,
            )
        return view

    def _view_took_place(self, base: LoadedView | None, view: LoadedView) -> bool | None:
        """Whether the view's pointer was moved, or made, by a transaction without an answer."""

        row = self._view_rows.settled_pointers(view.identifier, is_new=base is None)
        pointers = None if row is None else (row.location, row.previous)
        answer = ViewRace(base, view, pointers).took_place(self.io)
        if answer is True or not self._view_rows.is_named(view.metadata_location):
            return answer
        # A row of another name: somebody has renamed the view since.
        return True

    # -- errors ----------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _naming_views(self, identifier: str | Sequence[str]) -> Iterator[None]:
        """Say of a table that is not there where it is a view."""
        try:
            yield
        except NoSuchTableError:
            name = parse_table_identifier(identifier)
            if self._typed_rows and self._view_rows.location_of(name) is not None:
                raise NoSuchTableError(
                    f"{shown(name)} is a view in the catalog {self.name}, not a table"
                ) from None
            raise

    def _require_typed_rows(self) -> None:
        if not self._typed_rows:
            raise self._no_views()

    def _no_views(self) -> UnsupportedError:
        return UnsupportedError(
            f"the catalog {self.name} has no views: its database has no column for the type of a "
            f"row (schema V0); set jdbc.schema-version to V1, which adds it"
        )
