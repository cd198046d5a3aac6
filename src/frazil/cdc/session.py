"""One connection's work on a table that is followed: the load, and batches of transactions."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import polars as pl
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from frazil.cdc.batches import GONE, ORDER, Key, TransactionBatch
from frazil.cdc.catalog import SourceTable, Types, columns_of, leaves_of
from frazil.cdc.columns import columns_of_relation, evolved_fields, kept_columns
from frazil.cdc.connections import Connection
from frazil.cdc.initial import initial_rows
from frazil.cdc.pgoutput import Relation
from frazil.cdc.positions import lsn_text
from frazil.cdc.settings import CdcProgress, CdcSettings
from frazil.cdc.slots import Slot, flushed
from frazil.cdc.values import RowLoader, ValueColumn, arrays_of
from frazil.errors import (
    ValidationError,
)
from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.format.properties.table import SCHEMA_EVOLUTION
from frazil.spark.table import Table
from frazil.spark.upserts.commands import replace_rows
from frazil.spark.upserts.once import Batch, BatchAppliedError, mark

LSN: Final = "frazil.cdc.lsn"
"""In the summaries of snapshots: the position in the log that the snapshot is of."""

IDLE_BYTES: Final = 16 * 1024 * 1024
"""Where others have written so much since, the table and the slot take note without changes."""


@dataclass(slots=True, kw_only=True)
class FollowSession:
    """One connection's work."""

    connection: Connection
    slot: Slot
    types: Types
    source: SourceTable
    table: Table
    query: str
    settings: CdcSettings
    on_progress: Callable[[CdcProgress], None]

    def __enter__(self) -> FollowSession:
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
            replace_rows(
                self.table.port,
                rows,
                batch=Batch(self.query, lsn),
                snapshot_properties={LSN: lsn_text(lsn)},
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
            self.table.port.run(mark(batch))
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
