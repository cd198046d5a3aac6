"""The tables of Java's JdbcCatalog and PyIceberg's SqlCatalog, and how a database is reached."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from sqlalchemy import (
    Column,
    MetaData,
    String,
    Table,
    create_engine,
    event,
    inspect,
    text,
)
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool, StaticPool

from frazil.errors import ConfigurationError

WRITES = "frazil_writes"
_BUSY_SECONDS = 60
_CONNECT_SECONDS = 30

SCHEMA = MetaData()
TABLES = Table(
    "iceberg_tables",
    SCHEMA,
    Column("catalog_name", String(255), primary_key=True, nullable=False),
    Column("table_namespace", String(255), primary_key=True, nullable=False),
    Column("table_name", String(255), primary_key=True, nullable=False),
    Column("metadata_location", String(1000)),
    Column("previous_metadata_location", String(1000)),
    Column("iceberg_type", String(5)),
)
NAMESPACE_PROPERTIES = Table(
    "iceberg_namespace_properties",
    SCHEMA,
    Column("catalog_name", String(255), primary_key=True, nullable=False),
    Column("namespace", String(255), primary_key=True, nullable=False),
    Column("property_key", String(255), primary_key=True, nullable=False),
    Column("property_value", String(1000)),
)


def database_url(properties: Mapping[str, str]) -> URL:
    """The database of the property ``uri``; JDBC's spelling and properties are understood.

    Raises:
        ConfigurationError: the URI is missing or malformed; it is not shown.
    """
    uri = properties.get("uri")
    if not uri:
        raise ConfigurationError(
            "the sql catalog needs the property uri, such as sqlite:////lake/catalog.db"
        )
    uri = uri.removeprefix("jdbc:")
    if uri.startswith("sqlite:") and not uri.startswith("sqlite://"):
        uri = "sqlite:///" + uri.removeprefix("sqlite:")
    try:
        url = make_url(uri)
    except (ArgumentError, ValueError):
        raise ConfigurationError(
            "the property uri is not a database URL (dialect://user:password@host/database)"
        ) from None
    if url.drivername in ("postgresql", "postgres"):
        url = url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() == "sqlite":
        return url
    query = dict(url.query)
    user = properties.get("jdbc.user") or query.pop("user", None)
    password = properties.get("jdbc.password") or query.pop("password", None)
    url = url.set(query=query)
    if isinstance(user, str) and not url.username:
        url = url.set(username=user)
    if isinstance(password, str) and not url.password:
        url = url.set(password=password)
    return url


def sqlite_uri(path: str) -> str:
    """The URI of a SQLite file; the path is literal."""
    return URL.create("sqlite", database=path).render_as_string()


def make_engine(url: URL, *, echo: bool = False) -> Engine:
    """An engine whose transactions are the database's own.

    On SQLite a writer takes the lock when it begins and others wait for it, and no connection
    outlives its transaction, so that a fork inherits none.

    Raises:
        ConfigurationError: the dialect or its driver is not installed.
    """
    options: dict[str, Any] = {"echo": echo, "hide_parameters": True}
    if url.get_backend_name() == "sqlite":
        in_memory = url.database in (None, "", ":memory:")
        options["poolclass"] = StaticPool if in_memory else NullPool
        options["connect_args"] = {"timeout": _BUSY_SECONDS, "check_same_thread": not in_memory}
        if not in_memory and url.database and not url.database.startswith("file:"):
            folder = os.path.dirname(os.path.abspath(url.database))
            try:
                os.makedirs(folder, exist_ok=True)
            except OSError as error:
                raise ConfigurationError(
                    f"cannot make the folder {folder} of the catalog: {error.strerror}"
                ) from None
    else:
        options["pool_pre_ping"] = True
        if url.get_backend_name() == "postgresql":
            options["connect_args"] = {"connect_timeout": _CONNECT_SECONDS}
    try:
        engine = create_engine(url, **options)
    except (NoSuchModuleError, ImportError) as error:
        missing = re.sub(r"[^\w.: ]", " ", str(error))
        raise ConfigurationError(
            f"no driver for {url.drivername} databases is installed ({missing}): for PostgreSQL "
            f"install frazil[postgres]"
        ) from None
    except (SQLAlchemyError, TypeError) as error:
        raise ConfigurationError(
            f"{url.render_as_string(hide_password=True)} is not usable: {type(error).__name__}"
        ) from None
    if url.get_backend_name() == "sqlite":
        _own_sqlite_transactions(engine)
    return engine


def has_type_column(engine: Engine) -> bool | None:
    """Whether iceberg_tables is of schema V1; None if there is no such table."""
    with engine.connect() as connection:
        inspector = inspect(connection)
        names = {TABLES.name, NAMESPACE_PROPERTIES.name}
        if not names <= set(inspector.get_table_names()):
            return None
        return any(c["name"] == "iceberg_type" for c in inspector.get_columns(TABLES.name))


def add_type_column(connection: Connection) -> None:
    """Turn schema V0 into V1 (``jdbc.schema-version=V1``)."""
    connection.execute(text("ALTER TABLE iceberg_tables ADD COLUMN iceberg_type VARCHAR(5)"))


def _own_sqlite_transactions(engine: Engine) -> None:
    # The driver would begin late and commit by itself; here BEGIN is sent when SQLAlchemy begins.
    @event.listens_for(engine, "connect")
    def _no_driver_transactions(connection: Any, _record: Any) -> None:
        connection.isolation_level = None

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get(WRITES, False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
