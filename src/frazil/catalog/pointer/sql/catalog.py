"""Tables, views and namespaces as rows of a database, shared with Java's JdbcCatalog and PyIceberg.

A commit writes a metadata file and moves the row's pointer with one conditional UPDATE.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Final

from sqlalchemy import (
    BigInteger,
    Column,
    MetaData,
    String,
    Table,
    delete,
    insert,
    inspect,
    select,
    union,
)
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from frazil.catalog.identifiers import (
    Identifier,
    parse_named_namespace,
    parse_table_identifier,
    shown,
)
from frazil.catalog.metadata_files import view_metadata_file
from frazil.catalog.outcome import Sending, new_metadata_file
from frazil.catalog.pointer.pointer_race import PointerRace, ViewRace
from frazil.catalog.pointer.sql.commits_together import CommitsTogether
from frazil.catalog.pointer.sql.database import Database
from frazil.catalog.pointer.sql.engine import (
    CONNECT_TIMEOUT,
    STATEMENT_TIMEOUT,
    TimeLimits,
    database_url,
)
from frazil.catalog.pointer.sql.namespaces import SqlNamespaces
from frazil.catalog.pointer.sql.rows import OF_TABLES, OF_VIEWS, SqlRows
from frazil.catalog.pointer.sql.schema import (
    NAMESPACE_PROPERTIES,
    SCHEMA,
    TABLES,
    add_type_column,
    has_type_column,
)
from frazil.catalog.pointer.view_pointers import PointerViewMethods
from frazil.catalog.protocol import Capability, LoadedTable, StagedTable
from frazil.catalog.request_log import RequestLog
from frazil.catalog.views import LoadedView
from frazil.errors import (
    ConfigurationError,
    NoSuchTableError,
    RequestRepeatedError,
    UnsupportedError,
)
from frazil.format.metadata import TableMetadata
from frazil.format.properties.kinds import FLAG, Property
from frazil.storage.files import FileIO

# Requests noted in the transactions of their changes. The table is Frazil's own, beside the two
# that other engines know; it is made when a catalog is served.
_OWN_SCHEMA = MetaData()
_REQUESTS = Table(
    "frazil_requests",
    _OWN_SCHEMA,
    Column("catalog_name", String(255), primary_key=True, nullable=False),
    Column("request_key", String(64), primary_key=True, nullable=False),
    Column("request_digest", String(64), nullable=False),
    Column("noted_at_ms", BigInteger, nullable=False),
)
_NOTE = insert(_REQUESTS)


class SqlRequestLog(RequestLog):
    """Requests as rows; a key's second row is refused by the table's primary key."""

    def __init__(self, database: Database, catalog_name: str) -> None:
        self._database = database
        self._catalog = catalog_name

    @contextlib.contextmanager
    def noting_request(self, key: str, digest: str) -> Iterator[None]:
        row = {"catalog_name": self._catalog, "request_key": key, "request_digest": digest}

        def note(connection: Connection) -> None:
            # First of all: a twin in another process waits here, and then learns that it is one.
            noted = {**row, "noted_at_ms": time.time_ns() // 1_000_000}
            try:
                connection.execute(_NOTE, noted)
            except IntegrityError:
                raise RequestRepeatedError(f"the request {key} was carried out before") from None

        with self._database.beginning_changes_with(note):
            yield

    def digest_of(self, key: str) -> str | None:
        query = select(_REQUESTS.c.request_digest).where(
            _REQUESTS.c.catalog_name == self._catalog, _REQUESTS.c.request_key == key
        )
        found = self._database.read(lambda connection: connection.scalar(query))
        return None if found is None else str(found)

    def forget(self, *, older_than_seconds: float) -> None:
        before_ms = int((time.time() - older_than_seconds) * 1000)
        old = delete(_REQUESTS).where(
            _REQUESTS.c.catalog_name == self._catalog, _REQUESTS.c.noted_at_ms < before_ms
        )

        def work(connection: Connection) -> None:
            connection.execute(old)

        self._database.change(
            "the end of old notes of requests", work, took_place=lambda: True, properties={}
        )


def request_log(database: Database, catalog_name: str, *, may_make: bool) -> RequestLog | None:
    """Return the log of a database; None where its table is missing and cannot be made."""
    with contextlib.suppress(SQLAlchemyError):
        if may_make:
            # Another process may make it at the same moment: what counts is the look after.
            with contextlib.suppress(SQLAlchemyError), database.writer.begin() as connection:
                _OWN_SCHEMA.create_all(connection)
        with database.engine.connect() as connection:
            if inspect(connection).has_table(_REQUESTS.name):
                return SqlRequestLog(database, catalog_name)
    return None


_MAKE_ATTEMPTS = 3
_ECHO: Final = Property("echo", FLAG, default=False)
_MAKES: Final = Property("init_catalog_tables", FLAG, default=True)


class SqlCatalog(PointerViewMethods, CommitsTogether):
    """SQLite, PostgreSQL and other databases that SQLAlchemy reaches.

    Properties: ``uri`` (required), ``warehouse``, ``init_catalog_tables`` (true), ``echo`` (false),
    ``jdbc.schema-version`` (V1 adds the column iceberg_type to an older catalog),
    ``sql.connect-timeout-ms`` (30000), ``sql.statement-timeout-ms`` (60000), and
    ``commit.status-check.*`` for changes of names; a table's own count for its commits.
    """

    kind: ClassVar[str] = "sql"
    capabilities: ClassVar[frozenset[Capability]] = CommitsTogether.capabilities | {
        Capability.NAMESPACE_PROPERTIES,
        Capability.RENAMES,
        Capability.TABLE_LOCATIONS,
        Capability.VIEWS,
    }
    property_names: ClassVar[frozenset[str] | None] = frozenset(
        {
            "uri",
            _ECHO.name,
            _MAKES.name,
            "schema_version",
            "jdbc.schema-version",
            "jdbc.user",
            "jdbc.password",
            CONNECT_TIMEOUT.name,
            STATEMENT_TIMEOUT.name,
        }
    )

    def __init__(
        self, name: str, properties: Mapping[str, str], *, io: FileIO | None = None
    ) -> None:
        super().__init__(name, properties, io=io)
        self._database = Database(
            database_url(properties),
            limits=TimeLimits.from_properties(properties),
            echo=_ECHO.of(properties),
        )
        self._namespaces = SqlNamespaces(self._database, name, status_checks=self.properties)
        self._typed_rows = self._prepare_tables()
        self._rows, self._view_rows = (
            SqlRows(
                self._database,
                self._namespaces,
                name,
                kind,
                typed=self._typed_rows,
                status_checks=self.properties,
            )
            for kind in (OF_TABLES, OF_VIEWS)
        )

    def can(self, capability: Capability) -> bool:
        # Rows without a type have no place for views (schema V0).
        return super().can(capability) and (capability != Capability.VIEWS or self._typed_rows)

    def request_log(self) -> RequestLog | None:
        return request_log(self._database, self.name, may_make=_MAKES.of(self.properties))

    # -- tables ----------------------------------------------------------------------------------

    def list_tables(self, namespace: str | Sequence[str]) -> list[Identifier]:
        return self._rows.names_in(parse_named_namespace(namespace))

    def stage_table(self, identifier: str | Sequence[str], metadata: TableMetadata) -> StagedTable:
        staged = super().stage_table(identifier, metadata)
        if self.view_exists(staged.identifier):
            raise self._rows.taken_name_error(staged.identifier)
        self._rows.require_no_namespace(staged.identifier)
        return staged

    def metadata_location(self, identifier: str | Sequence[str]) -> str:
        with self._naming_views(identifier):
            return super().metadata_location(identifier)

    def load_table(self, identifier: str | Sequence[str]) -> LoadedTable:
        with self._naming_views(identifier):
            return super().load_table(identifier)

    def drop_table(self, identifier: str | Sequence[str]) -> None:
        with self._naming_views(identifier):
            super().drop_table(identifier)

    def all_locations(self) -> Mapping[Identifier, str]:
        pointers = self._rows.all_pointers()
        if self._typed_rows:
            pointers |= self._view_rows.all_pointers()
        return {
            (*namespace.split("."), name): location
            for (namespace, name), location in pointers.items()
            if isinstance(location, str) and location
        }

    def rename_table(self, source: str | Sequence[str], target: str | Sequence[str]) -> None:
        self._rows.rename(parse_table_identifier(source), parse_table_identifier(target))

    def default_table_location(self, identifier: str | Sequence[str]) -> str:
        name = parse_table_identifier(identifier)
        is_there = self.namespace_exists(name[:-1])
        properties = self.load_namespace_properties(name[:-1]) if is_there else {}
        if location := properties.get("location"):
            return self._in_location(location, name)
        return self._in_warehouse(name, *name)

    def catalog_names(self) -> list[str]:
        """Return the names of the catalogs that have rows in the database, sorted."""
        query = union(select(TABLES.c.catalog_name), select(NAMESPACE_PROPERTIES.c.catalog_name))
        names = self._database.read(lambda connection: connection.scalars(query).all())
        return sorted(name for name in names if isinstance(name, str))

    def close(self) -> None:
        self._database.close()

    def _find(self, name: Identifier) -> str | None:
        return self._rows.location_of(name)

    def _insert(self, table: LoadedTable, sending: Sending) -> None:
        self._rows.insert(
            table.identifier,
            table.metadata_location,
            took_place=lambda: self._took_place(None, table),
            properties=table.metadata.properties,
            sending=sending,
        )

    def _swap(self, base: LoadedTable, updated: TableMetadata) -> LoadedTable:
        table = self._successor(base, updated)
        with self._metadata_file(table) as sending:
            self._rows.swap(
                base.identifier,
                table.metadata_location,
                move=lambda connection: self._move_pointer(connection, base, table),
                took_place=lambda: self._took_place(base, table),
                properties=base.metadata.properties,
                sending=sending,
            )
        return table

    def _raise_lost_race(self, connection: Connection, base: LoadedTable) -> None:
        self._rows.raise_lost_race(connection, base.identifier, base.metadata_location)

    def _drop(self, name: Identifier) -> None:
        self._rows.delete(name)

    # -- lost answers ----------------------------------------------------------------------------

    def _took_place(self, base: LoadedTable | None, table: LoadedTable) -> bool | None:
        """Whether the table's pointer was moved, or made, by a transaction without an answer."""
        name, location = table.identifier, table.metadata_location

        def settled_pointer() -> str | None:
            row = self._rows.settled_pointers(name, is_new=base is None)
            return None if row is None else row.location

        answer = PointerRace(base, table, settled_pointer).took_place(self.io)
        # A row of another name: somebody has renamed the table since.
        return answer if answer is True or not self._rows.is_named(location) else True

    # -- the database ------------------------------------------------------------------------------

    def _prepare_tables(self) -> bool:
        """Make the tables where they are missing; whether rows have a type (schema V1)."""
        wanted = self.properties.get("jdbc.schema-version") or self.properties.get("schema_version")
        try:
            typed = has_type_column(self._database.engine)
            if typed is None:
                typed = self._make_tables()
            if not typed and (wanted or "").upper() == "V1":
                with self._database.writer.begin() as connection:
                    add_type_column(connection)
                return True
        except SQLAlchemyError as error:
            raise self._database.failure(error) from None
        return typed

    def _make_tables(self) -> bool:
        if not _MAKES.of(self.properties):
            raise ConfigurationError(
                f"the database {self._database.shown_url} holds no catalog and "
                f"init_catalog_tables is false"
            )
        # Another process may make them at the same moment: what counts is the look after.
        for _ in range(_MAKE_ATTEMPTS):
            with contextlib.suppress(SQLAlchemyError), self._database.writer.begin() as connection:
                SCHEMA.create_all(connection)
            if (typed := has_type_column(self._database.engine)) is not None:
                return typed
        with self._database.writer.begin() as connection:
            SCHEMA.create_all(connection)
        return True

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
            raise self._view_rows.missing_error(name)
        return location

    def _require_free(self, name: Identifier) -> None:
        self._require_typed_rows()
        if not self._namespaces.is_there(name[:-1]):
            raise self._namespaces.missing_error(name[:-1])
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
        # A row of another name: somebody has renamed the view since.
        is_named = self._view_rows.is_named
        return answer if answer is True or not is_named(view.metadata_location) else True

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
            raise UnsupportedError(
                f"the catalog {self.name} has no views: its database has no column for the type of "
                f"a row (schema V0); set jdbc.schema-version to V1, which adds it"
            )
