"""`apply_changes`, `upsert_stream` and `append_stream` of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike, fspath
from typing import TYPE_CHECKING, Unpack

from pyspark.sql import Column, DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from frazil.later import later
from frazil.spark.row_level.commands import RowCommands

if TYPE_CHECKING:
    from frazil.spark.port import SparkHandlePort
    from frazil.spark.row_level.options import WriteKwargs, write_options
    from frazil.spark.row_level.writes import Rows
    from frazil.spark.upserts.apply import ApplyChanges, NewColumns
    from frazil.spark.upserts.change_rows import ChangeFormat, Order
    from frazil.spark.upserts.choice import Mode
    from frazil.spark.upserts.once import AppendBatch, Batch
    from frazil.spark.upserts.result import ApplyChangesResult
    from frazil.spark.upserts.streams import StreamWrite, Trigger, check_write_options
else:
    write_options = later("frazil.spark.row_level.options", "write_options")
    ApplyChanges = later("frazil.spark.upserts.apply", "ApplyChanges")
    AppendBatch = later("frazil.spark.upserts.once", "AppendBatch")
    StreamWrite, check_write_options = later(
        "frazil.spark.upserts.streams", "StreamWrite", "check_write_options"
    )


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
        batch: Batch | None = None,
        **write: Unpack[WriteKwargs],
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
            batch: what tells these changes from others: where the table has them already, nothing
                is done.
            write: see `WriteKwargs`.

        Returns:
            What the changes came to.

        Raises:
            ValidationError: keys or order make no sense, several changes of a key are ordered
                alike and differ, or a key stands in two partitions of rows whose order is that of
                their arrival; nothing was changed.
            SchemaMismatchError: the rows do not fit; nothing was changed.
            UnsupportedError: the table cannot have equality deletes, and they were asked for.
        """
        return ApplyChanges(
            rows=df,
            keys=keys,
            op=op,
            order_by=order_by,
            mode=mode,
            format=format,
            on_new_columns=on_new_columns,
            batch=batch,
            options=write_options(**write),
        ).run(self.port)

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
        trigger: Trigger = None,
        name: str | None = None,
        output_mode: str | None = None,
        **write: Unpack[WriteKwargs],
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
            write: see `WriteKwargs`.

        Returns:
            Spark's running query; this handle shows its commits after `refresh()`.

        Raises:
            ValidationError: the rows are no stream, or the arguments make no sense.
            UnsupportedError: over Spark Connect.
        """
        command = ApplyChanges(
            rows=stream,
            keys=keys,
            op=op,
            order_by=order_by,
            mode=mode,
            format=format,
            on_new_columns=on_new_columns,
            options=write_options(**write),
        )
        own = self.port.of_another_thread()
        check_write_options(own, command.options)
        return StreamWrite(
            checkpoint=fspath(checkpoint),
            trigger=trigger,
            name=name,
            output_mode=output_mode,
            take=lambda df, batch: replace(command, rows=df, batch=batch).run(own),
        ).start(stream, self.spark, self.io)

    def append_stream(
        self,
        stream: DataFrame,
        *,
        checkpoint: str | PathLike[str],
        trigger: Trigger = None,
        name: str | None = None,
        **write: Unpack[WriteKwargs],
    ) -> StreamingQuery:
        """Append the rows of a stream, each micro-batch in one commit and once.

        Args:
            stream: a streaming DataFrame with the table's columns.
            checkpoint: the folder of the query's checkpoint: of this query alone.
            trigger: as of `upsert_stream`.
            name: the query's name for Spark.
            write: see `WriteKwargs`.

        Returns:
            Spark's running query; this handle shows its commits after `refresh()`.

        Raises:
            ValidationError: the rows are no stream.
            UnsupportedError: over Spark Connect.
        """
        options, own = write_options(**write), self.port.of_another_thread()
        check_write_options(own, options)
        return StreamWrite(
            checkpoint=fspath(checkpoint),
            trigger=trigger,
            name=name,
            take=lambda df, batch: AppendBatch(rows=df, batch=batch, options=options).run(own),
        ).start(stream, self.spark, self.io)
