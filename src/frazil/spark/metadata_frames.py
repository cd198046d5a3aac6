"""The metadata tables as Spark DataFrames, with the Java runtime's names, columns and types."""

from __future__ import annotations

from datetime import datetime

import polars as pl
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from frazil.format.snapshots import Snapshot
from frazil.table.handle import TableHandle


class MetadataFrames(TableHandle):
    """What a table knows of itself: `history`, `snapshots`, `files` and the others.

    Tables about files show the current snapshot, or the one that ``snapshot_id``, ``as_of`` or
    ``ref`` says; those named ``all_…`` show every snapshot that is kept.
    """

    @property
    def spark(self) -> SparkSession:
        """The session that the DataFrames belong to."""
        raise NotImplementedError

    def history(self) -> DataFrame:
        """made_current_at, snapshot_id, parent_id, is_current_ancestor."""
        return _to_spark(self.spark, self.inspect.history())

    def metadata_log_entries(self) -> DataFrame:
        """timestamp, file, latest_snapshot_id, latest_schema_id, latest_sequence_number."""
        return _to_spark(self.spark, self.inspect.metadata_log_entries())

    def snapshots(self) -> DataFrame:
        """committed_at, snapshot_id, parent_id, operation, manifest_list, summary."""
        return _to_spark(self.spark, self.inspect.snapshots())

    def refs(self) -> DataFrame:
        """name, type, snapshot_id, max_reference_age_in_ms, min_snapshots_to_keep, …"""
        return _to_spark(self.spark, self.inspect.refs())

    def manifests(
        self,
        *,
        snapshot_id: int | None = None,
        as_of: int | str | datetime | None = None,
        ref: str | None = None,
    ) -> DataFrame:
        """The manifests of a snapshot, with counts and partition summaries."""
        snapshot = self._chosen(snapshot_id, as_of, ref)
        return _to_spark(self.spark, self.inspect.manifests(snapshot))

    def entries(
        self,
        *,
        snapshot_id: int | None = None,
        as_of: int | str | datetime | None = None,
        ref: str | None = None,
    ) -> DataFrame:
        """The manifest entries of a snapshot, those of removed files too."""
        snapshot = self._chosen(snapshot_id, as_of, ref)
        return _to_spark(self.spark, self.inspect.entries(snapshot))

    def files(
        self,
        *,
        snapshot_id: int | None = None,
        as_of: int | str | datetime | None = None,
        ref: str | None = None,
    ) -> DataFrame:
        """Data and delete files of a snapshot, with their metrics."""
        return _to_spark(self.spark, self.inspect.files(self._chosen(snapshot_id, as_of, ref)))

    def data_files(
        self,
        *,
        snapshot_id: int | None = None,
        as_of: int | str | datetime | None = None,
        ref: str | None = None,
    ) -> DataFrame:
        """Data files of a snapshot, with their metrics."""
        snapshot = self._chosen(snapshot_id, as_of, ref)
        return _to_spark(self.spark, self.inspect.data_files(snapshot))

    def delete_files(
        self,
        *,
        snapshot_id: int | None = None,
        as_of: int | str | datetime | None = None,
        ref: str | None = None,
    ) -> DataFrame:
        """Delete files and deletion vectors of a snapshot, with their metrics."""
        snapshot = self._chosen(snapshot_id, as_of, ref)
        return _to_spark(self.spark, self.inspect.delete_files(snapshot))

    def partitions(
        self,
        *,
        snapshot_id: int | None = None,
        as_of: int | str | datetime | None = None,
        ref: str | None = None,
    ) -> DataFrame:
        """What each partition of a snapshot holds: rows, files, bytes, deletes."""
        snapshot = self._chosen(snapshot_id, as_of, ref)
        return _to_spark(self.spark, self.inspect.partitions(snapshot))

    def all_manifests(self) -> DataFrame:
        """The manifests of every snapshot, with the snapshot that refers to them."""
        return _to_spark(self.spark, self.inspect.all_manifests())

    def all_entries(self) -> DataFrame:
        """The entries of every manifest that some snapshot has."""
        return _to_spark(self.spark, self.inspect.all_entries())

    def all_files(self) -> DataFrame:
        """Data and delete files of every snapshot; a file may come more than once."""
        return _to_spark(self.spark, self.inspect.all_files())

    def all_data_files(self) -> DataFrame:
        """Data files of every snapshot; a file may come more than once."""
        return _to_spark(self.spark, self.inspect.all_data_files())

    def all_delete_files(self) -> DataFrame:
        """Delete files of every snapshot; a file may come more than once."""
        return _to_spark(self.spark, self.inspect.all_delete_files())

    def _chosen(
        self, snapshot_id: int | None, as_of: int | str | datetime | None, ref: str | None
    ) -> Snapshot | None:
        return self.snapshot(snapshot_id, as_of=as_of, ref=ref)


def _to_spark(spark: SparkSession, frame: pl.DataFrame) -> DataFrame:
    columns = [_plain(column.to_arrow()) for column in frame.iter_columns()]
    return spark.createDataFrame(pa.table(dict(zip(frame.columns, columns, strict=True))))


def _plain(array: pa.Array) -> pa.Array:
    """The array in types that Spark takes: maps for lists of key and value, no views, µs."""
    kind = array.type
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return array.cast(pa.string())
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return array.cast(pa.binary())
    if pa.types.is_timestamp(kind):
        # Bounds of nanosecond columns lose what Spark's timestamps cannot hold.
        return array.cast(pa.timestamp("us", kind.tz), safe=False)
    if pa.types.is_struct(kind):
        parts = [_plain(part) for part in array.flatten()]
        fields = [pa.field(kind[i].name, part.type) for i, part in enumerate(parts)]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(parts, fields=fields, mask=mask)
    if pa.types.is_large_list(kind) or pa.types.is_list(kind):
        return _list(array)
    return array


def _list(array: pa.Array) -> pa.Array:
    flat = array.cast(pa.list_(array.type.value_type))
    # Arrow takes a null list from a null offset.
    lengths = flat.value_lengths().fill_null(0).to_numpy()
    ends = [0, *lengths.cumsum().tolist()]
    starts: list[int | None] = list(ends)
    if flat.null_count:
        for index, null in enumerate(flat.is_null().to_pylist()):
            if null:
                starts[index] = None
    offsets = pa.array(starts, pa.int32())
    items = flat.flatten()
    kind = items.type
    if pa.types.is_struct(kind) and [part.name for part in kind] == ["key", "value"]:
        keys, values = (_plain(part) for part in items.flatten())
        return pa.MapArray.from_arrays(offsets, keys, values)
    return pa.ListArray.from_arrays(offsets, _plain(items))
