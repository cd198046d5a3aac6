"""Streaming reads as a method of a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike, fspath
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame

from frazil.errors import ConfigurationError, ValidationError
from frazil.format.arguments import SnapshotId, one_or_several
from frazil.later import later
from frazil.spark.session.facts import (
    is_case_sensitive,
    is_connect,
    prepare_session,
    time_zone_of,
)
from frazil.spark.stream.source.options import DEFAULT_POLL_INTERVAL, stream_options
from frazil.storage.files import FileIO
from frazil.table.handle import TableHandle
from frazil.table.time_travel import Moment

if TYPE_CHECKING:
    from frazil.format.predicates.expressions import Expression
    from frazil.format.predicates.sql.quoting import quote_name_always
    from frazil.format.schema import Schema
    from frazil.spark.changes import columns as change_columns
    from frazil.spark.conditions import condition_of
    from frazil.spark.files.parquet.access import check_lasting_access
    from frazil.spark.port import SparkHandlePort
    from frazil.spark.session.scratch import scratch_folder
    from frazil.spark.stream.source import batch_files
    from frazil.spark.stream.source.follower import Follower
    from frazil.spark.stream.source.log import StreamLog, checkpoint_folder
    from frazil.spark.stream.source.queries import watch_of
    from frazil.spark.stream.source.reader import streaming_dataframe
    from frazil.spark.stream.source.unplaced import UnplacedStream
    from frazil.storage.locations import data_location
else:
    quote_name_always = later("frazil.format.predicates.sql.quoting", "quote_name_always")
    condition_of = later("frazil.spark.conditions", "condition_of")
    check_lasting_access = later("frazil.spark.files.parquet.access", "check_lasting_access")
    scratch_folder = later("frazil.spark.session.scratch", "scratch_folder")
    change_columns = later("frazil.spark.changes.columns")
    batch_files = later("frazil.spark.stream.source.batch_files")
    Follower = later("frazil.spark.stream.source.follower", "Follower")
    StreamLog, checkpoint_folder = later(
        "frazil.spark.stream.source.log", "StreamLog", "checkpoint_folder"
    )
    watch_of = later("frazil.spark.stream.source.queries", "watch_of")
    streaming_dataframe = later("frazil.spark.stream.source.reader", "streaming_dataframe")
    UnplacedStream = later("frazil.spark.stream.source.unplaced", "UnplacedStream")
    data_location = later("frazil.storage.locations", "data_location")


class TableStreams(TableHandle):
    """A table's rows as they come."""

    port: SparkHandlePort

    def read_stream(
        self,
        *,
        checkpoint: str | PathLike[str] | None = None,
        from_snapshot_id: SnapshotId | None = None,
        from_timestamp: Moment | None = None,
        on_overwrite: str = "fail",
        on_delete: str = "fail",
        max_files_per_batch: int | None = None,
        max_bytes_per_batch: int | None = None,
        max_rows_per_batch: int | None = None,
        poll_interval: float = DEFAULT_POLL_INTERVAL,
        options: Mapping[str, str] | None = None,
        where: str | Column | Expression | None = None,
        columns: str | Sequence[str] | None = None,
        branch: str | None = None,
        changes: bool = False,
    ) -> DataFrame:
        """Return the table's rows as a streaming DataFrame, each exactly once for a checkpoint.

        A stream begins with the rows of the table as it is, or after a snapshot or a time; then
        come the rows of every snapshot that appends. Snapshots that only rewrite files are passed
        over. The schema is the table's when the stream is made: a column that is added later is
        read once the stream is made again.

        What the batches hold is kept in the folder ``frazil`` of the query's checkpoint, the one
        that the writer gets as Spark's ``checkpointLocation``. The start is of a checkpoint's first
        query alone; later ones go on. A query sees what the table has when it starts, and what is
        committed while it runs.

        With ``on_overwrite`` or ``on_delete`` ``"changes"`` rows are changes, as of `changes`:
        ``_change_type`` (INSERT, DELETE), ``_change_ordinal`` and ``_commit_snapshot_id`` stand
        beside the table's columns.

        Args:
            checkpoint: the folder of the query's checkpoint, or one inside it for each stream of a
                query that reads several. Without it, it is the checkpoint of the query that the
                frame starts; such a frame serves one running query, so read the table once for
                each. Over Spark Connect it must be given.
            from_snapshot_id: start with what came after this snapshot.
            from_timestamp: start with what came after this time: milliseconds since the epoch, ISO
                text (in the session's zone unless it names one), a datetime (local time unless it
                has a zone) or a date.
            on_overwrite: what to do with snapshots that overwrite: ``"fail"``, ``"skip"`` (none
                of their rows is read) or ``"changes"``.
            on_delete: the same for snapshots that only delete.
            max_files_per_batch: at most this many files a batch.
            max_bytes_per_batch: at most this many bytes of files a batch, but one file at least.
            max_rows_per_batch: at most this many rows a batch, but one file at least.
            poll_interval: seconds between looks at the table while a query runs.
            options: the same by the names of the Java runtime, such as
                ``streaming-max-files-per-micro-batch``.
            where: which rows, as of `scan`; what it says of single columns also leaves out files. A
                checkpoint is of one condition.
            columns: which columns in which order; those of changes always follow.
            branch: the branch to read; `main` unless given. A checkpoint is of one branch.
            changes: read all snapshots as changes: the same as ``"changes"`` for both of
                `on_overwrite` and `on_delete`.

        Raises:
            NoSuchSnapshotError: the start, or a snapshot that was not read yet, has expired.
            ValidationError: a snapshot overwrites or deletes and the stream is to fail; the
                table was rolled back; the checkpoint is of another stream.
            ConfigurationError: an option is unknown or malformed; no checkpoint is given over Spark
                Connect.
            UnsupportedError: a delete or a file that cannot be applied or read rightly.

        Examples:
            >>> trips.read_stream().writeStream.option("checkpointLocation", "/data/checkpoint")
        """
        if changes:
            if {on_overwrite, on_delete} - {"fail", "changes"}:
                raise ValidationError(
                    "changes reads snapshots that overwrite or delete too: leave out on_overwrite "
                    "and on_delete"
                )
            on_overwrite = on_delete = "changes"
        asked = stream_options(
            from_snapshot_id=from_snapshot_id,
            from_timestamp=from_timestamp,
            on_overwrite=on_overwrite,
            on_delete=on_delete,
            max_files_per_batch=max_files_per_batch,
            max_bytes_per_batch=max_bytes_per_batch,
            max_rows_per_batch=max_rows_per_batch,
            poll_interval=poll_interval,
            text_zone=self.port.text_zone,
            options=options,
        )
        folder = None if checkpoint is None else checkpoint_folder(fspath(checkpoint))
        if folder is None and is_connect(self.port.spark):
            raise ConfigurationError(
                "over Spark Connect a query does not tell its checkpoint, in which a stream keeps "
                "what its batches hold: give the reader the folder too that the writer gets "
                "(checkpoint=…, or the option checkpointLocation)"
            )
        prepare_session(self.port.spark)
        io = FileIO(self.io.properties, caches=self.io.caches, stores=self.io.stores)
        loaded = self.catalog.load_table(self.identifier)
        metadata = loaded.metadata
        check_lasting_access([data_location(metadata)], self.port.spark, loaded.io)
        condition = condition_of(
            where,
            metadata.schema,
            spark=self.port.spark,
            case_sensitive=is_case_sensitive(self.port.spark),
            time_zone=time_zone_of(self.port.spark),
        )
        if not condition.is_always_true:
            asked = replace(asked, where=condition.text, pruned_by=condition.implied)
        asked = replace(asked, branch=branch)

        def follows(log: StreamLog) -> Follower:
            return Follower(
                self.port.spark,
                self.catalog,
                self.identifier,
                metadata,
                log=log,
                log_io=io,
                options=asked,
            )

        fields = metadata.schema.fields
        chosen = self._chosen_names(columns, metadata.schema)
        if asked.reads_changes:
            for field in fields:
                if field.name.lower() in change_columns.CHANGELOG_COLUMNS:
                    raise ValidationError(
                        f"the table has a column {field.name!r}, which is the name of a column of "
                        "changes: rename it to read them"
                    )
            fields = (*fields, *batch_files.CHANGE_FIELDS)
            chosen = chosen and (*chosen, *(field.name for field in batch_files.CHANGE_FIELDS))
        if folder is None:
            shown = self._follow_at_start(io, follows)
        else:
            follower = follows(StreamLog(self.port.spark, io, folder))
            follower.catch_up()
            watch_of(self.port.spark).add(follower)
            shown = follower.log.spark_folder
        rows = streaming_dataframe(self.port.spark, shown, fields)
        if not condition.is_always_true:
            rows = condition.matching_rows(rows)
        return rows.select(*(quote_name_always([name]) for name in chosen)) if chosen else rows

    def _follow_at_start(self, io: FileIO, follows: Callable[[StreamLog], Follower]) -> str:
        """Follow the table once a query starts; return the folder that Spark follows."""
        scratch = scratch_folder(self.port.spark, self.io, self.location)
        scratch.remove_at_exit()
        stream = UnplacedStream(self.port.spark, scratch, io, follows)
        watch_of(self.port.spark).add_unplaced(stream)
        return stream.shown.spark_folder

    def _chosen_names(self, columns: str | Sequence[str] | None, schema: Schema) -> tuple[str, ...]:
        if columns is None:
            return ()
        strict = is_case_sensitive(self.port.spark)
        names = one_or_several(columns, argument="columns")
        found = [schema.find_field(name, case_sensitive=strict) for name in names]
        inner = [
            name for name, field in zip(names, found, strict=True) if field not in schema.fields
        ]
        if inner or not found:
            raise ValidationError(
                f"columns of a stream are columns of the table, not {inner}: take fields of them "
                "with select()"
            )
        return tuple(field.name for field in found)
