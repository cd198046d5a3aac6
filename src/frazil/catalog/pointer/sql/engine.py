"""How a database is reached: its URL, its connections and how long they wait."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import create_engine, event
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool, StaticPool

from frazil.errors import ConfigurationError
from frazil.format.properties.kinds import LONG_MAX, Property, whole_number

WRITES = "frazil_writes"
_MILLISECONDS: Final = whole_number("milliseconds", largest=LONG_MAX)
CONNECT_TIMEOUT: Final = Property("sql.connect-timeout-ms", _MILLISECONDS, 30_000)
STATEMENT_TIMEOUT: Final = Property("sql.statement-timeout-ms", _MILLISECONDS, 60_000)
_SHORTEST_CONNECT_SECONDS = 2
_KEPT_CONNECTIONS = 12
_WITHOUT_END_SECONDS = 1_000_000
_LIBPQ_DRIVERS = ("postgresql+psycopg", "postgresql+psycopg2")
_KEEPALIVES = {
    "keepalives": 1,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
}


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """How long a database may be silent, in milliseconds; 0 is without end.

    Attributes:
        connect_ms: until a connection stands.
        statement_ms: until a statement, a COMMIT among them, is answered.
    """

    connect_ms: int = CONNECT_TIMEOUT.default
    statement_ms: int = STATEMENT_TIMEOUT.default

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> TimeLimits:
        """The catalog's ``sql.connect-timeout-ms`` and ``sql.statement-timeout-ms``."""
        return cls(CONNECT_TIMEOUT.of(properties), STATEMENT_TIMEOUT.of(properties))


def database_url(properties: Mapping[str, str]) -> URL:
    """The database of the property ``uri``; JDBC's spelling and properties are understood.

    A URI that is malformed is not shown.
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


def is_in_memory(url: URL) -> bool:
    """Whether the database lives in this process alone."""
    return url.get_backend_name() == "sqlite" and url.database in (None, "", ":memory:")


def make_engine(url: URL, *, echo: bool = False, limits: TimeLimits | None = None) -> Engine:
    """An engine whose transactions are the database's own.

    On SQLite a writer takes the lock when it begins and others wait for it, and no connection
    outlives its transaction.
    """
    given = limits if limits is not None else TimeLimits()
    options: dict[str, Any] = {"echo": echo, "hide_parameters": True}
    if url.get_backend_name() == "sqlite":
        in_memory = is_in_memory(url)
        options["poolclass"] = StaticPool if in_memory else NullPool
        options["connect_args"] = {
            "timeout": given.statement_ms / 1000 if given.statement_ms else _WITHOUT_END_SECONDS,
            "check_same_thread": not in_memory,
        }
        if not in_memory and url.database and not url.database.startswith("file:"):
            _make_folder_of(url.database)
    else:
        options["pool_size"] = _KEPT_CONNECTIONS
        if url.drivername in _LIBPQ_DRIVERS:
            asked = _libpq_options(given)
            options["connect_args"] = {k: v for k, v in asked.items() if k not in url.query}
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
    if url.drivername == "postgresql+psycopg" and given.statement_ms:
        _limit_psycopg_statements(engine, given.statement_ms)
    return engine


def _own_sqlite_transactions(engine: Engine) -> None:
    # The driver would begin late and commit by itself; here BEGIN is sent when SQLAlchemy begins.
    @event.listens_for(engine, "connect")
    def _no_driver_transactions(connection: Any, _record: Any) -> None:
        connection.isolation_level = None

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get(WRITES, False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _limit_psycopg_statements(engine: Engine, statement_ms: int) -> None:
    # The driver is an extra, so a module that needs it is imported once it is known to be there.
    module = importlib.import_module("frazil.catalog.pointer.sql.psycopg_connection")

    @event.listens_for(engine, "do_connect")
    def _connect(_dialect: Any, _record: Any, args: Any, options: Any) -> Any:
        return module.connect_with_limit(statement_ms, *args, **options)


def _libpq_options(limits: TimeLimits) -> dict[str, Any]:
    """A dead server is noticed: by the wait for a connection, and by TCP when it falls silent."""
    found: dict[str, Any] = dict(_KEEPALIVES)
    if limits.connect_ms:
        seconds = -(-limits.connect_ms // 1000)
        found["connect_timeout"] = max(_SHORTEST_CONNECT_SECONDS, seconds)
    if limits.statement_ms:
        found["tcp_user_timeout"] = limits.statement_ms
    return found


def _make_folder_of(database: str) -> None:
    folder = os.path.dirname(os.path.abspath(database))
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(
            f"cannot make the folder {folder} of the catalog: {error.strerror}"
        ) from None
