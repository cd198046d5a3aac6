"""Metadata tables whose manifests are decoded on the executors, file by file.

Tasks name manifests; what a worker needs to open them travels with the Python function, so that
no credential is in a plan, a row or a log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import polars as pl
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from frazil.format import types as I
from frazil.format.manifests import ManifestContent, ManifestFile
from frazil.format.metadata import TableMetadata
from frazil.format.metadata.partition_sources import schema_with_sources
from frazil.format.partitions.partitioning import PartitionSpec
from frazil.format.schema import Schema
from frazil.format.snapshots import Snapshot
from frazil.format.snapshots.json_form import stored_id
from frazil.planning.cache import ManifestCache
from frazil.planning.load import ManifestLoader, file_count_of, listed_manifests
from frazil.spark.metadata_frames.entry_rows import (
    TASK_ARROW,
    EntryTable,
    batches_of,
    entry_rows,
    manifest_of_task,
    stated_manifest,
)
from frazil.spark.metadata_frames.shape import spark_schema
from frazil.spark.session import costs
from frazil.spark.session.arrow_frames import arrow_of
from frazil.spark.session.facts import shuffle_partitions, type_support
from frazil.spark.session.tasks import map_items, spread_items
from frazil.spark.types import SparkTypeSupport
from frazil.storage.files import FileIO
from frazil.table.inspect.files import EntryTables
from frazil.table.inspect.manifests import ManifestTables

_SNAPSHOT_ARROW: Final = pa.schema(
    [
        ("snapshot_id", pa.int64()),
        ("sequence_number", pa.int64()),
        ("timestamp_ms", pa.int64()),
        ("manifest_list", pa.string()),
        ("manifests", pa.list_(pa.string())),
    ]
)


def is_planned_here(manifests: Sequence[ManifestFile]) -> bool:
    """Whether what planning reads of these manifests is read beside the session."""
    return sum(manifest.manifest_length for manifest in manifests) <= costs.PLANNED_BYTES


def is_small(manifests: Sequence[ManifestFile]) -> bool:
    """Whether these manifests are read beside the session."""
    size = sum(manifest.manifest_length for manifest in manifests)
    files = sum(map(file_count_of, manifests))
    return (
        size <= costs.DECODED_BYTES
        and len(manifests) <= costs.DECODED_MANIFESTS
        and files <= costs.DECODED_FILES
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Where metadata tables are read by executors.

    Attributes:
        io: the table's files; sent to the workers.
    """

    spark: SparkSession
    io: FileIO

    @property
    def support(self) -> SparkTypeSupport:
        """Which of Spark's newer types are switched on."""
        return type_support(self.spark)

    def tasks(self, manifests: Sequence[ManifestFile]) -> DataFrame:
        """A row a manifest."""
        table = pa.Table.from_pylist([stated_manifest(m) for m in manifests], TASK_ARROW)
        return spread_items(self.spark, table)

    def tasks_of_snapshots(
        self, snapshots: Sequence[Snapshot], contents: frozenset[ManifestContent]
    ) -> DataFrame:
        """A row a manifest that some of the snapshots have; their lists are read by executors."""
        lists = self._snapshots(snapshots)
        found = map_items(lists, partial(_stated_manifests, self.io, contents), TASK_ARROW)
        once = found.dropDuplicates(["manifest_path"])
        return once.repartition(shuffle_partitions(self.spark))

    def entries(
        self, tasks: DataFrame, tables: EntryTables, table: EntryTable, columns: I.StructType
    ) -> DataFrame:
        """The rows of a table of entries, given the manifests."""
        return entry_rows(tasks, self.io, tables, table, columns, self.support)

    def manifests(
        self, snapshots: Sequence[Snapshot], tables: ManifestTables, columns: I.StructType
    ) -> DataFrame:
        """The rows of `all_manifests`."""
        read = partial(_manifests, self.io, tables, columns, self.support)
        return map_items(self._snapshots(snapshots), read, spark_schema(columns, self.support))

    def made_of_entries(
        self,
        manifests: Sequence[ManifestFile],
        metadata: TableMetadata,
        make: Callable[[pl.DataFrame], pl.DataFrame],
        columns: pa.Schema,
    ) -> DataFrame:
        """What is made of the entries of each manifest; called on an executor."""
        specs = {spec.spec_id: spec for spec in metadata.partition_specs}
        read = partial(_made_of_entries, self.io, specs, schema_with_sources(metadata), make)
        return map_items(self.tasks(manifests), read, columns)

    def _snapshots(self, snapshots: Sequence[Snapshot]) -> DataFrame:
        told = (replace(one, snapshot_id=stored_id(one.snapshot_id)) for one in snapshots)
        rows = [{name: getattr(one, name) for name in _SNAPSHOT_ARROW.names} for one in told]
        table = pa.Table.from_pylist(rows, _SNAPSHOT_ARROW)
        return spread_items(self.spark, table)


def _stated_manifests(
    io: FileIO, contents: frozenset[ManifestContent], snapshot: dict[str, Any]
) -> Iterator[pa.RecordBatch]:
    found = listed_manifests(io, Snapshot(**snapshot), cache=ManifestCache(0))
    some = [stated_manifest(manifest) for manifest in found if manifest.content in contents]
    yield pa.RecordBatch.from_pylist(some, TASK_ARROW)


def _manifests(
    io: FileIO,
    tables: ManifestTables,
    columns: I.StructType,
    support: SparkTypeSupport,
    snapshot: dict[str, Any],
) -> Iterator[pa.RecordBatch]:
    found = listed_manifests(io, Snapshot(**snapshot), cache=ManifestCache(0))
    frame = tables.all_manifests([(snapshot["snapshot_id"], one) for one in found])
    yield from batches_of(frame, columns, support)


def _made_of_entries(
    io: FileIO,
    specs: Mapping[int, PartitionSpec],
    sources: Schema,
    make: Callable[[pl.DataFrame], pl.DataFrame],
    task: dict[str, Any],
) -> list[pa.RecordBatch]:
    loader = ManifestLoader(io, specs, sources, ManifestCache(0))
    [entries] = loader.entries([manifest_of_task(task)])
    found: list[pa.RecordBatch] = arrow_of(make(entries)).to_batches()
    return found
