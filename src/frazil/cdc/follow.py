"""Following a table of PostgreSQL: all rows of a snapshot first, then every transaction.

The table of Iceberg says how far it is: the position in PostgreSQL's log is the number of its last
batch, set in the commit of the batch itself. The slot is moved after that. So whatever is killed,
the next run goes on behind the last commit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Event
from typing import Any, Final

import polars as pl
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from frazil.catalog.identifiers import parse_table_identifier
from frazil.cdc.batches import GONE, ORDER, Key, TransactionBatch
from frazil.cdc.catalog import SourceTable, Types, columns_of, leaves_of, source_table
from frazil.cdc.columns import columns_of_relation, evolved_fields, kept_columns, new_schema
from frazil.cdc.connections import Connection, Dsn
from frazil.cdc.initial import initial_rows
from frazil.cdc.pgoutput import Relation
from frazil.cdc.positions import lsn_text
from frazil.cdc.slots import Slot, check_server, flushed
from frazil.cdc.values import RowLoader, ValueColumn, arrays_of
from frazil.errors import (
    CommitFailedError,
    ConfigurationError,
    StorageError,
    ValidationError,
)
from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.format.table_properties import SCHEMA_EVOLUTION
from frazil.spark.lake import Lake
from frazil.spark.table import Table
from frazil.spark.upserts.once import Batch, BatchAppliedError, mark

LSN: Final = "frazil.cdc.lsn"
"""In the summaries of snapshots: the position in the log that the snapshot is of."""

IDLE_BYTES: Final = 16 * 1024 * 1024
"""Where others have written so much since, the table and the slot take note without changes."""

RETRY_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CdcSettings:
    """What is followed, and how.

    Attributes:
        dsn: of the server and database.
        source: the table, ``schema.table``.
        slot: the replication slot.
        publication: the publication, which is made if there is none.
        batch_rows: a batch ends with the transaction that reaches so many changes.
        partition_by: of a table that is made.
        loads_again: all rows are put in place of those that the table has.
    """

    dsn: Dsn
    source: str
    slot: str
    publication: str
    batch_rows: int = 100_000
    partition_by: tuple[str, ...] = ()
    loads_again: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CdcProgress:
    """What a step came to.

    Attributes:
        step: ``load`` or ``changes``.
        rows: that came or went.
        transactions: that they are of.
        lsn: the position that the table is at.
        lag_bytes: of log behind it.
        lag_seconds: since the last transaction was committed; None of a load.
        seconds: that the step took.
    """

    step: str
    rows: int
    transactions: int
    lsn: int
    lag_bytes: int
    lag_seconds: float | None
    seconds: float

    def __str__(self) -> str:
        rate = self.rows / self.seconds if self.seconds > 0 else 0
        what = (
            f"loaded {self.rows:,} rows"
            if self.step == "load"
            else f"{self.rows:,} changes of {self.transactions:,} transactions"
        )
        late = "" if self.lag_seconds is None else f" and {self.lag_seconds:.1f} s"
        return (
            f"{what} in {self.seconds:.1f} s ({rate:,.0f} a second), at {lsn_text(self.lsn)}, "
            f"{self.lag_bytes:,} bytes{late} behind"
        )


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
                table = self.lake.load_table(self.name)
                table.remove_properties(Batch(query, 0).property_name)
            return slot.drop()

    # -- begin -----------------------------------------------------------------------------------

    def _session(self) -> _Session:
        settings = self.settings
        connection = settings.dsn.connect()
        try:
            return self._opened(connection)
        except BaseException:
            connection.close()
            raise

    def _opened(self, connection: Connection) -> _Session:
        settings = self.settings
        query = _query(check_server(connection), settings.slot)
        slot = Slot(connection, settings.slot)
        slot.lock()
        types = Types(connection)
        source = source_table(connection, settings.source, settings.publication, types)
        table = self._table(slot, source, Batch(query, 0))
        session = _Session(
            connection=connection,
            slot=slot,
            types=types,
            source=source,
            table=table,
            query=query,
            settings=settings,
            on_progress=self.on_progress,
        )
        if settings.loads_again and not self._is_reloaded:
            table.set_properties({Batch(query, 0).property_name: "0"})
        self._is_reloaded = True
        session.begin()
        return session

    def _table(self, slot: Slot, source: SourceTable, none: Batch) -> Table:
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
                new_schema(source),
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


@dataclass(slots=True, kw_only=True)
class _Session:
    """One connection's work."""

    connection: Connection
    slot: Slot
    types: Types
    source: SourceTable
    table: Table
    query: str
    settings: CdcSettings
    on_progress: Callable[[CdcProgress], None]

    def __enter__(self) -> _Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    @property
    def applied(self) -> int:
        """The position that the table is at; 0 before it was loaded."""
        name = Batch(self.query, 0).property_name
        text = self.table.refresh().metadata.properties.get(name, "0")
        if not text.isdigit():
            raise ValidationError(f"the table's property {name} is {text!r}, no position")
        return int(text)

    def begin(self) -> None:
        """Load the table if it is not, and check that the slot goes on where the table is."""
        applied = self.applied
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
        if flushed(self.connection) < applied:
            raise ValidationError(
                f"the server's log ends at {lsn_text(flushed(self.connection))}, before the "
                f"table's {lsn_text(applied)}, as after a restore from a backup: {again}"
            )
        self.slot.advance(applied)

    def drain(self) -> None:
        """Take over what is committed by now, a batch a commit."""
        until = flushed(self.connection)
        while True:
            started = time.perf_counter()
            batch = self._batch(until)
            if not batch.end_lsn:
                self._note(until)
                return
            self._apply(batch)
            self.slot.advance(batch.end_lsn)
            now = datetime.now(UTC)
            late = None if batch.committed_at is None else now - batch.committed_at
            self._tell(
                step="changes",
                rows=batch.changes,
                transactions=batch.transactions,
                lsn=batch.end_lsn,
                lag_seconds=None if late is None else max(late.total_seconds(), 0.0),
                started=started,
            )

    # -- load ------------------------------------------------------------------------------------

    def _load(self) -> None:
        started = time.perf_counter()
        # A slot that is there was made by a run that died before its rows were in the table.
        self.slot.drop()
        made = self.slot.create(self.settings.dsn)
        try:
            columns = kept_columns(self.source.columns, self.table.metadata.schema)
            self._evolve(columns)
            rows = initial_rows(
                self.table.spark,
                self.settings.dsn,
                leaves_of(self.connection, self.source),
                columns,
                made.snapshot,
            )
            self._replace(rows, made.start)
        except BaseException:
            made.holder.close()
            self.slot.drop()
            raise
        made.holder.close()
        self.table.refresh()
        self._tell(
            step="load",
            rows=self.table.count(),
            transactions=0,
            lsn=made.start,
            lag_seconds=None,
            started=started,
        )

    def _replace(self, rows: Any, lsn: int) -> None:
        try:
            self.table._replace_rows(
                rows, batch=Batch(self.query, lsn), snapshot_properties={LSN: lsn_text(lsn)}
            )
        except PySparkException as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            told = [line for line in lines if line.startswith("frazil.errors.")] or lines[:1]
            reason = self.settings.dsn.without_password(told[-1].partition(": ")[2] or told[-1])
            raise ValidationError(f"the rows could not be loaded: {reason}") from None

    # -- changes ---------------------------------------------------------------------------------

    def _batch(self, until: int) -> TransactionBatch:
        batch = TransactionBatch(
            oid=self.source.oid,
            keys=self.source.keys,
            has_old_rows=self.source.identity == "f",
            applied=self.applied,
            read=self._read,
        )
        messages = self.slot.messages(
            self.settings.publication, until=until, changes=self.settings.batch_rows
        )
        for message in messages:
            batch.take(message)
        return batch

    def _read(self, relation: Relation) -> tuple[Sequence[ValueColumn], RowLoader]:
        metadata = self.table.metadata
        columns = columns_of_relation(
            relation,
            source=self.source,
            now=columns_of(self.connection, self.source.oid, self.types),
            schema=metadata.schema,
            types=self.types,
            adds_columns=SCHEMA_EVOLUTION.of(metadata.properties),
        )
        return columns, RowLoader(self.connection, columns)

    def _apply(self, batch: TransactionBatch) -> None:
        mine = Batch(self.query, batch.end_lsn)
        rows = batch.table(self._rows_of)
        if rows is not None:
            self._evolve(batch.columns)
        if batch.is_truncated:
            try:
                self._replace(self._remaining(rows), batch.end_lsn)
            except BatchAppliedError:
                return
        elif rows is None:
            self._mark(mine)
        else:
            self.table.apply_changes(
                rows,
                keys=self.source.keys,
                op=GONE,
                order_by=ORDER,
                batch=mine,
                snapshot_properties={LSN: lsn_text(batch.end_lsn)},
            )

    def _remaining(self, rows: pa.Table | None) -> Any:
        """What is left of changes of an empty table."""
        if rows is None:
            return self.table.to_df().limit(0)
        frame = pl.DataFrame(pl.from_arrow(rows))
        last = frame.sort(ORDER).unique(subset=list(self.source.keys), keep="last")
        return last.filter(pl.col(GONE) == "u").drop(GONE, ORDER)

    def _rows_of(self, keys: Sequence[Key]) -> Mapping[Key, Mapping[str, Any]]:
        """The rows that the table has for keys."""
        names = self.source.keys
        kinds = {
            column.name: column
            for column in kept_columns(self.source.columns, self.table.metadata.schema)
        }
        wanted = [kinds[name] for name in names]
        sought = [f"_frazil_key_{number}" for number in range(len(names))]
        asked = self.table.spark.createDataFrame(
            pa.Table.from_arrays(arrays_of(keys, wanted), names=sought)
        )
        rows = self.table.refresh().to_df()
        same = [
            rows[quote_name_always([name])] == asked[each]
            for name, each in zip(names, sought, strict=True)
        ]
        found = rows.join(F.broadcast(asked), on=same, how="left_semi").toArrow().to_pylist()
        return {tuple(row[name] for name in names): row for row in found}

    def _evolve(self, columns: Sequence[ValueColumn]) -> None:
        """Give the table the columns and the wider types that it lacks."""
        schema = self.table.metadata.schema
        change = self.table.update_schema(case_sensitive=False)
        with change:
            change.union_by_name(evolved_fields(columns, schema))

    def _note(self, until: int) -> None:
        """Let the server remove log that others wrote, where it is much."""
        if until - self.applied >= IDLE_BYTES:
            self._mark(Batch(self.query, until))
            self.slot.advance(until)

    def _mark(self, batch: Batch) -> None:
        try:
            self.table._run(mark(batch))
        except BatchAppliedError:
            return

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
                lag_bytes=max(flushed(self.connection) - lsn, 0),
                lag_seconds=lag_seconds,
                seconds=time.perf_counter() - started,
            )
        )
