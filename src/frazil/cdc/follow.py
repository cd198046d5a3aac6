"""Following a table of PostgreSQL: all rows of a snapshot first, then every transaction.

The table of Iceberg says how far it is: the position in PostgreSQL's log is the number of its last
batch, set in the commit of the batch itself. The slot is moved after that. So whatever is killed,
the next run goes on behind the last commit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event
from typing import Final

from frazil.catalog.identifiers import parse_table_identifier
from frazil.cdc.catalog import Types, check_source, named_oid, published_table
from frazil.cdc.columns import new_schema
from frazil.cdc.connections import Connection, Dsn
from frazil.cdc.positions import lsn_text
from frazil.cdc.session import FollowSession
from frazil.cdc.settings import CdcProgress, CdcSettings
from frazil.cdc.slots import Slot, check_server
from frazil.cdc.source.tables import SourceTable, table_of
from frazil.cdc.target import FollowedTable
from frazil.errors import (
    CommitFailedError,
    ConfigurationError,
    StorageError,
    ValidationError,
)
from frazil.spark.lake import Lake
from frazil.spark.table import Table
from frazil.spark.upserts.once import Batch

__all__ = ["CdcProgress", "CdcSettings", "Dsn", "PostgresFollower", "lsn_text"]

RETRY_SECONDS: Final = 5.0


@dataclass(slots=True, kw_only=True)
class PostgresFollower:
    """Brings a table of Iceberg up to one of PostgreSQL."""

    lake: Lake
    name: str
    settings: CdcSettings
    on_progress: Callable[[CdcProgress], None]
    _is_reloaded: bool = field(default=False, init=False)

    def drain(self) -> None:
        """Take over what is committed by now.

        Raises:
            StorageError: the server fails.
            ValidationError: the table cannot follow; what was taken over before stays.
        """
        with self.settings.dsn.errors("PostgreSQL failed"), self._session() as session:
            session.drain()

    def follow(
        self, *, interval: float, stop: Event, on_error: Callable[[Exception], None]
    ) -> None:
        """Drain again and again, also over restarts of the server.

        Args:
            interval: seconds between two rounds.
            stop: ends it.
            on_error: told of an error of the server or a store after the first round.

        Raises:
            ValidationError: the table cannot follow; what was taken over before stays.
        """
        has_run = False
        while not stop.is_set():
            try:
                with self.settings.dsn.errors("PostgreSQL failed"), self._session() as session:
                    while not stop.is_set():
                        session.drain()
                        has_run = True
                        stop.wait(interval)
            except (StorageError, CommitFailedError) as error:
                if not has_run:
                    raise
                on_error(error)
                stop.wait(max(interval, RETRY_SECONDS))

    def drop_slot(self) -> bool:
        """Remove the slot, and what the table remembers of it; say whether there was one.

        Raises:
            ConflictError: another process follows with it.
        """
        with (
            self.settings.dsn.errors("PostgreSQL failed"),
            self.settings.dsn.connect() as connection,
        ):
            slot = Slot(connection, self.settings.slot)
            slot.lock()
            query = _query(check_server(connection), self.settings.slot)
            if self.lake.catalog.table_exists(self.name):
                FollowedTable(self.lake.load_table(self.name), query, self.settings.dsn).forget()
            return slot.drop()

    # -- begin -----------------------------------------------------------------------------------

    def _session(self) -> FollowSession:
        settings = self.settings
        connection = settings.dsn.connect()
        try:
            return self._open(connection)
        except BaseException:
            connection.close()
            raise

    def _open(self, connection: Connection) -> FollowSession:
        settings = self.settings
        query = _query(check_server(connection), settings.slot)
        slot = Slot(connection, settings.slot)
        slot.lock()
        types = Types(connection)
        loaded = self._loaded_oid(query)
        oid = named_oid(connection, settings.source, loaded=loaded)
        if loaded is None:
            # Before there is a publication of it.
            check_source(table_of(connection, oid, settings.publication), settings.publication)
        source = published_table(connection, oid, settings.publication)
        table = self._table(slot, source, types, Batch(query, 0))
        session = FollowSession(
            connection=connection,
            slot=slot,
            types=types,
            oid=oid,
            target=FollowedTable(table, query, settings.dsn),
            settings=settings,
            on_progress=self.on_progress,
        )
        if settings.loads_again and not self._is_reloaded:
            table.set_properties({Batch(query, 0).property_name: "0"})
        self._is_reloaded = True
        session.begin()
        return session

    def _loaded_oid(self, query: str) -> int | None:
        """The table that was loaded; None where one is to be loaded."""
        is_to_load = self.settings.loads_again and not self._is_reloaded
        if is_to_load or not self.lake.catalog.table_exists(self.name):
            return None
        target = FollowedTable(self.lake.load_table(self.name), query, self.settings.dsn)
        return target.known.oid if target.applied else None

    def _table(self, slot: Slot, source: SourceTable, types: Types, none: Batch) -> Table:
        """The table, which remembers from its first moment that the slot is its own."""
        identifier = parse_table_identifier(self.name)
        is_there = self.lake.catalog.table_exists(identifier)
        table = self.lake.load_table(identifier) if is_there else None
        if table is not None and none.property_name in table.metadata.properties:
            return table
        if slot.state() is not None:
            raise ConfigurationError(
                f"there is a replication slot {slot.name}, and the table {self.name} knows nothing "
                "of it: give another name with --slot, or remove it with --drop-slot"
            )
        if table is None:
            return self.lake.create_table(
                identifier,
                new_schema(source, types),
                partition_by=self.settings.partition_by,
                properties={none.property_name: "0"},
            )
        if table.count() and not self.settings.loads_again:
            raise ValidationError(
                f"the table {self.name} has rows that are not of this slot: give another --table, "
                "or put the source's rows in their place with --load-again"
            )
        table.set_properties({none.property_name: "0"})
        return table


def _query(system: str, slot: str) -> str:
    """What batches of a slot are of: another server's positions mean something else."""
    return f"postgres-{system}-{slot}"
