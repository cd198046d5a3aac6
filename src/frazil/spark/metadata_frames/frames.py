"""MetadataFrames: the metadata tables as DataFrames of Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Literal, Unpack

import polars as pl
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as S

from frazil.errors import InvalidManifestError
from frazil.format import types as I
from frazil.format.manifests import Content, ManifestContent, ManifestFile
from frazil.format.metadata import TableMetadata
from frazil.format.snapshots import Snapshot
from frazil.planning.load import of_deletes
from frazil.spark.abilities import HAS_ARROW_FUNCTIONS
from frazil.spark.metadata_frames.cluster import Cluster, is_planned_here, is_small
from frazil.spark.metadata_frames.entry_rows import (
    EntryTable,
    manifest_of_task,
    stated_manifest,
    without_comments,
)
from frazil.spark.metadata_frames.position_deletes import DeletedPositions
from frazil.spark.metadata_frames.shape import dataframe_of, record_batch, spark_schema
from frazil.spark.session import costs
from frazil.spark.session.facts import (
    has_many_cores,
    prepare_session,
    shuffle_partitions,
    type_support,
)
from frazil.spark.session.tasks import arrow_function, spread_items
from frazil.spark.types import SparkTypeSupport, named_column
from frazil.storage.files import FileIO
from frazil.storage.on_driver import OnDriver
from frazil.table.inspect import schemas as columns
from frazil.table.inspect.files import ROW, EntryTables, commit_times, partitions_frame, read_all
from frazil.table.inspect.inspector import Inspector, SnapshotChoice
from frazil.table.inspect.manifests import ManifestTables
from frazil.table.inspect.schemas import MAPPED, holdings_struct, partitions_struct, without_maps

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
        return self._local_frame(self._inspector.history(), columns.HISTORY)

    def metadata_log_entries(self) -> DataFrame:
        """timestamp, file, latest_snapshot_id, latest_schema_id, latest_sequence_number."""
        return self._local_frame(
            self._inspector.metadata_log_entries(), columns.METADATA_LOG_ENTRIES
        )

    def snapshots(self) -> DataFrame:
        """committed_at, snapshot_id, parent_id, operation, manifest_list, summary."""
        return self._local_frame(self._inspector.snapshots(), columns.SNAPSHOTS)

    def refs(self) -> DataFrame:
        """name, type, snapshot_id, max_reference_age_in_ms, min_snapshots_to_keep, …"""
        return self._local_frame(self._inspector.refs(), columns.REFS)

    def manifests(self, **moment: Unpack[SnapshotChoice]) -> DataFrame:
        """Return the manifests of a snapshot, with counts and partition summaries."""
        return self._local_frame(self._inspector.manifests(**moment), columns.MANIFESTS)

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
        if is_planned_here(manifests) or not has_many_cores(self._spark, costs.PRUNING_CORES):
            holdings = read_all(tables.holdings, tables.no_holdings(), self._io, manifests)
            return self._local_frame(partitions_frame(holdings, self._metadata), shown)
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
            return self._local_frame(self._inspector.all_manifests(), columns.ALL_MANIFESTS)
        tables = ManifestTables.of(self._metadata)
        return self._cluster.manifests(self._metadata.snapshots, tables, columns.ALL_MANIFESTS)

    def all_entries(self) -> DataFrame:
        """Return the entries of every manifest that some snapshot has."""
        return self._all_entries("entries", _ANY)

    def all_files(self) -> DataFrame:
        """Data and delete files of every snapshot; a file may come more than once."""
        return self._all_entries("files", _ANY)

    def all_data_files(self) -> DataFrame:
        """Data files of every snapshot; a file may come more than once."""
        return self._all_entries("files", _DATA)

    def all_delete_files(self) -> DataFrame:
        """Delete files of every snapshot; a file may come more than once."""
        return self._all_entries("files", _DELETES)

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
        ).rows_of(manifests, counts)

    def _all_entries(self, table: EntryTable, contents: frozenset[ManifestContent]) -> DataFrame:
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
        return self._local_frame(read_all(one, none, self._io, manifests), self._columns(table))

    def _read(self, table: EntryTable, tasks: DataFrame) -> DataFrame:
        tables = EntryTables.of(self._metadata)
        return self._cluster.entries(tasks, tables, table, self._columns(table))

    def _columns(self, table: EntryTable) -> I.StructType:
        of = columns.files_struct if table == "files" else columns.entries_struct
        return of(self._metadata.schema, columns.partition_struct_type(self._metadata))

    def _local_frame(self, frame: pl.DataFrame, shown: I.StructType) -> DataFrame:
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
    entries = F.count(F.lit(1)).alias("entries")
    # Of no files there is no row, of an unpartitioned table either.
    counted = dated.groupBy(*keys).agg(*counts, entries).where("entries > 0")
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
    return named_column(column, field)


PlacedTable = Literal["files", "entries"]

_TASK: Final = "_frazil_task"
_PLAIN: Final = "_frazil_plain"
_MAPS: Final = "_frazil_maps"
_TOTALS: Final = {
    "total-data-files": ManifestContent.DATA,
    "total-delete-files": ManifestContent.DELETES,
}
_ROW_FIELD: Final = I.NestedField(0, ROW, I.LongType(), required=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedRows:
    """The rows of a table of files or entries, of a snapshot whose manifests the driver knows.

    A row is a place, and its values are looked up where they are asked for. How many rows a
    manifest has its list says. So a count starts no Python on an executor; what is decoded there is
    the result of a function, which Spark leaves out where no column of it is asked for.

    Attributes:
        table: which of both.
        columns: of the table.
        support: the session's newer types.
    """

    spark: SparkSession
    io: FileIO
    tables: EntryTables
    table: PlacedTable
    columns: I.StructType
    support: SparkTypeSupport

    def rows_of(self, manifests: Sequence[ManifestFile], counts: Sequence[int]) -> DataFrame:
        """Its rows, as many as a manifest list says; executors decode what is asked for.

        Args:
            counts: the rows of each manifest.
        """
        known = [(task, count) for task, count in enumerate(counts) if count]
        items = pa.table(
            {
                _TASK: pa.array([task for task, _ in known], pa.int32()),
                "count": pa.array([count for _, count in known], pa.int64()),
            }
        )
        numbers = F.sequence(F.lit(0).cast("bigint"), F.col("count") - 1)
        rows = spread_items(self.spark, items).select(_TASK, F.explode(numbers).alias(ROW))
        plain = I.StructType((*without_maps(self.columns).fields, _ROW_FIELD))
        look_up = _function(self._reader("plain", plain, manifests, counts), plain, self.support)
        rows = rows.select(_TASK, look_up(F.col(_TASK), F.col(ROW)).alias(_PLAIN))
        maps = I.StructType(self.tables.maps_columns)
        look_up = _function(self._reader("maps", maps, manifests, ()), maps, self.support)
        found = rows.withColumn(_MAPS, look_up(F.col(_TASK), F.col(f"{_PLAIN}.{ROW}")))
        return found.select(*(self._column(each) for each in self.columns.fields))

    def _column(self, column: I.NestedField, inside: str = f"{_PLAIN}.") -> Column:
        if column.name == "data_file" and isinstance(column.field_type, I.StructType):
            parts = column.field_type.fields
            found = F.struct(*(self._column(part, f"{inside}data_file.") for part in parts))
        else:
            place = f"{_MAPS}." if column.name in MAPPED else inside
            # With the comments of the fields within it.
            shown = spark_schema(I.StructType((column,)), self.support).fields[0].dataType
            found = F.col(f"{place}{column.name}")
            if column.required:
                found = _never_null(found, shown)
            found = found.cast(shown)
        return named_column(found, column)

    def _reader(
        self,
        what: Literal["plain", "maps"],
        columns: I.StructType,
        manifests: Sequence[ManifestFile],
        counts: Sequence[int],
    ) -> _Reader:
        return _Reader(
            io=self.io,
            tables=self.tables,
            table=self.table,
            what=what,
            columns=columns,
            support=self.support,
            tasks=tuple(stated_manifest(manifest) for manifest in manifests),
            counts=tuple(counts),
        )


def counts_in_list(manifests: Sequence[ManifestFile], table: PlacedTable) -> list[int] | None:
    """The rows of each manifest in a table as their list states them; None where one lacks it."""
    found: list[int] = []
    for each in manifests:
        counts = [each.added_files_count, each.existing_files_count]
        if table == "entries":
            counts.append(each.deleted_files_count)
        known = [count for count in counts if count is not None and count >= 0]
        if len(known) < len(counts):
            return None
        found.append(sum(known))
    return found


def agrees_with_list(snapshot: Snapshot | None, manifests: Sequence[ManifestFile]) -> bool:
    """Whether a snapshot's own totals, where it has them, are those of its manifest list."""
    summary = {} if snapshot is None else snapshot.summary or {}
    counts = counts_in_list(manifests, "files") or [-1] * len(manifests)
    for name, content in _TOTALS.items():
        pairs = zip(manifests, counts, strict=True)
        listed = sum(count for manifest, count in pairs if manifest.content is content)
        if summary.get(name, str(listed)) != str(listed):
            return False
    return True


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Reader:
    """Places to the values of their entries, in a Python worker.

    Attributes:
        what: "plain" for the row of a table of that number in a manifest, "maps" for what is made
            of the maps of the entry of that number.
        columns: what is looked up.
        tasks: what is told of each manifest.
        counts: how many rows each must have; any without.
    """

    io: FileIO
    tables: EntryTables
    table: PlacedTable
    what: Literal["plain", "maps"]
    columns: I.StructType
    support: SparkTypeSupport
    tasks: tuple[dict[str, Any], ...] = field(repr=False)
    counts: tuple[int, ...] = field(repr=False)

    def __call__(self, tasks: pa.Array, rows: pa.Array) -> pa.Array:
        asked = pl.DataFrame({"task": pl.from_arrow(tasks), ROW: pl.from_arrow(rows)})
        asked = asked.with_row_index("nth")
        found: list[pl.DataFrame] = []
        for (task,), members in asked.group_by("task", maintain_order=True):
            values = _values_of(self, int(str(task)))
            found.append(values[members[ROW]].with_columns(members["nth"]))
        ordered = pl.concat(found).sort("nth").drop("nth") if found else self.empty_frame()
        batch = record_batch(ordered, self.columns, self.support)
        return pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema))

    def empty_frame(self) -> pl.DataFrame:
        """Values without rows."""
        if self.what == "maps":
            return self.tables.no_maps()
        tables = self.tables
        return tables.no_plain_files() if self.table == "files" else tables.no_plain_entries()

    def of_manifest(self, task: int) -> pl.DataFrame:
        """The values of all rows of a manifest."""
        manifest = manifest_of_task(self.tasks[task])
        if self.what == "maps":
            return self.tables.maps(self.io, manifest)
        read = self.tables.plain_files if self.table == "files" else self.tables.plain_entries
        found = read(self.io, manifest)
        if len(found) != self.counts[task]:
            raise InvalidManifestError(
                f"it has {len(found)} {self.table}, and the manifest list says "
                f"{self.counts[task]}: see what check() of the table says",
                file=manifest.manifest_path,
            )
        return found


@lru_cache(maxsize=1)
def _values_of(reader: _Reader, task: int) -> pl.DataFrame:
    """The values of a manifest, of which the batches of a task are parts."""
    return reader.of_manifest(task)


def _function(reader: _Reader, columns: I.StructType, support: SparkTypeSupport) -> Any:
    return arrow_function(reader, without_comments(spark_schema(columns, support)))


def _never_null(column: Column, kind: S.DataType) -> Column:
    """A column that is never null as Spark shows such ones."""
    if isinstance(kind, S.StructType):
        return F.struct(*(column.getField(each.name).alias(each.name) for each in kind.fields))
    return F.coalesce(column, F.lit("" if isinstance(kind, S.StringType) else 0).cast(kind))
