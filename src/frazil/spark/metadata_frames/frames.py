"""MetadataFrames: the metadata tables as DataFrames of Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import polars as pl
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from frazil.format import types as I
from frazil.format.manifests import Content, ManifestContent, ManifestFile
from frazil.format.metadata import TableMetadata
from frazil.spark.abilities import HAS_ARROW_FUNCTIONS
from frazil.spark.metadata_frames.cluster import Cluster, is_planned_here, is_small
from frazil.spark.metadata_frames.entry_rows import EntryTable
from frazil.spark.metadata_frames.placed_rows import (
    PlacedRows,
    PlacedTable,
    agrees_with_list,
    counts_in_list,
)
from frazil.spark.metadata_frames.position_deletes import DeletedPositions
from frazil.spark.metadata_frames.shape import dataframe_of, spark_schema
from frazil.spark.session import costs
from frazil.spark.session.facts import prepare_session, shuffle_partitions, type_support
from frazil.spark.types import COMMENT_KEY
from frazil.storage.files import FileIO
from frazil.storage.on_driver import OnDriver
from frazil.table.inspect import schemas as columns
from frazil.table.inspect.files import EntryTables, commit_times, partitions_frame, read_all
from frazil.table.inspect.inspector import Inspector, SnapshotChoice, of_deletes
from frazil.table.inspect.manifests import ManifestTables
from frazil.table.inspect.schemas import holdings_struct, partitions_struct

_ANY = frozenset(ManifestContent)
_DATA = frozenset({ManifestContent.DATA})
_DELETES = frozenset({ManifestContent.DELETES})


class MetadataFrames(OnDriver):
    """The metadata tables of one table as DataFrames of Spark.

    Tables about files show the current snapshot, or the one that ``snapshot_id``, ``as_of`` or
    ``ref`` says; those named ``all_…`` show every snapshot that is kept. Where the manifests are
    many or large, executors decode them and nothing is collected.

    Raises:
        NoSuchSnapshotError, NoSuchRefError: there is no such snapshot.
        ValidationError: more than one is named.
    """

    def __init__(
        self, spark: SparkSession, metadata: TableMetadata, io: FileIO, inspector: Inspector
    ) -> None:
        self._spark = spark
        self._metadata = metadata
        self._io = io
        self._inspector = inspector

    def history(self) -> DataFrame:
        """made_current_at, snapshot_id, parent_id, is_current_ancestor."""
        return self._local(self._inspector.history(), columns.HISTORY)

    def metadata_log_entries(self) -> DataFrame:
        """timestamp, file, latest_snapshot_id, latest_schema_id, latest_sequence_number."""
        return self._local(self._inspector.metadata_log_entries(), columns.METADATA_LOG_ENTRIES)

    def snapshots(self) -> DataFrame:
        """committed_at, snapshot_id, parent_id, operation, manifest_list, summary."""
        return self._local(self._inspector.snapshots(), columns.SNAPSHOTS)

    def refs(self) -> DataFrame:
        """name, type, snapshot_id, max_reference_age_in_ms, min_snapshots_to_keep, …"""
        return self._local(self._inspector.refs(), columns.REFS)

    def manifests(self, **moment: Unpack[SnapshotChoice]) -> DataFrame:
        """Return the manifests of a snapshot, with counts and partition summaries."""
        return self._local(self._inspector.manifests(**moment), columns.MANIFESTS)

    def entries(self, **moment: Unpack[SnapshotChoice]) -> DataFrame:
        """Return the manifest entries of a snapshot, those of removed files too."""
        return self._of_snapshot("entries", moment, _ANY)

    def files(self, **moment: Unpack[SnapshotChoice]) -> DataFrame:
        """Data and delete files of a snapshot, with their metrics."""
        return self._of_snapshot("files", moment, _ANY)

    def data_files(self, **moment: Unpack[SnapshotChoice]) -> DataFrame:
        """Data files of a snapshot, with their metrics."""
        return self._of_snapshot("files", moment, _DATA)

    def delete_files(self, **moment: Unpack[SnapshotChoice]) -> DataFrame:
        """Delete files and deletion vectors of a snapshot, with their metrics."""
        return self._of_snapshot("files", moment, _DELETES)

    def partitions(self, **moment: Unpack[SnapshotChoice]) -> DataFrame:
        """Return what each partition of a snapshot holds: rows, files, bytes, deletes."""
        manifests = self._manifests(moment)
        tables = EntryTables.of(self._metadata)
        shown = columns.partitions_struct(tables.partition)
        if is_planned_here(manifests):
            holdings = read_all(tables.holdings, tables.no_holdings(), self._io, manifests)
            return self._local(partitions_frame(holdings, self._metadata), shown)
        return partitions_of(self._cluster, manifests, tables, self._metadata)

    def position_deletes(self, **moment: Unpack[SnapshotChoice]) -> DataFrame:
        """Every position that a delete file or a deletion vector of a snapshot deletes.

        file_path, pos, row (NULL where the file does not hold it), partition, spec_id,
        delete_file_path; from format version 3 on content_offset and content_size_in_bytes, which
        say where a deletion vector lies. Executors open the files.
        """
        manifests = of_deletes(self._manifests(moment))
        files = self._entries("files", manifests)
        counts = [manifest.added_files_count for manifest in manifests]
        counts += [manifest.existing_files_count for manifest in manifests]
        known = sum(count for count in counts if count is not None)
        most = shuffle_partitions(self._spark)
        partitions = most if None in counts else max(1, min(known, most))
        shown = columns.position_deletes_struct(
            self._metadata.schema,
            columns.partition_struct_type(self._metadata),
            self._metadata.format_version,
        )
        support = type_support(self._spark)
        deletes = DeletedPositions(
            io=self._io,
            schema=self._metadata.schema,
            support=support,
            columns=spark_schema(shown, support),
        )
        return deletes.rows(files, partitions)

    def all_manifests(self) -> DataFrame:
        """Return the manifests of every snapshot, with the snapshot that refers to them."""
        if len(self._metadata.snapshots) <= costs.LISTED_SNAPSHOTS:
            return self._local(self._inspector.all_manifests(), columns.ALL_MANIFESTS)
        tables = ManifestTables.of(self._metadata)
        return self._cluster.manifests(self._metadata.snapshots, tables, columns.ALL_MANIFESTS)

    def all_entries(self) -> DataFrame:
        """Return the entries of every manifest that some snapshot has."""
        return self._all("entries", _ANY)

    def all_files(self) -> DataFrame:
        """Data and delete files of every snapshot; a file may come more than once."""
        return self._all("files", _ANY)

    def all_data_files(self) -> DataFrame:
        """Data files of every snapshot; a file may come more than once."""
        return self._all("files", _DATA)

    def all_delete_files(self) -> DataFrame:
        """Delete files of every snapshot; a file may come more than once."""
        return self._all("files", _DELETES)

    # -- where they are read ----

    @property
    def _cluster(self) -> Cluster:
        prepare_session(self._spark)
        return Cluster(spark=self._spark, io=self._io)

    def _manifests(self, moment: SnapshotChoice) -> tuple[ManifestFile, ...]:
        return self._inspector.manifests_of(**moment)

    def _of_snapshot(
        self, table: PlacedTable, moment: SnapshotChoice, contents: frozenset[ManifestContent]
    ) -> DataFrame:
        """The rows of a table about files of one snapshot."""
        every = self._manifests(moment)
        manifests = [manifest for manifest in every if manifest.content in contents]
        counts = counts_in_list(manifests, table)
        is_listed = counts is not None and agrees_with_list(
            self._inspector.snapshot_of(**moment), every
        )
        is_many = len(manifests) > costs.ITEMS_IN_FUNCTION
        is_told = counts is not None and is_listed and HAS_ARROW_FUNCTIONS
        if counts is None or not is_told or is_many or is_small(manifests):
            return self._entries(table, manifests)
        prepare_session(self._spark)
        return PlacedRows(
            spark=self._spark,
            io=self._io,
            tables=EntryTables.of(self._metadata),
            table=table,
            columns=self._columns(table),
            support=type_support(self._spark),
        ).of(manifests, counts)

    def _all(self, table: EntryTable, contents: frozenset[ManifestContent]) -> DataFrame:
        snapshots = self._metadata.snapshots
        if len(snapshots) <= costs.LISTED_SNAPSHOTS:
            manifests = self._inspector.all_manifests_once()
            return self._entries(table, [m for m in manifests if m.content in contents])
        tasks = self._cluster.tasks_of_snapshots(snapshots, contents)
        return self._read(table, tasks)

    def _entries(self, table: EntryTable, manifests: Sequence[ManifestFile]) -> DataFrame:
        if not is_small(manifests):
            return self._read(table, self._cluster.tasks(manifests))
        tables = EntryTables.of(self._metadata)
        one, none = (
            (tables.files, tables.no_files())
            if table == "files"
            else (tables.entries, tables.no_entries())
        )
        return self._local(read_all(one, none, self._io, manifests), self._columns(table))

    def _read(self, table: EntryTable, tasks: DataFrame) -> DataFrame:
        tables = EntryTables.of(self._metadata)
        return self._cluster.entries(tasks, tables, table, self._columns(table))

    def _columns(self, table: EntryTable) -> I.StructType:
        of = columns.files_struct if table == "files" else columns.entries_struct
        return of(self._metadata.schema, columns.partition_struct_type(self._metadata))

    def _local(self, frame: pl.DataFrame, shown: I.StructType) -> DataFrame:
        return dataframe_of(self._spark, frame, shown, type_support(self._spark))


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
        _rows("record_count", Content.DATA).alias("record_count"),
        _files(Content.DATA).alias("file_count"),
        _rows("file_size_in_bytes", Content.DATA).alias("total_data_file_size_in_bytes"),
        _rows("record_count", Content.POSITION_DELETES).alias("position_delete_record_count"),
        _files(Content.POSITION_DELETES).alias("position_delete_file_count"),
        _rows("record_count", Content.EQUALITY_DELETES).alias("equality_delete_record_count"),
        _files(Content.EQUALITY_DELETES).alias("equality_delete_file_count"),
        newest.alias("newest"),
    ]
    keys = ["partition", "spec_id"] if tables.partition.fields else []
    counted = dated.groupBy(*keys).agg(*counts)
    return counted.select(
        *(_shown_column(field) for field in partitions_struct(tables.partition).fields)
    ).to(spark_schema(partitions_struct(tables.partition), cluster.support))


def _rows(name: str, content: Content) -> Column:
    """A sum over the files of one content."""
    return F.coalesce(F.sum(F.when(F.col("content") == content.value, F.col(name))), F.lit(0))


def _files(content: Content) -> Column:
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
