"""Replication slots: where PostgreSQL keeps its log for us, and how far we have come."""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import dataclass
from typing import Final

import psycopg
from psycopg import sql

from frazil.cdc.connections import Connection, Dsn
from frazil.cdc.pgoutput import Message, message_of
from frazil.cdc.positions import lsn_of, lsn_text
from frazil.errors import (
    ConfigurationError,
    ConflictError,
    StorageError,
    UnsupportedError,
    ValidationError,
)

OLDEST_SERVER: Final = 140_000
WAIT_SECONDS: Final = 30.0
"""So long the server may take to see that a process which used the slot has died."""

_ROWS_FETCHED: Final = 5000

_SLOT: Final = """
select plugin::text, database::text, database = current_database(), active_pid,
       confirmed_flush_lsn::text, coalesce(wal_status, '') from pg_replication_slots
where slot_name = %s"""


@dataclass(frozen=True, slots=True)
class SlotState:
    """A replication slot as it is now.

    Attributes:
        confirmed: changes before this position are not kept for it.
        is_active: whether a connection uses it.
    """

    confirmed: int
    is_active: bool


@dataclass(frozen=True, slots=True)
class NewSlot:
    """A slot that was just made.

    Attributes:
        start: it has all transactions that commit from here on.
        snapshot: the name of a snapshot that has all others, as long as `holder` is open.
    """

    start: int
    snapshot: str
    holder: Connection


def check_server(connection: Connection) -> str:
    """Check that a server can tell changes, and return its identifier.

    Raises:
        UnsupportedError: it is too old.
        ConfigurationError: its log has not what is needed.
    """
    version = connection.info.server_version
    if version < OLDEST_SERVER:
        raise UnsupportedError(
            f"the server is PostgreSQL {version // 10000}; frazil cdc needs 14 or newer"
        )
    [level] = connection.execute("show wal_level").fetchone() or ("",)
    if level != "logical":
        raise ConfigurationError(
            f"the server's wal_level is {level}: set it with ALTER SYSTEM SET wal_level = logical, "
            "and restart the server"
        )
    [identifier] = connection.execute(
        "select system_identifier::text from pg_control_system()"
    ).fetchone() or ("",)
    return str(identifier)


def flushed_lsn(connection: Connection) -> int:
    """Return how far the server's log is safe."""
    [text] = connection.execute("select pg_current_wal_flush_lsn()::text").fetchone() or ("0/0",)
    return lsn_of(text)


def flushed_now(connection: Connection) -> int:
    """Make the server's log safe up to now, and return how far it is."""
    with connection.transaction():
        connection.execute("set local synchronous_commit = local")
        connection.execute("select pg_logical_emit_message(true, 'frazil cdc', '')")
    return flushed_lsn(connection)


@dataclass(frozen=True, slots=True)
class Slot:
    """A logical replication slot of the plugin pgoutput.

    Attributes:
        name: unique on the server.
    """

    connection: Connection
    name: str

    def state(self) -> SlotState | None:
        """Return how far the slot is; None where there is none.

        Raises:
            ConfigurationError: a slot of the name is another's.
            ValidationError: the server has thrown away what was kept for it.
        """
        row = self.connection.execute(_SLOT, [self.name]).fetchone()
        if row is None:
            return None
        plugin, database, is_here, pid, confirmed, status = row
        if plugin != "pgoutput" or not is_here:
            raise ConfigurationError(
                f"the replication slot {self.name} is one of {plugin or 'physical replication'} in "
                f"the database {database}; give another name with --slot"
            )
        if status == "lost" or confirmed is None:
            raise ValidationError(
                f"the server has removed the log that the slot {self.name} needs "
                "(max_slot_wal_keep_size): load the table again, with --load-again"
            )
        return SlotState(lsn_of(confirmed), pid is not None)

    def lock(self) -> None:
        """Keep others from following with this slot as long as the connection is open.

        Raises:
            ConflictError: another process does.
        """
        until = time.monotonic() + WAIT_SECONDS
        statement = "select pg_try_advisory_lock(hashtext('frazil cdc'), hashtext(%s))"
        while not (self.connection.execute(statement, [self.name]).fetchone() or (False,))[0]:
            if time.monotonic() > until:
                raise ConflictError(
                    f"another process follows with the slot {self.name}; end it first, or give "
                    "another name with --slot"
                )
            time.sleep(0.2)
        while (state := self.state()) is not None and state.is_active:
            if time.monotonic() > until:
                raise ConflictError(f"another connection uses the slot {self.name}; end it first")
            time.sleep(0.2)

    def create(self, dsn: Dsn) -> NewSlot:
        """Make the slot and a snapshot of what is before it.

        Raises:
            StorageError: the server refuses.
        """
        return _create(dsn, self.name, sql.SQL(""))

    def make_temporary(self, dsn: Dsn) -> NewSlot:
        """Make a slot that lasts as long as its holder, and a snapshot of what is before it.

        Raises:
            StorageError: the server refuses.
        """
        return _create(dsn, self._name_beside("at"), sql.SQL("TEMPORARY"))

    def commits(self, dsn: Dsn) -> dict[str, int]:
        """Return where the commits of all transactions from the slot's position on end, by id.

        A copy of the slot tells it, by the plugin test_decoding: pgoutput passes over transactions
        that change no rows. None are returned where the server cannot make one.
        """
        copy = self._name_beside("copy")
        with dsn.connect() as connection:
            try:
                connection.execute(
                    "select pg_copy_logical_replication_slot(%s, %s, true, 'test_decoding')",
                    [self.name, copy],
                )
                rows = connection.execute(
                    "select substr(data, 8), lsn::text from pg_logical_slot_peek_changes("
                    "%s, null, null, 'skip-empty-xacts', '0', 'include-timestamp', '0') "
                    "where data like 'COMMIT %%'",
                    [copy],
                ).fetchall()
            except psycopg.Error:
                return {}
        return {xid: lsn_of(end) for xid, end in rows}

    def _name_beside(self, what: str) -> str:
        """The name of a temporary slot; the advisory lock keeps it from being used twice."""
        return f"{self.name[:50]}_{what}_{self.connection.info.backend_pid}"

    def drop(self) -> bool:
        """Remove the slot, and let the server remove its log; say whether it was there."""
        if self.state() is None:
            return False
        self.connection.execute("select pg_drop_replication_slot(%s)", [self.name])
        return True

    def messages(self, publication: str, *, until: int, changes: int | None) -> Generator[Message]:
        """Return what the log has from the slot's position on; the slot stays where it is.

        Args:
            until: only transactions that commit before this position.
            changes: stop after the transaction with which there are so many; None for none.

        Raises:
            ValidationError: there was no publication when some of the log was written.
        """
        names = sql.Identifier(publication).as_string(self.connection)
        query = (
            "select data from pg_logical_slot_peek_binary_changes(%s, %s::pg_lsn, %s, "
            "'proto_version', '1', 'publication_names', %s)"
        )
        with (
            self.connection.transaction(),
            self.connection.cursor("frazil_changes", binary=True) as cursor,
        ):
            cursor.itersize = _ROWS_FETCHED
            try:
                cursor.execute(query, [self.name, lsn_text(until), changes, names])
                for [data] in cursor:
                    message = message_of(bytes(data))
                    if message is not None:
                        yield message
            except psycopg.errors.UndefinedObject as error:
                raise ValidationError(
                    f"PostgreSQL cannot tell what the log has for the slot {self.name}, as where "
                    f"the publication {publication} was not there at the time "
                    f"({error.diag.message_primary}): load the table again, with --load-again"
                ) from None

    def advance(self, lsn: int) -> None:
        """Let the server remove what lies before a position."""
        state = self.state()
        if state is not None and state.confirmed < lsn:
            self.connection.execute(
                "select pg_replication_slot_advance(%s, %s::pg_lsn)", [self.name, lsn_text(lsn)]
            )


def _create(dsn: Dsn, name: str, kind: sql.SQL) -> NewSlot:
    holder = dsn.connect_for_replication()
    try:
        with dsn.errors(f"cannot make the replication slot {name}"):
            row = holder.execute(
                sql.SQL("CREATE_REPLICATION_SLOT {} {} LOGICAL pgoutput EXPORT_SNAPSHOT").format(
                    sql.Identifier(name), kind
                )
            ).fetchone()
        if row is None:
            raise StorageError(f"the server did not say where the slot {name} begins")
    except BaseException:
        holder.close()
        raise
    _, start, snapshot, _ = row
    return NewSlot(lsn_of(start), snapshot, holder)
