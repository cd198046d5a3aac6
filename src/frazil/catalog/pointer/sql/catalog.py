"""Tables and namespaces as rows of a database, shared with Java's JdbcCatalog and PyIceberg.

A commit writes a metadata file and moves the row's pointer with one conditional UPDATE.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from sqlalchemy import ColumnElement, Select, and_, delete, insert, or_, select, union, update
from sqlalchemy.engine import Connection
from sqlalchemy.exc import SQLAlchemyError

from frazil.catalog.identifiers import (
    Identifier,
    parse_named_namespace,
    parse_namespace,
    parse_table_identifier,
    require_folder_names,
    shown,
)
from frazil.catalog.metadata_files import metadata_bytes
from frazil.catalog.outcome import Sending, new_metadata_file
from frazil.catalog.pointer.pointer_race import PointerRace
from frazil.catalog.pointer.sql.commits_together import CommitsTogether, row_parameters
from frazil.catalog.pointer.sql.database import Database
from frazil.catalog.pointer.sql.engine import (
    CONNECT_TIMEOUT,
    STATEMENT_TIMEOUT,
    TimeLimits,
    database_url,
)
from frazil.catalog.pointer.sql.namespaces import SqlNamespaces, namespace_text
from frazil.catalog.pointer.sql.request_log import request_log
from frazil.catalog.pointer.sql.schema import (
    NAMESPACE_PROPERTIES,
    SCHEMA,
    TABLES,
    add_type_column,
    has_type_column,
)
from frazil.catalog.pointer.sql.views import SqlViewMethods
from frazil.catalog.protocol import Capability, LoadedTable, StagedTable
from frazil.catalog.request_log import RequestLog
from frazil.errors import (
    CommitFailedError,
    ConfigurationError,
    InvalidMetadataError,
    NoSuchTableError,
    TableAlreadyExistsError,
    ValidationError,
)
from frazil.format.metadata import TableMetadata
from frazil.storage.files import FileIO
from frazil.storage.locations import metadata_version, new_metadata_file_path
from frazil.storage.paths import join, normalize_location

_TABLE_TYPE = "TABLE"
_MAKE_ATTEMPTS = 3


class SqlCatalog(SqlViewMethods, CommitsTogether):
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
            "echo",
            "init_catalog_tables",
            "schema_version",
            "jdbc.schema-version",
            "jdbc.user",
            "jdbc.password",
            CONNECT_TIMEOUT,
            STATEMENT_TIMEOUT,
        }
    )

    def __init__(
        self, name: str, properties: Mapping[str, str], *, io: FileIO | None = None
    ) -> None:
        super().__init__(name, properties, io=io)
        self._database = Database(
            database_url(properties),
            limits=TimeLimits.from_properties(properties),
            echo=_flag(properties, "echo", default=False),
        )
        self._namespaces = SqlNamespaces(self._database, name, status_checks=self.properties)
        self._typed_rows = self._prepare_tables()

    def can(self, capability: Capability) -> bool:
        # Rows without a type have no place for views (schema V0).
        return super().can(capability) and (capability != Capability.VIEWS or self._typed_rows)

    def request_log(self) -> RequestLog | None:
        makes = _flag(self.properties, "init_catalog_tables", default=True)
        return request_log(self._database, self.name, may_make=makes)

    # -- namespaces ------------------------------------------------------------------------------

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
        return self._namespaces.below(levels)

    def namespace_exists(self, namespace: str | Sequence[str]) -> bool:
        text = namespace_text(parse_named_namespace(namespace))
        return self._database.read(lambda connection: self._namespaces.is_there(connection, text))

    def load_namespace_properties(self, namespace: str | Sequence[str]) -> dict[str, str]:
        return self._namespaces.properties_of(parse_named_namespace(namespace))

    def update_namespace_properties(
        self,
        namespace: str | Sequence[str],
        *,
        updates: Mapping[str, str] | None = None,
        removals: Sequence[str] = (),
    ) -> None:
        changes = dict(updates or {})
        if both := sorted(set(changes) & set(removals)):
            raise ValidationError(f"the properties {both} are both set and removed")
        self._namespaces.update(parse_named_namespace(namespace), changes, removals)

    # -- tables ----------------------------------------------------------------------------------

    def list_tables(self, namespace: str | Sequence[str]) -> list[Identifier]:
        levels = parse_named_namespace(namespace)
        text = namespace_text(levels)

        def work(connection: Connection) -> Sequence[object]:
            if not self._namespaces.is_there(connection, text):
                raise self._namespaces.missing(levels)
            return connection.scalars(
                select(TABLES.c.table_name).where(
                    self._tables_here(), self._is_table(), TABLES.c.table_namespace == text
                )
            ).all()

        names = self._database.read(work)
        return sorted((*levels, name) for name in names if isinstance(name, str))

    def stage_table(self, identifier: str | Sequence[str], metadata: TableMetadata) -> StagedTable:
        staged = super().stage_table(identifier, metadata)
        if self.view_exists(staged.identifier):
            raise TableAlreadyExistsError(
                f"the catalog {self.name} has a view of that name: {shown(staged.identifier)}"
            )
        return staged

    def load_table(self, identifier: str | Sequence[str]) -> LoadedTable:
        with self._naming_views(identifier):
            return super().load_table(identifier)

    def drop_table(self, identifier: str | Sequence[str]) -> None:
        with self._naming_views(identifier):
            super().drop_table(identifier)

    def rename_table(self, source: str | Sequence[str], target: str | Sequence[str]) -> None:
        old, new = parse_table_identifier(source), parse_table_identifier(target)
        if old == new:
            if not self.table_exists(old):
                raise self._no_table(old)
            return
        namespace = namespace_text(new[:-1])
        seen: list[object] = []

        def work(connection: Connection) -> None:
            if not self._namespaces.is_there(connection, namespace):
                raise self._namespaces.missing(new[:-1])
            row = self._locked_row(connection, old)
            if row is None:
                raise self._no_table(old)
            seen[:] = row
            connection.execute(
                update(TABLES)
                .where(self._is_row(old))
                .values(table_namespace=namespace, table_name=new[-1])
            )

        def took_place(connection: Connection) -> bool | None:
            before, after = self._locked_row(connection, old), self._locked_row(connection, new)
            if before is None and after == seen:
                return True
            return False if before == seen and after is None else None

        self._database.change(
            f"the renaming of {shown(old)} to {shown(new)}",
            work,
            took_place=lambda: self._database.look(took_place),
            properties=self.properties,
            taken=TableAlreadyExistsError(f"the name {shown(new)} is taken in {self.name}"),
        )

    def default_table_location(self, identifier: str | Sequence[str]) -> str:
        name = parse_table_identifier(identifier)
        if self.namespace_exists(name[:-1]):
            properties = self.load_namespace_properties(name[:-1])
            if location := properties.get("location"):
                require_folder_names(name[-1:])
                return join(normalize_location(location), name[-1])
        warehouse = self.properties.get("warehouse")
        if not warehouse:
            raise ConfigurationError(
                f"no location for {shown(name)}: set the catalog's warehouse or the namespace's "
                f"location"
            )
        require_folder_names(name)
        return join(normalize_location(warehouse), *name)

    def catalog_names(self) -> list[str]:
        """Return the names of the catalogs that have rows in the database, sorted."""
        query = union(select(TABLES.c.catalog_name), select(NAMESPACE_PROPERTIES.c.catalog_name))
        names = self._database.read(lambda connection: connection.scalars(query).all())
        return sorted(name for name in names if isinstance(name, str))

    def close(self) -> None:
        self._database.close()

    def _find(self, name: Identifier) -> str | None:
        query, row = self._find_statement, row_parameters(name)
        found = self._database.read(lambda connection: connection.execute(query, row).first())
        return None if found is None else self._location_in(name, found[0])

    def _create(self, name: Identifier, metadata: TableMetadata) -> LoadedTable:
        path = new_metadata_file_path(metadata, version=0)
        table = self._loaded(name, metadata, path)
        with new_metadata_file(
            self.io, path, metadata_bytes(self.io, metadata, path=path)
        ) as sending:
            self._insert(table, sending)
        return table

    def _register(
        self, name: Identifier, metadata: TableMetadata, metadata_location: str
    ) -> LoadedTable:
        table = self._loaded(name, metadata, metadata_location)
        self._insert(table, Sending())
        return table

    def _insert(self, table: LoadedTable, sending: Sending) -> None:
        name = table.identifier
        row = self._row(name, table.metadata_location)

        def work(connection: Connection) -> None:
            connection.execute(insert(TABLES).values(row))

        self._database.change(
            f"the new table {shown(name)} of {table.metadata_location}",
            work,
            took_place=lambda: self._took_place(None, table),
            properties={**self.properties, **table.metadata.properties},
            taken=TableAlreadyExistsError(
                f"the table {shown(name)} exists in {self.name}, or a view of that name"
            ),
            sending=sending,
        )

    def _swap(self, base: LoadedTable, updated: TableMetadata) -> LoadedTable:
        version = metadata_version(base.metadata_location)
        path = new_metadata_file_path(updated, version=0 if version is None else version + 1)
        table = self._loaded(base.identifier, updated, path)

        with new_metadata_file(
            self.io, path, metadata_bytes(self.io, updated, path=path)
        ) as sending:
            self._database.change(
                f"the swap of {shown(base.identifier)} to {path}",
                lambda connection: self._move_pointer(connection, base, table),
                took_place=lambda: self._took_place(base, table),
                properties={**self.properties, **base.metadata.properties},
                sending=sending,
            )
        return table

    def _raise_lost_race(self, connection: Connection, base: LoadedTable) -> None:
        row = self._locked_row(connection, base.identifier)
        if row is None:
            raise NoSuchTableError(f"the table {shown(base.identifier)} was dropped or renamed")
        raise CommitFailedError(
            f"{shown(base.identifier)} points to {row[0]}, not to {base.metadata_location}: "
            f"another writer was first"
        )

    def _drop(self, name: Identifier) -> None:
        seen: list[object] = []

        def work(connection: Connection) -> None:
            row = self._locked_row(connection, name)
            if row is None:
                raise self._no_table(name)
            seen[:] = row
            connection.execute(delete(TABLES).where(self._is_row(name)))

        def took_place(connection: Connection) -> bool | None:
            row = self._locked_row(connection, name)
            if row is None:
                return True
            return False if row == seen else None

        self._database.change(
            f"the end of the table {shown(name)}",
            work,
            took_place=lambda: self._database.look(took_place),
            properties=self.properties,
        )

    # -- lost answers ----------------------------------------------------------------------------

    def _took_place(self, base: LoadedTable | None, table: LoadedTable) -> bool | None:
        """Whether the table's pointer was moved, or made, by a transaction without an answer."""
        race = PointerRace(base, table, lambda: self._settled_pointer(table.identifier))
        answer = race.took_place(self.io)
        if answer is True or not self._is_named(table.metadata_location):
            return answer
        # Another has renamed the table since.
        return True

    def _settled_pointer(self, name: Identifier) -> str | None:
        """The pointer once no transaction is at work on the name."""

        def work(connection: Connection) -> str | None:
            row = self._locked_row(connection, name)
            if row is not None:
                return self._location_in(name, row[0])
            # An unfinished INSERT shows no row: another INSERT of its key waits for its end.
            connection.execute(insert(TABLES).values(self._row(name, "")))
            return None

        return self._database.look(work)

    def _is_named(self, metadata_location: str) -> bool:
        """Whether any row of the catalog has this pointer, or had it before its present one."""
        query = select(TABLES.c.table_name).where(
            self._tables_here(),
            or_(
                TABLES.c.metadata_location == metadata_location,
                TABLES.c.previous_metadata_location == metadata_location,
            ),
        )
        found = self._database.read(lambda connection: connection.execute(query).first())
        return found is not None

    # -- rows ------------------------------------------------------------------------------------

    def _select_row(self, name: Identifier) -> Select[Any]:
        return select(TABLES.c.metadata_location).where(self._is_row(name))

    def _locked_row(self, connection: Connection, name: Identifier) -> list[object] | None:
        """What the row points to, once it is ours to change; None if there is no row."""
        row = connection.execute(self._select_row(name).with_for_update()).first()
        return None if row is None else list(row)

    def _location_in(self, name: Identifier, pointer: object) -> str:
        if not isinstance(pointer, str) or not pointer:
            raise InvalidMetadataError(
                f"the row of {shown(name)} in the catalog {self.name} has no metadata location "
                f"but {pointer!r}",
                field="metadata_location",
            )
        return pointer

    def _row(self, name: Identifier, metadata_location: str) -> dict[str, str | None]:
        row: dict[str, str | None] = {
            "catalog_name": self.name,
            "table_namespace": namespace_text(name[:-1]),
            "table_name": name[-1],
            "metadata_location": metadata_location,
            "previous_metadata_location": None,
        }
        return {**row, "iceberg_type": _TABLE_TYPE} if self._typed_rows else row

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
        if not _flag(self.properties, "init_catalog_tables", default=True):
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

    def _tables_here(self) -> ColumnElement[bool]:
        return TABLES.c.catalog_name == self.name

    def _is_row(self, name: Identifier) -> ColumnElement[bool]:
        return and_(
            self._tables_here(),
            self._is_table(),
            TABLES.c.table_namespace == namespace_text(name[:-1]),
            TABLES.c.table_name == name[-1],
        )

    def _is_table(self) -> ColumnElement[bool]:
        # Java keeps views in the same table; rows of schema V0 have no type.
        if not self._typed_rows:
            return TABLES.c.catalog_name == self.name
        return or_(TABLES.c.iceberg_type == _TABLE_TYPE, TABLES.c.iceberg_type.is_(None))


def _flag(properties: Mapping[str, str], name: str, *, default: bool) -> bool:
    value = str(properties.get(name, default)).lower()
    if value not in ("true", "false"):
        raise ConfigurationError(f"the property {name} must be true or false, not {value!r}")
    return value == "true"
