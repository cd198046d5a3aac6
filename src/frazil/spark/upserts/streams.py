"""Streaming writes: each micro-batch of Spark's becomes one commit, and each once.

A query's id and a batch's number come from its checkpoint, so that a batch which Spark hands out
again, after a crash between the commit and the checkpoint, is known.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from frazil.errors import (
    ConfigurationError,
    InvalidFormatError,
    UnsupportedError,
    ValidationError,
)
from frazil.spark.files.parquet.locations import spark_path
from frazil.spark.port import SparkPort
from frazil.spark.row_level.options import CommitOptions
from frazil.spark.session.facts import is_connect, temporary_settings
from frazil.spark.upserts.once import Batch
from frazil.spark.write.options import write_options
from frazil.storage.files import FileIO, normalize_location
from frazil.storage.paths import join

Trigger = str | Mapping[str, Any] | None
"""When a batch begins: a text as ``10 seconds``, or Spark's keywords as
``{"availableNow": True}``; as soon as the last one has ended unless given."""

_BATCH_SETTINGS: Final[Mapping[str, str]] = {
    # Spark turns this off for the plans of a stream, which end before the batch is handed over:
    # without it a small batch is shuffled into as many tasks as a big one.
    "spark.sql.adaptive.enabled": "true",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamWrite:
    """How a stream is written.

    Attributes:
        checkpoint: the folder of the query's checkpoint.
        trigger: when batches begin.
        name: of the query, for Spark's listings.
        output_mode: Spark's, of queries that keep a state.
        take: writes a batch.
    """

    checkpoint: str
    trigger: Trigger
    name: str | None
    output_mode: str | None = None
    take: Callable[[DataFrame, Batch], object]

    def start(self, stream: DataFrame, spark: SparkSession, io: FileIO) -> StreamingQuery:
        """Start the query.

        Raises:
            ValidationError: the rows are no stream.
            ConfigurationError: the trigger is none.
            UnsupportedError: the session is one of Spark Connect.
        """
        if not isinstance(stream, DataFrame) or not stream.isStreaming:
            raise ValidationError(
                "the rows are no stream; write them with append() or apply_changes()"
            )
        if is_connect(spark):
            raise UnsupportedError(
                "over Spark Connect the server would write the batches, which has not the table; "
                "run the stream in a session with Spark's driver beside it"
            )
        folder = normalize_location(self.checkpoint)
        batches = _Batches(
            folder, FileIO(io.properties, caches=io.caches, stores=io.stores), self.take
        )
        writer = stream.writeStream.foreachBatch(batches)
        writer = writer.option("checkpointLocation", spark_path(folder, spark, io))
        if self.name is not None:
            writer = writer.queryName(self.name)
        if self.output_mode is not None:
            writer = writer.outputMode(self.output_mode)
        if self.trigger is not None:
            writer = writer.trigger(**_trigger(self.trigger))
        return writer.start()


def check_write_options(port: SparkPort, options: CommitOptions) -> None:
    """Check the write options of a stream before it starts, not in its first batch.

    Raises:
        ConfigurationError, UnsupportedError: as of `write_options`.
    """
    write_options(port.metadata, port.metadata.schema, options.options)


@dataclass(slots=True)
class _Batches:
    """Called by Spark for each batch."""

    folder: str
    io: FileIO
    take: Callable[[DataFrame, Batch], object]
    _query: str | None = None

    def __call__(self, df: DataFrame, number: int) -> None:
        if self._query is None:
            # Spark writes it before the first batch, and never again.
            self._query = query_id(self.io, self.folder)
        with temporary_settings(df.sparkSession, _BATCH_SETTINGS):
            self.take(df, Batch(self._query, number))


def query_id(io: FileIO, checkpoint: str) -> str:
    """Return the id of the query that a checkpoint is of.

    Raises:
        MissingFileError: there is no checkpoint in the folder.
        InvalidFormatError: its metadata is not Spark's.
    """
    path = join(checkpoint, "metadata")
    data = io.read(path)
    try:
        return str(json.loads(data)["id"])
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidFormatError(
            "the checkpoint's metadata has no query's id; give the folder of a query of Spark's",
            file=path,
        ) from error


def _trigger(trigger: str | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(trigger, str):
        return {"processingTime": trigger}
    known = ("processingTime", "once", "availableNow")
    if len(trigger) != 1 or not set(trigger) <= set(known):
        raise ConfigurationError(
            f"a trigger is a time as '10 seconds', or one of {', '.join(known)} with its value, "
            f"not {dict(trigger)!r}"
        )
    return dict(trigger)
