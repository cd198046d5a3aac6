"""`partitions` of tables whose manifests the executors decode."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.format import types as I
from frazil.format.manifests import ManifestFile
from frazil.format.metadata import TableMetadata
from frazil.spark.metadata_frames.cluster import Cluster
from frazil.spark.metadata_frames.shape import spark_schema
from frazil.spark.types import COMMENT_KEY
from frazil.table.inspect.files import EntryTables, commit_times
from frazil.table.inspect.schemas import holdings_struct, partitions_struct

_DATA, _POSITION, _EQUALITY = 0, 1, 2


def partitions_of(
    cluster: Cluster,
    manifests: Sequence[ManifestFile],
    tables: EntryTables,
    metadata: TableMetadata,
) -> DataFrame:
    """The rows that `frazil.table.inspect.files.partitions_frame` gives, counted by Spark."""
    holdings = cluster.entries(
        cluster.tasks(manifests), tables, "holdings", holdings_struct(tables.partition)
    )
    times = cluster.spark.createDataFrame(commit_times(metadata).to_arrow())
    dated = holdings.join(F.broadcast(times), "snapshot_id", "left")
    newest = F.max(
        F.when(F.col("committed_at").isNotNull(), F.struct("committed_at", "snapshot_id"))
    )
    counts = [
        _rows("record_count", _DATA).alias("record_count"),
        _files(_DATA).alias("file_count"),
        _rows("file_size_in_bytes", _DATA).alias("total_data_file_size_in_bytes"),
        _rows("record_count", _POSITION).alias("position_delete_record_count"),
        _files(_POSITION).alias("position_delete_file_count"),
        _rows("record_count", _EQUALITY).alias("equality_delete_record_count"),
        _files(_EQUALITY).alias("equality_delete_file_count"),
        newest.alias("newest"),
    ]
    keys = ["partition", "spec_id"] if tables.partition.fields else []
    counted = dated.groupBy(*keys).agg(*counts)
    return counted.select(
        *(_shown_column(field) for field in partitions_struct(tables.partition).fields)
    ).to(spark_schema(partitions_struct(tables.partition), cluster.support))


def _rows(name: str, content: int) -> Column:
    """A sum over the files of one content."""
    return F.coalesce(F.sum(F.when(F.col("content") == content, F.col(name))), F.lit(0))


def _files(content: int) -> Column:
    return _rows("file_count", content).cast("int")


def _shown_column(field: I.NestedField) -> Column:
    match field.name:
        case "last_updated_at":
            column = F.col("newest.committed_at")
        case "last_updated_snapshot_id":
            column = F.col("newest.snapshot_id")
        case _:
            column = F.col(field.name)
    metadata = {} if field.doc is None else {COMMENT_KEY: field.doc}
    return column.alias(field.name, metadata=metadata)
