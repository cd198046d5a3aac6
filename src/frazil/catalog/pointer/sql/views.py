"""Views of the SQL catalog: rows of the type VIEW beside those of tables, as Java's JdbcCatalog."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence

from sqlalchemy.engine import Connection

from frazil.catalog.identifiers import (
    Identifier,
    parse_named_namespace,
    parse_table_identifier,
    shown,
)
from frazil.catalog.metadata_files import read_view_metadata, view_metadata_file
from frazil.catalog.outcome import Sending, new_metadata_file
from frazil.catalog.pointer.sql.database import Database
from frazil.catalog.pointer.sql.namespaces import SqlNamespaces, namespace_text
from frazil.catalog.pointer.sql.rows import SqlRows
from frazil.catalog.pointer.view_race import ViewRace
from frazil.catalog.views import LoadedView, ViewMethods
from frazil.errors import (
    CommitFailedError,
    NoSuchTableError,
    UnsupportedError,
)
from frazil.format.schema import Schema
from frazil.format.views import (
    ViewMetadata,
    ViewRequirement,
    ViewUpdate,
    ViewVersion,
    apply_view_updates,
    check_view_requirements,
    new_view_metadata,
)
from frazil.storage.files import FileIO
from frazil.storage.locations import metadata_version, new_view_metadata_file_path
from frazil.storage.paths import normalize_location


class SqlViewMethods(ViewMethods):
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

    def load_view(self, identifier: str | Sequence[str]) -> LoadedView:
        self._require_typed_rows()
        name = parse_table_identifier(identifier)
        location = self._view_rows.location_of(name)
        if location is None:
            raise self._view_rows.missing(name)
        return LoadedView(name, read_view_metadata(self.io, location), location)

    def create_view(
        self,
        identifier: str | Sequence[str],
        schema: Schema,
        version: ViewVersion,
        *,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> LoadedView:
        self._require_typed_rows()
        name = parse_table_identifier(identifier)
        place = (
            self.default_view_location(name) if location is None else normalize_location(location)
        )
        metadata = new_view_metadata(schema, version, location=place, properties=properties)
        self._require_namespace_of(name)
        if self._view_rows.has_name(name):
            raise self._view_rows.taken(name)
        view = LoadedView(name, metadata, new_view_metadata_file_path(metadata, version=0))
        data = view_metadata_file(metadata, path=view.metadata_location)
        with new_metadata_file(self.io, view.metadata_location, data) as sending:
            self._insert_view(view, sending)
        return view

    def register_view(self, identifier: str | Sequence[str], metadata_location: str) -> LoadedView:
        self._require_typed_rows()
        name = parse_table_identifier(identifier)
        self._require_namespace_of(name)
        metadata = read_view_metadata(self.io, metadata_location)
        view = LoadedView(name, metadata, metadata_location)
        self._insert_view(view, Sending())
        return view

    def commit_view(
        self,
        identifier: str | Sequence[str],
        requirements: Sequence[ViewRequirement],
        updates: Sequence[ViewUpdate],
        *,
        base: LoadedView | None = None,
    ) -> LoadedView:
        current = self.load_view(identifier)
        if base is not None and base.metadata_location != current.metadata_location:
            raise self._lost_race(base, current.metadata_location)
        check_view_requirements(current.metadata, requirements)
        updated = apply_view_updates(current.metadata, updates)
        if updated is current.metadata:
            return current
        return self._swap_view(current, updated)

    def drop_view(self, identifier: str | Sequence[str]) -> None:
        self._require_typed_rows()
        self._view_rows.delete(parse_table_identifier(identifier))

    def rename_view(self, source: str | Sequence[str], target: str | Sequence[str]) -> None:
        self._require_typed_rows()
        self._view_rows.rename(parse_table_identifier(source), parse_table_identifier(target))

    # -- changes ---------------------------------------------------------------------------------

    def _insert_view(self, view: LoadedView, sending: Sending) -> None:
        self._view_rows.insert(
            view.identifier,
            view.metadata_location,
            took_place=lambda: self._view_took_place(None, view),
            properties=view.metadata.properties,
            sending=sending,
        )

    def _swap_view(self, base: LoadedView, updated: ViewMetadata) -> LoadedView:
        rows, name, before = self._view_rows, base.identifier, base.metadata_location
        number = metadata_version(before)
        path = new_view_metadata_file_path(updated, version=0 if number is None else number + 1)
        view = LoadedView(name, updated, path)

        def move(connection: Connection) -> None:
            if not rows.moved(connection, name, base=before, to=path):
                rows.raise_lost_race(connection, name, before)

        with new_metadata_file(self.io, path, view_metadata_file(updated, path=path)) as sending:
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

        row = self._view_rows.settled(view.identifier, is_new=base is None)
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

    def _require_namespace_of(self, name: Identifier) -> None:
        text = namespace_text(name[:-1])
        if not self._database.read(lambda each: self._namespaces.is_there(each, text)):
            raise self._namespaces.missing(name[:-1])

    def _lost_race(self, base: LoadedView, found: str) -> CommitFailedError:
        return CommitFailedError(
            f"{shown(base.identifier)} points to {found}, not to {base.metadata_location}: "
            f"another writer was first"
        )
