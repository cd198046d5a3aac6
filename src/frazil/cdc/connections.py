"""Connections to PostgreSQL: their settings, and errors without the password."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, LiteralString

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from frazil.errors import ConfigurationError, StorageError
from frazil.storage.paths import REDACTED, redact

Connection = psycopg.Connection[tuple[Any, ...]]

SETTINGS: Final[tuple[LiteralString, ...]] = (
    # The texts of values must not depend on how the user or the server is set up.
    "set datestyle = 'ISO, YMD'",
    "set timezone = 'UTC'",
    "set bytea_output = 'hex'",
    "set extra_float_digits = 1",
    "set xmloption = 'content'",
    # A policy that hides rows is an error, and no table with fewer rows.
    "set row_security = off",
    "set statement_timeout = 0",
    "set idle_in_transaction_session_timeout = 0",
    "set idle_session_timeout = 0",
)


@dataclass(frozen=True, slots=True)
class Dsn:
    """A connection string, which is never shown.

    Attributes:
        text: of libpq: a URL or ``key=value`` pairs.
    """

    text: str = field(repr=False)

    @classmethod
    def of(cls, text: str) -> Dsn:
        """Check a connection string.

        Raises:
            ConfigurationError: it is none.
        """
        for driver in ("postgresql+psycopg://", "postgresql+psycopg2://"):
            if text.startswith(driver):
                text = f"postgresql://{text.removeprefix(driver)}"
        try:
            conninfo_to_dict(text)
        except psycopg.Error:
            raise ConfigurationError(
                "the DSN is no connection string of PostgreSQL, as "
                "postgresql://user@host:5432/database"
            ) from None
        return cls(text)

    def connect(self) -> Connection:
        """Open a connection whose statements are transactions of their own.

        Raises:
            StorageError: the server does not take it.
        """
        with self.errors("cannot connect to PostgreSQL"):
            connection = psycopg.connect(self._with_defaults(), autocommit=True)
            for setting in SETTINGS:
                connection.execute(setting)
            return connection

    def connect_for_replication(self) -> Connection:
        """Open a connection that takes the commands of replication.

        Raises:
            StorageError: the server does not take it.
        """
        with self.errors("cannot connect to PostgreSQL for replication"):
            connection = psycopg.connect(
                self._with_defaults(), autocommit=True, replication="database"
            )
            connection.execute("set idle_session_timeout = 0")
            return connection

    @contextmanager
    def errors(self, doing: str) -> Iterator[None]:
        """Raise errors of the driver as typed ones.

        Raises:
            StorageError: whatever the server or the connection refused.
        """
        try:
            yield
        except psycopg.Error as error:
            raise StorageError(f"{doing}: {self.without_password(str(error))}") from None

    def without_password(self, text: str) -> str:
        """Return a text on one line in which the password is not."""
        shown = redact(" ".join(text.split()))
        password = conninfo_to_dict(self.text).get("password")
        return shown.replace(str(password), REDACTED) if password else shown

    def _with_defaults(self) -> str:
        given = conninfo_to_dict(self.text)
        return make_conninfo(
            self.text,
            application_name=str(given.get("application_name", "frazil cdc")),
            connect_timeout=str(given.get("connect_timeout", 20)),
            client_encoding="UTF8",
        )
