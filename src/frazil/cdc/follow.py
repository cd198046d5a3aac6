"""Following a table of PostgreSQL: all rows of a snapshot first, then every transaction.

The table of Iceberg says how far it is: the position in PostgreSQL's log is the number of its last
batch, set in the commit of the batch itself. The slot is moved after that. So whatever is killed,
the next run goes on behind the last commit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from threading import Event
from typing import Final

from frazil.catalog.identifiers import parse_table_identifier
from frazil.cdc.batches import Reader, RowLayout, TransactionBatch
from frazil.cdc.catalog import Types, check_source, named_oid, published_table
from frazil.cdc.columns import ColumnPlan, check_relation_key, kept_columns, new_schema
from frazil.cdc.connections import Connection, Dsn
from frazil.cdc.initial import SnapshotRows
from frazil.cdc.pgoutput import Begin, Relation
from frazil.cdc.positions import lsn_text
from frazil.cdc.settings import CdcProgress, CdcSettings
from frazil.cdc.slots import NewSlot, Slot, check_server, flushed_lsn, flushed_now
from frazil.cdc.source.fixed import FixedTable, fixed_table
from frazil.cdc.source.history import ColumnHistory
from frazil.cdc.source.known import KnownSource, silent_changes
from frazil.cdc.source.tables import SourceTable, table_of
from frazil.cdc.target import FollowedTable
from frazil.cdc.values import RowLoader, ValueColumn
from frazil.errors import (
    CommitFailedError,
    ConfigurationError,
    ConflictError,
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

    @contextmanager
    def _session(self) -> Iterator[FollowSession]:
        with closing(self.settings.dsn.connect()) as connection:
            yield self._open(connection)

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
        return target.known_source.oid if target.applied_lsn else None

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


IDLE_BYTES: Final = 16 * 1024 * 1024
"""Where others have written so much since, the table and the slot take note without changes."""

LOADS: Final = 3
"""So often a load begins where it gave way to a command that moves the source's rows."""


@dataclass(slots=True, kw_only=True)
class FollowSession:
    """One connection's work.

    Attributes:
        oid: of the source.
    """

    connection: Connection
    slot: Slot
    types: Types
    oid: int
    target: FollowedTable
    settings: CdcSettings
    on_progress: Callable[[CdcProgress], None]

    def begin(self) -> None:
        """Load the table if it is not, and check that the slot goes on where the table is."""
        applied = self.target.applied_lsn
        if not applied:
            self._load()
            return
        state = self.slot.state()
        again = "load the table again, with --load-again"
        if state is None:
            raise ValidationError(
                f"the replication slot {self.slot.name} is gone, and with it the changes after "
                f"{lsn_text(applied)}: {again}"
            )
        if state.confirmed > applied:
            raise ValidationError(
                f"the slot {self.slot.name} is at {lsn_text(state.confirmed)} and the table at "
                f"{lsn_text(applied)}: the changes between are gone; {again}"
            )
        if flushed_lsn(self.connection) < applied:
            raise ValidationError(
                f"the server's log ends at {lsn_text(flushed_lsn(self.connection))}, before the "
                f"table's {lsn_text(applied)}, as after a restore from a backup: {again}"
            )
        self.slot.advance(applied)

    def drain(self) -> None:
        """Take over what is committed by now, a batch a commit.

        Raises:
            ValidationError: the table cannot follow; what was taken over before stays.
        """
        self.target.table.refresh()
        known, until = self.target.known_source, flushed_lsn(self.connection)
        # Looked at behind the log's end: so it is not older than what the log tells.
        now, is_settled = self._current_source(), True
        if known.with_source(now) != known:
            before, until = now, flushed_now(self.connection)
            now = self._current_source()
            is_settled = now == before
        if reasons := silent_changes(known, now):
            self._drain_and_compare(known, reasons)
            return
        history = self._history(known, now)
        while True:
            started = time.perf_counter()
            applied = self.target.applied_lsn
            plan = self.target.plan(self.types)
            batch = self._batch(history, plan, applied, until, self.settings.batch_rows)
            if not batch.end_lsn:
                break
            self.target.apply(batch, plan, history.known)
            self._advance(batch, batch.end_lsn, started)
        if is_settled and known.with_source(now) != self.target.known_source:
            columns = _columns_of(now, history, plan)
            self.target.settle(columns, plan, history.known.with_source(now), until)
            self.slot.advance(until)
        self._note(until)

    # -- load ------------------------------------------------------------------------------------

    def _load(self) -> None:
        started = time.perf_counter()
        for left in reversed(range(LOADS)):
            try:
                start = self._load_table()
                break
            except ConflictError:
                self.slot.drop()
                if not left:
                    raise
            except BaseException:
                self.slot.drop()
                raise
        self._tell(
            step="load",
            rows=self.target.table.refresh().count(),
            transactions=0,
            lsn=start,
            lag_seconds=None,
            started=started,
        )

    def _load_table(self) -> int:
        with self._fix(self._new_slot) as fixed:
            check_source(fixed.source, self.settings.publication)
            columns = kept_columns(fixed.source, self.target.table.metadata.schema, self.types)
            self.target.load(
                columns,
                fixed.start,
                lambda fields: KnownSource.of(fixed.source, fields),
                lambda: self._rows(fixed, columns).frame(self.target.table.spark),
            )
            return fixed.start

    def _new_slot(self) -> NewSlot:
        # A slot that is there was made by a run that died before its rows were in the table.
        self.slot.drop()
        return self.slot.create(self.settings.dsn)

    def _fix(self, make: Callable[[], NewSlot]) -> AbstractContextManager[FixedTable]:
        settings = self.settings
        return fixed_table(self.connection, settings.dsn, self.oid, settings.publication, make)

    def _rows(self, fixed: FixedTable, columns: Sequence[ValueColumn]) -> SnapshotRows:
        return SnapshotRows(
            dsn=self.settings.dsn,
            leaves=fixed.source.leaves,
            pages=fixed.pages,
            columns=columns,
            snapshot=fixed.snapshot,
        )

    # -- changes ---------------------------------------------------------------------------------

    def _drain_and_compare(self, known: KnownSource, reasons: Sequence[str]) -> None:
        """Take over changes beside which something happened that the log does not tell.

        Everything up to a moment is one commit, which is made only where the table then has the
        rows that the source has at that moment.
        """
        started, target = time.perf_counter(), self.target
        with self._fix(lambda: self.slot.make_temporary(self.settings.dsn)) as fixed:
            history, plan = self._history(known, fixed.source), target.plan(self.types)
            batch = self._batch(history, plan, target.applied_lsn, fixed.start, None)
            columns = _columns_of(fixed.source, history, plan)
            with target.table.transaction() as together:
                fields = target.apply_within(together, batch, columns, plan, fixed.start)
                theirs = self._rows(fixed, columns).frame(target.table.spark)
                target.check_rows(together, columns, theirs, reasons)
                here = replace(history.known, fields=fields).with_source(fixed.source)
                target.finish(together, here, fixed.start)
        self._advance(batch, fixed.start, started)

    def _current_source(self) -> SourceTable:
        named_oid(self.connection, self.settings.source, loaded=self.oid)
        return published_table(self.connection, self.oid, self.settings.publication)

    def _history(self, known: KnownSource, now: SourceTable) -> ColumnHistory:
        return ColumnHistory(known, now, lambda: self.slot.commits(self.settings.dsn))

    def _batch(
        self,
        history: ColumnHistory,
        plan: ColumnPlan,
        applied: int,
        until: int,
        changes: int | None,
    ) -> TransactionBatch:
        batch = TransactionBatch(
            oid=self.oid,
            keys=history.known.keys,
            applied=applied,
            read=self._reader(history, plan),
        )
        messages = self.slot.messages(self.settings.publication, until=until, changes=changes)
        with closing(messages):
            for message in messages:
                batch.take(message)
        return batch

    def _reader(self, history: ColumnHistory, plan: ColumnPlan) -> Reader:
        def read(relation: Relation, begin: Begin) -> RowLayout:
            before, now = history.known, history.now
            numbers = history.numbers(relation, begin)
            check_relation_key(relation, numbers, before, now)
            columns, places = plan.columns(relation, numbers, before=before, now=now)
            return RowLayout(columns, places, RowLoader(self.connection, columns))

        return read

    # -- figures ---------------------------------------------------------------------------------

    def _advance(self, batch: TransactionBatch, lsn: int, started: float) -> None:
        self.slot.advance(lsn)
        late = None if batch.committed_at is None else datetime.now(UTC) - batch.committed_at
        self._tell(
            step="changes",
            rows=batch.changes,
            transactions=batch.transactions,
            lsn=lsn,
            lag_seconds=None if late is None else max(late.total_seconds(), 0.0),
            started=started,
        )

    def _note(self, until: int) -> None:
        """Let the server remove log that others wrote, where it is much."""
        if until - self.target.applied_lsn >= IDLE_BYTES:
            self.target.mark(until)
            self.slot.advance(until)

    def _tell(
        self,
        *,
        step: str,
        rows: int,
        transactions: int,
        lsn: int,
        lag_seconds: float | None,
        started: float,
    ) -> None:
        self.on_progress(
            CdcProgress(
                step=step,
                rows=rows,
                transactions=transactions,
                lsn=lsn,
                lag_bytes=max(flushed_lsn(self.connection) - lsn, 0),
                lag_seconds=lag_seconds,
                seconds=time.perf_counter() - started,
            )
        )


def _columns_of(
    now: SourceTable, history: ColumnHistory, plan: ColumnPlan
) -> tuple[ValueColumn, ...]:
    """How the columns are kept that a table has now."""
    numbers = [column.number for column in now.columns]
    columns, _ = plan.columns(now.relation, numbers, before=history.known, now=now)
    return columns
