"""`apply_changes`, `upsert_stream` and `append_stream` of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike, fspath
from typing import Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from frazil.errors import CommitFailedError, ConflictError, ValidationError
from frazil.format.properties.table import RETRIES
from frazil.spark.port import SparkHandlePort, SparkPort
from frazil.spark.row_level.commands import RowCommands
from frazil.spark.row_level.options import CommitOptions, OnProgress
from frazil.spark.row_level.writes import Overwrite, Rows, owning, write_rows
from frazil.spark.upserts.apply import ApplyChangesResult, ChangeSettings, apply_batch
from frazil.spark.upserts.change_rows import Arrival, ChangeFormat, Order
from frazil.spark.upserts.choice import Mode, mode_named
from frazil.spark.upserts.formats import plain
from frazil.spark.upserts.keys import names_of_keys
from frazil.spark.upserts.once import Batch, BatchAppliedError, mark
from frazil.spark.upserts.streams import StreamWrite, Trigger
from frazil.spark.write.rows import rows_of
from frazil.spark.write.write_audit_publish import destination
from frazil.table.file_changes import FileChanges

NewColumns = Literal["fail", "add"]


class ChangeCommands(RowCommands):
    """Changes by key, from batches and streams."""

    port: SparkHandlePort

    def apply_changes(
        self,
        df: Rows,
        *,
        keys: str | Sequence[str] | None = None,
        op: str | Column | None = None,
        order_by: Order | Sequence[Order] = (),
        mode: Mode = "auto",
        format: ChangeFormat | None = None,
        on_new_columns: NewColumns | None = None,
        branch: str | None = None,
        batch: Batch | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
        on_progress: OnProgress | None = None,
    ) -> ApplyChangesResult:
        """Insert, change and delete rows by their keys, in one commit.

        Of several changes of a key the last one counts. Rows that earlier commits have for a key
        go, and the changed row comes in their place. With the mode ``equality-deletes`` the table
        is not read for it.

            table.apply_changes(df, keys="id", op="kind", order_by="sequence")

        Args:
            df: the changes, as of `append`: the table's columns, of deleted rows only the keys.
            keys: the columns that tell rows apart; the schema's identifier fields unless given.
                NULL equals NULL in them; `upsert` takes it so with ``null_keys="equal"`` only.
            op: the column that says what happened (i, u, d and their words); all rows are upserts
                unless given. Other words are `frazil.changes.plain`'s to say.
            order_by: columns that order the changes of a key: later ones have greater values.
                Changes of a key that it orders alike must be equal. `frazil.changes.ARRIVAL`: all
                changes of a key stand in one partition of the rows, in their order, as those of
                Kafka do; then no row is moved or sorted to find the last ones.
            mode: ``equality-deletes`` writes the changed keys as deletes, which reads apply;
                ``merge`` finds the rows that go by a join on keys and deletes them by position;
                ``auto`` chooses, and the snapshot's summary says why.
            format: how the changes are written down: of `frazil.changes`, in place of `op`.
            on_new_columns: ``add`` gives the table the columns that it lacks, and wider numbers, in
                the same commit, unless its property ``write.spark.auto-schema-evolution.enabled``
                is false; ``fail`` refuses them. Not given: ``add`` where the property is set to
                true.
            branch: the branch to change; `main` unless given.
            batch: what tells these changes from others: where the table has them already, nothing
                is done.

        Returns:
            What the changes came to.

        Raises:
            ValidationError: keys or order make no sense, several changes of a key are ordered
                alike and differ, or a key stands in two partitions of rows whose order is that of
                their arrival; nothing was changed.
            SchemaMismatchError: the rows do not fit; nothing was changed.
            UnsupportedError: the table cannot have equality deletes, and they were asked for.
        """
        settings = _change_settings(
            keys, op, order_by, mode, format, on_new_columns, branch, snapshot_properties, options
        )
        settings = replace(settings, on_progress=on_progress)
        return apply_batch(self.port, rows_of(self.spark, df), settings, batch)

    def upsert_stream(
        self,
        stream: DataFrame,
        *,
        checkpoint: str | PathLike[str],
        keys: str | Sequence[str] | None = None,
        op: str | Column | None = None,
        order_by: Order | Sequence[Order] = (),
        mode: Mode = "auto",
        format: ChangeFormat | None = None,
        on_new_columns: NewColumns | None = None,
        branch: str | None = None,
        trigger: Trigger = None,
        name: str | None = None,
        output_mode: str | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
    ) -> StreamingQuery:
        """Apply the changes of a stream, each micro-batch in one commit and once.

        What is applied is as of `apply_changes`. The table remembers each query's last batch in a
        property, set in the batch's own commit: a batch that Spark hands out again after a crash
        changes nothing.

            query = table.upsert_stream(events, keys="id", op="kind", order_by="sequence",
                                        checkpoint="/checkpoints/t")

        Args:
            stream: a streaming DataFrame; changes of a key must come in their order over batches.
            order_by: as of `apply_changes`; `frazil.changes.ARRIVAL` for a topic of Kafka, which
                keeps a key in one partition.
            checkpoint: the folder of the query's checkpoint: of this query alone.
            trigger: when a batch begins: as ``10 seconds``, or as ``{"availableNow": True}``; as
                soon as the last one has ended unless given.
            name: the query's name for Spark.
            output_mode: Spark's, as ``update`` for aggregates by the keys.

        Returns:
            Spark's running query; this handle shows its commits after `refresh()`.

        Raises:
            ValidationError: the rows are no stream, or the arguments make no sense.
            UnsupportedError: over Spark Connect.
        """
        settings = _change_settings(
            keys, op, order_by, mode, format, on_new_columns, branch, snapshot_properties, options
        )
        own = self.port.of_another_thread()
        write = StreamWrite(
            checkpoint=fspath(checkpoint),
            trigger=trigger,
            name=name,
            output_mode=output_mode,
            take=lambda df, batch: apply_batch(own, df, settings, batch),
        )
        return write.start(stream, self.spark, self.io)

    def append_stream(
        self,
        stream: DataFrame,
        *,
        checkpoint: str | PathLike[str],
        branch: str | None = None,
        trigger: Trigger = None,
        name: str | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
    ) -> StreamingQuery:
        """Append the rows of a stream, each micro-batch in one commit and once.

        Args:
            stream: a streaming DataFrame with the table's columns.
            checkpoint: the folder of the query's checkpoint: of this query alone.
            trigger: as of `upsert_stream`.
            name: the query's name for Spark.

        Returns:
            Spark's running query; this handle shows its commits after `refresh()`.

        Raises:
            ValidationError: the rows are no stream.
            UnsupportedError: over Spark Connect.
        """
        own = self.port.of_another_thread()

        def take(df: DataFrame, batch: Batch) -> None:
            append_batch(
                own,
                df,
                batch,
                branch=branch,
                snapshot_properties=snapshot_properties,
                options=options,
            )

        write = StreamWrite(checkpoint=fspath(checkpoint), trigger=trigger, name=name, take=take)
        return write.start(stream, self.spark, self.io)


def append_batch(
    port: SparkPort,
    df: DataFrame,
    batch: Batch,
    *,
    branch: str | None = None,
    snapshot_properties: Mapping[str, str] | None = None,
    options: Mapping[str, str] | None = None,
) -> None:
    """Append a batch's rows in one commit, unless the table has the batch already.

    Raises:
        ConflictError, CommitFailedError: other writers kept being first.
    """
    for left in reversed(range(1 + RETRIES.of(port.metadata.properties))):
        try:
            with port.together() as together:
                together.run(mark(batch))
                base = together.metadata
                target = destination(port.spark, base, branch)
                together.head(target, base)
                properties = {**(snapshot_properties or {}), **batch.summary}
                settings = together.settings(base, target, properties)
                files = write_rows(together, base, df, CommitOptions(options=options))
                if files:
                    FileChanges(together).fast_append(files, **owning(settings, files))
            return
        except BatchAppliedError:
            return
        except (ConflictError, CommitFailedError):
            if not left:
                raise


def replace_rows(
    port: SparkPort,
    df: Rows,
    *,
    batch: Batch,
    snapshot_properties: Mapping[str, str] | None = None,
) -> None:
    """Put rows in place of all rows, as a batch.

    Raises:
        BatchAppliedError: the table has the batch already.
    """
    rows = rows_of(port.spark, df)
    with port.together() as together:
        together.run(mark(batch))
        properties = {**(snapshot_properties or {}), **batch.summary}
        Overwrite(rows=rows, options=CommitOptions(snapshot_properties=properties)).run(together)


def _change_settings(
    keys: str | Sequence[str] | None,
    op: str | Column | None,
    order_by: Order | Sequence[Order],
    mode: Mode,
    format: ChangeFormat | None,
    on_new_columns: NewColumns | None,
    branch: str | None,
    snapshot_properties: Mapping[str, str] | None,
    options: Mapping[str, str] | None,
) -> ChangeSettings:
    if format is not None and op is not None:
        raise ValidationError("give either op or a format of frazil.changes, which says its own op")
    if format is not None and not isinstance(format, ChangeFormat):
        raise ValidationError(
            f"format is one of frazil.changes, as frazil.changes.change_feed(), not {format!r}"
        )
    if on_new_columns not in (None, "fail", "add"):
        raise ValidationError(f"on_new_columns is 'fail' or 'add', not {on_new_columns!r}")
    order = (order_by,) if isinstance(order_by, Order) else tuple(order_by)
    if not all(isinstance(each, Order) for each in order):
        raise ValidationError(f"order_by is columns or their names, not {order_by!r}")
    if len(order) > 1 and any(isinstance(each, Arrival) for each in order):
        raise ValidationError(
            "ARRIVAL is the whole order of the changes of a key; give either it or columns"
        )
    return ChangeSettings(
        keys=names_of_keys(keys),
        format=format if format is not None else plain(op),
        order_by=order,
        mode=mode_named(mode),
        adds_columns=None if on_new_columns is None else on_new_columns == "add",
        branch=branch,
        snapshot_properties=dict(snapshot_properties or {}),
        options=options,
    )
