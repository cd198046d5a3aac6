"""Tables and namespaces as rows of a database, shared with Java's JdbcCatalog and PyIceberg.

A commit writes a metadata file and moves the row's pointer with one conditional UPDATE.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import quote_plus

from sqlalchemy import ColumnElement, and_, delete, func, insert, or_, select, union, update
from sqlalchemy.engine import URL, Connection
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError

from frazil.catalog.base import Catalog, LoadedTable
from frazil.catalog.identifiers import (
    Identifier,
    parse_named_namespace,
    parse_namespace,
    parse_table_identifier,
    shown,
)
from frazil.catalog.metadata_files import metadata_bytes
from frazil.catalog.outcome import PointerRace, find_outcome
from frazil.catalog.sql_schema import (
    NAMESPACE_PROPERTIES,
    SCHEMA,
    TABLES,
    WRITES,
    add_type_column,
    database_url,
    has_type_column,
    make_engine,
)
from frazil.errors import (
    CommitFailedException,
    ConfigurationError,
    InvalidMetadataError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    StorageError,
    TableAlreadyExistsError,
    ValidationException,
)
from frazil.format.metadata import TableMetadata
from frazil.storage.files import FileIO
from frazil.storage.locations import metadata_version, new_metadata_file_path
from frazil.storage.paths import join, normalize_location, redact

_EXISTS = "exists"
_TABLE_TYPE = "TABLE"
_MAKE_ATTEMPTS = 3


class SqlCatalog(Catalog):
    """SQLite, PostgreSQL and other databases that SQLAlchemy reaches.

    Properties: ``uri`` (required), ``warehouse``, ``init_catalog_tables`` (true), ``echo`` (false),
    ``jdbc.schema-version`` (V1 adds the column iceberg_type to an older catalog).
    """

    kind: ClassVar[str] = "sql"

    def __init__(
        self, name: str, properties: Mapping[str, str], *, io: FileIO | None = None
    ) -> None:
        super().__init__(name, properties, io=io)
        url = database_url(properties)
        self._shown_url = url.render_as_string(hide_password=True)
        self._secrets = {"password": url.password or "", "encoded password": _encoded_password(url)}
        self._engine = make_engine(url, echo=_flag(properties, "echo", default=False))
        self._writer = self._engine.execution_options(**{WRITES: True})
        # An in-memory database has one connection for all threads.
        in_memory = url.get_backend_name() == "sqlite" and url.database in (None, "", ":memory:")
        self._guard = threading.RLock() if in_memory else contextlib.nullcontext()
        self._typed_rows = self._prepare_tables()

    # -- namespaces ------------------------------------------------------------------------------

    def create_namespace(
        self, namespace: str | Sequence[str], properties: Mapping[str, str] | None = None
    ) -> None:
        levels = parse_named_namespace(namespace)
        text = _namespace_text(levels)
        rows = {**(properties or {}), _EXISTS: "true"}
        taken = NamespaceAlreadyExistsError(f"the namespace {shown(levels)} exists in {self.name}")
        try:
            with self._write() as connection:
                if self._namespace_exists(connection, text):
                    raise taken
                connection.execute(
                    insert(NAMESPACE_PROPERTIES),
                    [self._property_row(text, key, value) for key, value in rows.items()],
                )
        except _TakenError:
            raise taken from None

    def drop_namespace(self, namespace: str | Sequence[str]) -> None:
        levels = parse_named_namespace(namespace)
        text = _namespace_text(levels)
        with self._write() as connection:
            if not self._namespace_exists(connection, text):
                raise self._no_namespace(levels)
            inside = [
                *connection.scalars(
                    select(TABLES.c.table_name)
                    .where(self._tables_here(), _same_or_below(TABLES.c.table_namespace, text))
                    .limit(1)
                ),
                *connection.scalars(
                    select(NAMESPACE_PROPERTIES.c.namespace)
                    .where(self._properties_here(), _below(NAMESPACE_PROPERTIES.c.namespace, text))
                    .limit(1)
                ),
            ]
            if inside:
                raise NamespaceNotEmptyError(
                    f"the namespace {shown(levels)} is not empty: it holds {inside[0]}"
                )
            connection.execute(
                delete(NAMESPACE_PROPERTIES).where(
                    self._properties_here(), NAMESPACE_PROPERTIES.c.namespace == text
                )
            )

    def list_namespaces(self, parent: str | Sequence[str] = ()) -> list[Identifier]:
        levels = parse_namespace(parent)
        if levels:
            self._require_namespace(levels)
        with self._read() as connection:
            texts = connection.scalars(
                union(
                    select(TABLES.c.table_namespace).where(self._tables_here()),
                    select(NAMESPACE_PROPERTIES.c.namespace).where(self._properties_here()),
                )
            ).all()
        depth = len(levels)
        known = {tuple(text.split(".")) for text in texts if isinstance(text, str) and text}
        return sorted(
            {
                found[: depth + 1]
                for found in known
                if len(found) > depth and found[:depth] == levels
            }
        )

    def namespace_exists(self, namespace: str | Sequence[str]) -> bool:
        text = _namespace_text(parse_named_namespace(namespace))
        with self._read() as connection:
            return self._namespace_exists(connection, text)

    def load_namespace_properties(self, namespace: str | Sequence[str]) -> dict[str, str]:
        levels = parse_named_namespace(namespace)
        text = _namespace_text(levels)
        with self._read() as connection:
            if not self._namespace_exists(connection, text):
                raise self._no_namespace(levels)
            rows = connection.execute(
                select(
                    NAMESPACE_PROPERTIES.c.property_key, NAMESPACE_PROPERTIES.c.property_value
                ).where(self._properties_here(), NAMESPACE_PROPERTIES.c.namespace == text)
            ).all()
        return {
            str(key): "" if value is None else str(value) for key, value in rows if key != _EXISTS
        }

    def update_namespace_properties(
        self,
        namespace: str | Sequence[str],
        *,
        updates: Mapping[str, str] | None = None,
        removals: Sequence[str] = (),
    ) -> None:
        levels = parse_named_namespace(namespace)
        text = _namespace_text(levels)
        changes = dict(updates or {})
        if both := sorted(set(changes) & set(removals)):
            raise ValidationException(f"the properties {both} are both set and removed")
        with self._write() as connection:
            if not self._namespace_exists(connection, text):
                raise self._no_namespace(levels)
            connection.execute(
                delete(NAMESPACE_PROPERTIES).where(
                    self._properties_here(),
                    NAMESPACE_PROPERTIES.c.namespace == text,
                    NAMESPACE_PROPERTIES.c.property_key.in_({*changes, *removals, _EXISTS}),
                )
            )
            # The marker keeps a namespace that has no other property and no table.
            rows = {**changes, _EXISTS: "true"}
            connection.execute(
                insert(NAMESPACE_PROPERTIES),
                [self._property_row(text, key, value) for key, value in rows.items()],
            )

    # -- tables ----------------------------------------------------------------------------------

    def list_tables(self, namespace: str | Sequence[str]) -> list[Identifier]:
        levels = parse_named_namespace(namespace)
        text = _namespace_text(levels)
        with self._read() as connection:
            if not self._namespace_exists(connection, text):
                raise self._no_namespace(levels)
            names = connection.scalars(
                select(TABLES.c.table_name).where(
                    self._tables_here(), self._is_table(), TABLES.c.table_namespace == text
                )
            ).all()
        return sorted((*levels, name) for name in names if isinstance(name, str))

    def rename_table(self, source: str | Sequence[str], target: str | Sequence[str]) -> None:
        old, new = parse_table_identifier(source), parse_table_identifier(target)
        if old == new:
            if not self.table_exists(old):
                raise self._no_table(old)
            return
        try:
            with self._write() as connection:
                if not self._namespace_exists(connection, _namespace_text(new[:-1])):
                    raise self._no_namespace(new[:-1])
                moved = connection.execute(
                    update(TABLES)
                    .where(self._is_row(old))
                    .values(table_namespace=_namespace_text(new[:-1]), table_name=new[-1])
                )
                if moved.rowcount == 0:
                    raise self._no_table(old)
        except _TakenError:
            raise TableAlreadyExistsError(
                f"the name {shown(new)} is taken in {self.name}"
            ) from None

    def default_table_location(self, identifier: str | Sequence[str]) -> str:
        name = parse_table_identifier(identifier)
        if self.namespace_exists(name[:-1]):
            properties = self.load_namespace_properties(name[:-1])
            if location := properties.get("location"):
                return join(normalize_location(location), name[-1])
        warehouse = self.properties.get("warehouse")
        if not warehouse:
            raise ConfigurationError(
                f"no location for {shown(name)}: set the catalog's warehouse or the namespace's "
                f"location"
            )
        return join(normalize_location(warehouse), *name)

    def close(self) -> None:
        self._engine.dispose()

    def _find(self, name: Identifier) -> str | None:
        with self._read() as connection:
            return self._pointer(connection, name)

    def _pointer(self, connection: Connection, name: Identifier) -> str | None:
        row = connection.execute(
            select(TABLES.c.metadata_location).where(self._is_row(name)).with_for_update()
            if connection.get_execution_options().get(WRITES)
            else select(TABLES.c.metadata_location).where(self._is_row(name))
        ).first()
        if row is None:
            return None
        if not isinstance(row[0], str) or not row[0]:
            raise InvalidMetadataError(
                f"the row of {shown(name)} in the catalog {self.name} has no metadata location "
                f"but {row[0]!r}",
                field="metadata_location",
            )
        return row[0]

    def _create(self, name: Identifier, metadata: TableMetadata) -> LoadedTable:
        path = new_metadata_file_path(metadata, version=0)
        self.io.create_unique(path, metadata_bytes(metadata, path=path))
        self._insert(LoadedTable(name, metadata, path), owns_file=True)
        return LoadedTable(name, metadata, path)

    def _register(
        self, name: Identifier, metadata: TableMetadata, metadata_location: str
    ) -> LoadedTable:
        table = LoadedTable(name, metadata, metadata_location)
        self._insert(table, owns_file=False)
        return table

    def _insert(self, table: LoadedTable, *, owns_file: bool) -> None:
        row: dict[str, Any] = {
            "catalog_name": self.name,
            "table_namespace": _namespace_text(table.identifier[:-1]),
            "table_name": table.identifier[-1],
            "metadata_location": table.metadata_location,
            "previous_metadata_location": None,
        }
        if self._typed_rows:
            row["iceberg_type"] = _TABLE_TYPE
        race = PointerRace(None, table, lambda: self._locked_pointer(table.identifier))
        try:
            with self._write() as connection:
                connection.execute(insert(TABLES).values(row))
        except _TakenError:
            self._forget(table.metadata_location, owned=owns_file)
            raise TableAlreadyExistsError(
                f"the table {shown(table.identifier)} exists in {self.name}"
            ) from None
        except _DoubtfulError as error:
            if not find_outcome(self.io, race, table.metadata.properties, reason=str(error)):
                self._forget(table.metadata_location, owned=owns_file)
                raise CommitFailedException(str(error)) from None
        except Exception:
            self._forget(table.metadata_location, owned=owns_file)
            raise

    def _swap(self, base: LoadedTable, updated: TableMetadata) -> LoadedTable:
        version = metadata_version(base.metadata_location)
        path = new_metadata_file_path(updated, version=0 if version is None else version + 1)
        table = LoadedTable(base.identifier, updated, path)
        self.io.create_unique(path, metadata_bytes(updated, path=path))
        race = PointerRace(base, table, lambda: self._locked_pointer(base.identifier))
        try:
            with self._write() as connection:
                moved = connection.execute(
                    update(TABLES)
                    .where(
                        self._is_row(base.identifier),
                        TABLES.c.metadata_location == base.metadata_location,
                    )
                    .values(
                        metadata_location=path,
                        previous_metadata_location=base.metadata_location,
                    )
                )
                if moved.rowcount != 1:
                    self._raise_lost_race(connection, base)
        except _DoubtfulError as error:
            if not find_outcome(self.io, race, base.metadata.properties, reason=str(error)):
                self._forget(path, owned=True)
                raise CommitFailedException(str(error)) from None
        except Exception:
            self._forget(path, owned=True)
            raise
        return table

    def _raise_lost_race(self, connection: Connection, base: LoadedTable) -> None:
        pointer = self._pointer(connection, base.identifier)
        if pointer is None:
            raise NoSuchTableError(f"the table {shown(base.identifier)} was dropped or renamed")
        raise CommitFailedException(
            f"{shown(base.identifier)} points to {pointer}, not to {base.metadata_location}: "
            f"another writer was first"
        )

    def _drop(self, name: Identifier) -> None:
        with self._write() as connection:
            if connection.execute(delete(TABLES).where(self._is_row(name))).rowcount == 0:
                raise self._no_table(name)

    def _locked_pointer(self, name: Identifier) -> str | None:
        # The row lock waits for a transaction whose end this process has not heard of.
        with self._write() as connection:
            return self._pointer(connection, name)

    def _forget(self, path: str, *, owned: bool) -> None:
        if owned:
            self.io.delete_many([path])

    # -- rows and transactions -------------------------------------------------------------------

    def _prepare_tables(self) -> bool:
        """Make the tables where they are missing; whether rows have a type (schema V1)."""
        wanted = self.properties.get("jdbc.schema-version") or self.properties.get("schema_version")
        try:
            typed = has_type_column(self._engine)
            if typed is None:
                typed = self._make_tables()
            if not typed and (wanted or "").upper() == "V1":
                with self._writer.begin() as connection:
                    add_type_column(connection)
                return True
        except SQLAlchemyError as error:
            raise self._failed(error) from None
        return typed

    def _make_tables(self) -> bool:
        if not _flag(self.properties, "init_catalog_tables", default=True):
            raise ConfigurationError(
                f"the database {self._shown_url} holds no catalog and init_catalog_tables is false"
            )
        # Another process may make them at the same moment: what counts is the look after.
        for _ in range(_MAKE_ATTEMPTS):
            with contextlib.suppress(SQLAlchemyError), self._writer.begin() as connection:
                SCHEMA.create_all(connection)
            if (typed := has_type_column(self._engine)) is not None:
                return typed
        with self._writer.begin() as connection:
            SCHEMA.create_all(connection)
        return True

    @contextlib.contextmanager
    def _read(self) -> Iterator[Connection]:
        with self._guard:
            try:
                with self._engine.connect() as connection:
                    yield connection
            except SQLAlchemyError as error:
                raise self._failed(error) from None

    @contextlib.contextmanager
    def _write(self) -> Iterator[Connection]:
        """One transaction; only an error of its COMMIT leaves its outcome in doubt."""
        stage = "open"
        with self._guard:
            try:
                with self._writer.connect() as connection:
                    transaction = connection.begin()
                    try:
                        yield connection
                    except BaseException:
                        with contextlib.suppress(SQLAlchemyError):
                            transaction.rollback()
                        raise
                    stage = "committing"
                    transaction.commit()
                    stage = "committed"
            except IntegrityError as error:
                raise _TakenError(self._reason(error)) from None
            except Exception as error:
                if stage == "committed":
                    # What went wrong when the connection was given back changes nothing.
                    return
                if stage == "committing":
                    raise _DoubtfulError(self._reason(error)) from None
                if isinstance(error, SQLAlchemyError):
                    raise self._failed(error) from None
                raise

    def _failed(self, error: SQLAlchemyError) -> StorageError:
        return StorageError(f"the catalog {self._shown_url} failed: {self._reason(error)}")

    def _reason(self, error: Exception) -> str:
        cause = error.orig if isinstance(error, DBAPIError) and error.orig else error
        return redact(" ".join(str(cause).split()), self._secrets) or type(cause).__name__

    def _namespace_exists(self, connection: Connection, text: str) -> bool:
        for query in (
            select(TABLES.c.table_name).where(
                self._tables_here(), _same_or_below(TABLES.c.table_namespace, text)
            ),
            select(NAMESPACE_PROPERTIES.c.namespace).where(
                self._properties_here(), _same_or_below(NAMESPACE_PROPERTIES.c.namespace, text)
            ),
        ):
            if connection.execute(query.limit(1)).first() is not None:
                return True
        return False

    def _tables_here(self) -> ColumnElement[bool]:
        return TABLES.c.catalog_name == self.name

    def _properties_here(self) -> ColumnElement[bool]:
        return NAMESPACE_PROPERTIES.c.catalog_name == self.name

    def _is_row(self, name: Identifier) -> ColumnElement[bool]:
        return and_(
            self._tables_here(),
            self._is_table(),
            TABLES.c.table_namespace == _namespace_text(name[:-1]),
            TABLES.c.table_name == name[-1],
        )

    def _is_table(self) -> ColumnElement[bool]:
        # Java keeps views in the same table; rows of schema V0 have no type.
        if not self._typed_rows:
            return TABLES.c.catalog_name == self.name
        return or_(TABLES.c.iceberg_type == _TABLE_TYPE, TABLES.c.iceberg_type.is_(None))

    def _property_row(self, namespace: str, key: str, value: str) -> dict[str, str]:
        return {
            "catalog_name": self.name,
            "namespace": namespace,
            "property_key": key,
            "property_value": value,
        }

    def _no_table(self, name: Identifier) -> NoSuchTableError:
        return NoSuchTableError(f"there is no table {shown(name)} in the catalog {self.name}")

    def _no_namespace(self, levels: Identifier) -> NoSuchNamespaceError:
        return NoSuchNamespaceError(
            f"there is no namespace {shown(levels)} in the catalog {self.name}"
        )


class _TakenError(StorageError):
    """A row of that key exists."""


class _DoubtfulError(StorageError):
    """The COMMIT was sent and no answer came."""


def _namespace_text(levels: Identifier) -> str:
    for level in levels:
        if "." in level:
            raise ValidationException(
                f"the namespace level {level!r} holds a dot, which separates levels here"
            )
    return ".".join(levels)


def _same_or_below(column: ColumnElement[str], text: str) -> ColumnElement[bool]:
    return or_(column == text, _below(column, text))


def _below(column: ColumnElement[str], text: str) -> ColumnElement[bool]:
    # LIKE ignores case on SQLite and has wildcards; a prefix comparison has neither.
    return func.substr(column, 1, len(text) + 1) == f"{text}."


def _flag(properties: Mapping[str, str], name: str, *, default: bool) -> bool:
    value = str(properties.get(name, default)).lower()
    if value not in ("true", "false"):
        raise ConfigurationError(f"the property {name} must be true or false, not {value!r}")
    return value == "true"


def _encoded_password(url: URL) -> str:
    return "" if not url.password else quote_plus(url.password)
