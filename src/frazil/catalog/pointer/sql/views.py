"""Views of the SQL catalog: rows of the type VIEW beside those of tables, as Java's JdbcCatalog."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence

from sqlalchemy import ColumnElement, and_, delete, insert, select, update
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
from frazil.catalog.pointer.sql.schema import TABLES
from frazil.catalog.pointer.view_race import ViewRace
from frazil.catalog.views import LoadedView, ViewMethods
from frazil.errors import (
    CommitFailedError,
    InvalidMetadataError,
    NoSuchTableError,
    NoSuchViewError,
    UnsupportedError,
    ViewAlreadyExistsError,
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

_VIEW_TYPE = "VIEW"
_POINTERS = (TABLES.c.metadata_location, TABLES.c.previous_metadata_location)


class SqlViewMethods(ViewMethods):
    """The views of a catalog in a database of schema V1; V0 has no place for them."""

    name: str
    properties: dict[str, str]
    io: FileIO
    _database: Database
    _namespaces: SqlNamespaces
    _typed_rows: bool

    def list_views(self, namespace: str | Sequence[str]) -> list[Identifier]:
        self._require_typed_rows()
        levels = parse_named_namespace(namespace)
        text = namespace_text(levels)

        def work(connection: Connection) -> Sequence[object]:
            if not self._namespaces.is_there(connection, text):
                raise self._namespaces.missing(levels)
            return connection.scalars(
                select(TABLES.c.table_name).where(
                    self._views_here(), TABLES.c.table_namespace == text
                )
            ).all()

        names = self._database.read(work)
        return sorted((*levels, name) for name in names if isinstance(name, str))

    def view_exists(self, identifier: str | Sequence[str]) -> bool:
        return self._typed_rows and self._pointer(parse_table_identifier(identifier)) is not None

    def load_view(self, identifier: str | Sequence[str]) -> LoadedView:
        self._require_typed_rows()
        name = parse_table_identifier(identifier)
        location = self._pointer(name)
        if location is None:
            raise self._no_view(name)
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
        if self._name_is_taken(name):
            raise self._taken(name)
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
        name = parse_table_identifier(identifier)
        seen: list[object] = []

        def work(connection: Connection) -> None:
            row = self._locked_view(connection, name)
            if row is None:
                raise self._no_view(name)
            seen[:] = row
            connection.execute(delete(TABLES).where(self._is_view_row(name)))

        def took_place(connection: Connection) -> bool | None:
            row = self._locked_view(connection, name)
            if row is None:
                return True
            return False if row == seen else None

        self._database.change(
            f"the end of the view {shown(name)}",
            work,
            took_place=lambda: self._database.look(took_place),
            properties=self.properties,
        )

    def rename_view(self, source: str | Sequence[str], target: str | Sequence[str]) -> None:
        self._require_typed_rows()
        old, new = parse_table_identifier(source), parse_table_identifier(target)
        if old == new:
            if not self.view_exists(old):
                raise self._no_view(old)
            return
        namespace = namespace_text(new[:-1])
        seen: list[object] = []

        def work(connection: Connection) -> None:
            if not self._namespaces.is_there(connection, namespace):
                raise self._namespaces.missing(new[:-1])
            row = self._locked_view(connection, old)
            if row is None:
                raise self._no_view(old)
            seen[:] = row
            connection.execute(
                update(TABLES)
                .where(self._is_view_row(old))
                .values(table_namespace=namespace, table_name=new[-1])
            )

        def took_place(connection: Connection) -> bool | None:
            before, after = self._locked_view(connection, old), self._locked_view(connection, new)
            if before is None and after == seen:
                return True
            return False if before == seen and after is None else None

        self._database.change(
            f"the renaming of {shown(old)} to {shown(new)}",
            work,
            took_place=lambda: self._database.look(took_place),
            properties=self.properties,
            taken=self._taken(new),
        )

    # -- changes ---------------------------------------------------------------------------------

    def _insert_view(self, view: LoadedView, sending: Sending) -> None:
        name = view.identifier
        row = {
            "catalog_name": self.name,
            "table_namespace": namespace_text(name[:-1]),
            "table_name": name[-1],
            "metadata_location": view.metadata_location,
            "previous_metadata_location": None,
            "iceberg_type": _VIEW_TYPE,
        }

        def work(connection: Connection) -> None:
            connection.execute(insert(TABLES).values(row))

        self._database.change(
            f"the new view {shown(name)} of {view.metadata_location}",
            work,
            took_place=lambda: self._view_took_place(None, view),
            properties={**self.properties, **view.metadata.properties},
            taken=self._taken(name),
            sending=sending,
        )

    def _swap_view(self, base: LoadedView, updated: ViewMetadata) -> LoadedView:
        name = base.identifier
        number = metadata_version(base.metadata_location)
        path = new_view_metadata_file_path(updated, version=0 if number is None else number + 1)
        view = LoadedView(name, updated, path)

        def work(connection: Connection) -> None:
            moved = connection.execute(
                update(TABLES)
                .where(
                    self._is_view_row(name),
                    TABLES.c.metadata_location == base.metadata_location,
                )
                .values(metadata_location=path, previous_metadata_location=base.metadata_location)
            )
            if moved.rowcount != 1:
                row = self._locked_view(connection, name)
                if row is None:
                    raise NoSuchViewError(f"the view {shown(name)} was dropped or renamed")
                raise self._lost_race(base, str(row[0]))

        with new_metadata_file(self.io, path, view_metadata_file(updated, path=path)) as sending:
            self._database.change(
                f"the swap of {shown(name)} to {path}",
                work,
                took_place=lambda: self._view_took_place(base, view),
                properties={**self.properties, **base.metadata.properties},
                sending=sending,
            )
        return view

    def _view_took_place(self, base: LoadedView | None, view: LoadedView) -> bool | None:
        """Whether the view's pointer was moved, or made, by a transaction without an answer."""

        def work(connection: Connection) -> tuple[str, str | None] | None:
            row = self._locked_view(connection, view.identifier)
            if row is None and base is None:
                # An unfinished INSERT shows no row: another INSERT of its key waits for its end.
                connection.execute(
                    insert(TABLES).values(
                        catalog_name=self.name,
                        table_namespace=namespace_text(view.identifier[:-1]),
                        table_name=view.identifier[-1],
                        iceberg_type=_VIEW_TYPE,
                    )
                )
            if row is None:
                return None
            return str(row[0]), None if row[1] is None else str(row[1])

        return ViewRace(base, view, self._database.look(work)).took_place(self.io)

    # -- rows ------------------------------------------------------------------------------------

    def _pointer(self, name: Identifier) -> str | None:
        query = select(TABLES.c.metadata_location).where(self._is_view_row(name))
        row = self._database.read(lambda connection: connection.execute(query).first())
        if row is None:
            return None
        if not isinstance(row[0], str) or not row[0]:
            raise InvalidMetadataError(
                f"the row of the view {shown(name)} in the catalog {self.name} has no metadata "
                f"location but {row[0]!r}",
                field="metadata_location",
            )
        return row[0]

    def _locked_view(self, connection: Connection, name: Identifier) -> list[object] | None:
        """What the row points and pointed to, once it is ours to change; None without a row."""
        query = select(*_POINTERS).where(self._is_view_row(name)).with_for_update()
        row = connection.execute(query).first()
        return None if row is None else list(row)

    def _name_is_taken(self, name: Identifier) -> bool:
        query = select(TABLES.c.table_name).where(self._is_named_row(name))
        return self._database.read(lambda connection: connection.execute(query).first()) is not None

    def _views_here(self) -> ColumnElement[bool]:
        return and_(TABLES.c.catalog_name == self.name, TABLES.c.iceberg_type == _VIEW_TYPE)

    def _is_view_row(self, name: Identifier) -> ColumnElement[bool]:
        return and_(self._is_named_row(name), TABLES.c.iceberg_type == _VIEW_TYPE)

    def _is_named_row(self, name: Identifier) -> ColumnElement[bool]:
        return and_(
            TABLES.c.catalog_name == self.name,
            TABLES.c.table_namespace == namespace_text(name[:-1]),
            TABLES.c.table_name == name[-1],
        )

    # -- errors ----------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _naming_views(self, identifier: str | Sequence[str]) -> Iterator[None]:
        """Say of a table that is not there where it is a view."""
        try:
            yield
        except NoSuchTableError:
            name = parse_table_identifier(identifier)
            if self._typed_rows and self._pointer(name) is not None:
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

    def _no_view(self, name: Identifier) -> NoSuchViewError:
        return NoSuchViewError(f"there is no view {shown(name)} in the catalog {self.name}")

    def _taken(self, name: Identifier) -> ViewAlreadyExistsError:
        return ViewAlreadyExistsError(
            f"there is a view or a table {shown(name)} in the catalog {self.name}"
        )

    def _lost_race(self, base: LoadedView, found: str) -> CommitFailedError:
        return CommitFailedError(
            f"{shown(base.identifier)} points to {found}, not to {base.metadata_location}: "
            f"another writer was first"
        )
