"""`df.writeStream` into a table of a lake."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from frazil.catalog.identifiers import Identifier, shown
from frazil.errors import ConfigurationError, TableAlreadyExistsError, UnsupportedError
from frazil.format.predicates.sql.quoting import quote_name
from frazil.spark.attached.dataframes.java_options import Given, stream_choice
from frazil.spark.attached.dataframes.lake_reads import RemembersOptions, is_iceberg
from frazil.spark.attached.dataframes.table_writes import TableWrite
from frazil.spark.attached.names import SessionNames, context_of
from frazil.spark.creation import CreateTable
from frazil.spark.plans.sparks_errors import sparks_errors
from frazil.spark.row_level.options import CommitOptions
from frazil.spark.session.facts import is_connect
from frazil.spark.sql.statements.tables import format_properties
from frazil.spark.sql.statements.target import StatementTarget, target_of
from frazil.spark.stream.source.queries import check_started
from frazil.spark.table import Table
from frazil.spark.upserts.once import AppendBatch, Batch, BatchAppliedError, ReplaceRows
from frazil.spark.upserts.streams import StreamWrite, check_write_options

if TYPE_CHECKING:
    from pyspark.sql.streaming.readwriter import DataStreamWriter
else:
    DataStreamWriter = object

_CHECKPOINT: Final = "checkpointlocation"
_CHECKPOINTS: Final = "spark.sql.streaming.checkpointLocation"


class LakeStreamWriter(RemembersOptions, DataStreamWriter):
    """Spark's writer of streams, which writes tables of lakes too."""

    def begin(self, names: SessionNames, rows: DataFrame) -> None:
        """Begin to remember what is asked for."""
        self._frazil_names = names
        self._frazil_rows = rows
        self._frazil_format = None
        self._frazil_mode = "append"
        self._frazil_given = Given()
        self._frazil_terms: list[str] = []
        self._frazil_properties: dict[str, str] = {}
        self._frazil_name: str | None = None
        self._frazil_trigger: dict[str, Any] | None = None

    def outputMode(self, outputMode: str) -> LakeStreamWriter:
        """Set which rows of a batch are written."""
        self._frazil_mode = outputMode.lower()
        super().outputMode(outputMode)
        return self

    def partitionBy(self, *cols: Any) -> LakeStreamWriter:
        """Set the columns that a new table is partitioned by."""
        some = cols[0] if len(cols) == 1 and isinstance(cols[0], list | tuple) else cols
        self._frazil_terms = [quote_name([str(name)]) for name in some]
        super().partitionBy(*cols)
        return self

    def queryName(self, queryName: str) -> LakeStreamWriter:
        """Set the name of the query."""
        self._frazil_name = queryName
        super().queryName(queryName)
        return self

    def trigger(self, **trigger: Any) -> LakeStreamWriter:
        """Set when batches begin."""
        super().trigger(**trigger)
        self._frazil_trigger = trigger
        return self

    def start(
        self,
        path: str | None = None,
        format: str | None = None,
        outputMode: str | None = None,
        partitionBy: Any = None,
        queryName: str | None = None,
        **options: Any,
    ) -> StreamingQuery:
        """Start the query."""
        place = path if path is not None else options.get("path")
        place = place if place is not None else self._frazil_given.values.get("path")
        parts = self._frazil_names.parts_of(place)
        if parts is None or not is_iceberg(format or self._frazil_format):
            started = super().start(path, format, outputMode, partitionBy, queryName, **options)
            return self._frazil_checked(started)
        self._frazil_note(outputMode, partitionBy, queryName, options)
        return self._frazil_start(parts, makes=False)

    def toTable(
        self,
        tableName: str,
        format: str | None = None,
        outputMode: str | None = None,
        partitionBy: Any = None,
        queryName: str | None = None,
        **options: Any,
    ) -> StreamingQuery:
        """Start the query, into a table, which is made where it is not there."""
        parts = self._frazil_names.parts_of(tableName)
        if parts is None:
            started = super().toTable(
                tableName, format, outputMode, partitionBy, queryName, **options
            )
            return self._frazil_checked(started)
        self._frazil_properties = format_properties(format or self._frazil_format)
        self._frazil_note(outputMode, partitionBy, queryName, options)
        return self._frazil_start(parts, makes=True)

    def _frazil_note(
        self, mode: str | None, terms: Any, name: str | None, options: Mapping[str, Any]
    ) -> None:
        self.options(**options)
        if mode is not None:
            self.outputMode(mode)
        if terms is not None:
            self.partitionBy(terms)
        if name is not None:
            self.queryName(name)

    def _frazil_start(self, parts: Identifier, *, makes: bool) -> StreamingQuery:
        self._frazil_names.refuse_in_transaction("a stream")
        rows, given = self._frazil_rows, self._frazil_given.copy()
        if is_connect(rows.sparkSession):
            raise UnsupportedError(
                "over Spark Connect the server would write the batches, which has not the lake; "
                "run the stream in a session with Spark's driver beside it"
            )
        if self._frazil_mode not in ("append", "complete"):
            raise UnsupportedError(
                f"the output mode {self._frazil_mode} needs keys: use Table.upsert_stream, or "
                "append or complete"
            )
        checkpoint = given.take(_CHECKPOINT) or self._frazil_checkpoint()
        place = given.take("path")
        location = (place or given.take("location")) if makes else None
        with sparks_errors():
            # What is refused makes no table.
            stream_choice(given, output_mode=self._frazil_mode)
            target = self._frazil_target(parts, makes=makes, location=location)
            choice = stream_choice(given, branch=target.branch, output_mode=self._frazil_mode)
            assert isinstance(target.table, Table)
            port = target.table.port.of_another_thread()
            check_write_options(port, choice.options)
            make: type[AppendBatch | ReplaceRows] = (
                ReplaceRows if self._frazil_mode == "complete" else AppendBatch
            )

            def take(rows_of_batch: DataFrame, batch: Batch) -> None:
                command = make(
                    rows=rows_of_batch,
                    batch=batch,
                    options=choice.options,
                    merges_schema=choice.merges_schema,
                )
                with suppress(BatchAppliedError):
                    command.run(port)

            started = StreamWrite(
                checkpoint=checkpoint,
                trigger=self._frazil_trigger,
                name=self._frazil_name,
                output_mode=self._frazil_mode,
                take=take,
            ).start(rows, rows.sparkSession, target.table.io)
        return self._frazil_checked(started)

    def _frazil_checked(self, started: StreamingQuery) -> StreamingQuery:
        """A query whose streams of lakes have their place."""
        with sparks_errors():
            return check_started(self._frazil_rows.sparkSession, started)

    def _frazil_checkpoint(self) -> str:
        """The folder that the session's setting says."""
        root = self._frazil_rows.sparkSession.conf.get(_CHECKPOINTS, None)
        if root is None or self._frazil_name is None:
            raise ConfigurationError(
                'give the query the folder of its checkpoint: .option("checkpointLocation", folder)'
            )
        return f"{str(root).rstrip('/')}/{self._frazil_name}"

    def _frazil_target(
        self, parts: Identifier, *, makes: bool, location: str | None
    ) -> StatementTarget:
        rows = self._frazil_rows
        write = TableWrite(names=self._frazil_names, parts=parts, rows=rows)
        if not makes or write.is_there():
            return write.target()
        meant = self._frazil_names.lake_and_name(parts)
        if meant is None:
            raise UnsupportedError(f"{shown(parts)} is a table of no lake")
        context = context_of(self._frazil_names, rows.sparkSession, meant[0].name)
        with suppress(TableAlreadyExistsError):
            CreateTable(
                identifier=context.identifier(parts),
                schema=rows,
                partition_by=self._frazil_terms,
                location=location,
                properties=self._frazil_properties,
                options=CommitOptions(),
            ).run(rows.sparkSession, context.catalog)
        return target_of(context, parts)
