"""Requests noted in the database of a catalog, in the transactions of their changes.

The table is Frazil's own, beside the two that other engines know; it is made when a catalog is
served.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from sqlalchemy import BigInteger, Column, MetaData, String, Table, delete, insert, inspect, select
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from frazil.catalog.pointer.sql.database import Database
from frazil.catalog.request_log import RequestLog
from frazil.errors import RequestRepeatedError

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
    def noting(self, key: str, digest: str) -> Iterator[None]:
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
