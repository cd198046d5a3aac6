"""Metadata tables whose manifests are decoded on the executors, file by file.

Tasks name manifests; what a worker needs to open them travels with the Python function, so that
no credential is in a plan, a row or a log.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as S

from frazil.format import types as I
from frazil.format.manifests import ManifestContent, ManifestFile
from frazil.format.snapshots import Snapshot
from frazil.format.snapshots.json_form import stored_id
from frazil.planning.cache import ManifestCache
from frazil.planning.load import listed_manifests
from frazil.spark.metadata_frames.entry_rows import EntryTable, batches_of, entry_rows
from frazil.spark.metadata_frames.shape import spark_schema
from frazil.spark.session import costs
from frazil.spark.session.facts import shuffle_partitions, spread_over_tasks
from frazil.spark.session.tasks import map_batches
from frazil.spark.types import SparkTypeSupport
from frazil.storage.files import FileIO
from frazil.table.inspect.files import EntryTables
from frazil.table.inspect.manifests import ManifestTables

_TASK: Final[dict[str, tuple[pa.DataType, S.DataType]]] = {
    "manifest_path": (pa.string(), S.StringType()),
    "manifest_length": (pa.int64(), S.LongType()),
    "partition_spec_id": (pa.int32(), S.IntegerType()),
    "content": (pa.int32(), S.IntegerType()),
    "sequence_number": (pa.int64(), S.LongType()),
    "added_snapshot_id": (pa.int64(), S.LongType()),
    "first_row_id": (pa.int64(), S.LongType()),
}
TASK_ARROW: Final = pa.schema([(name, types[0]) for name, types in _TASK.items()])
_TASK_SPARK: Final = S.StructType([S.StructField(n, types[1]) for n, types in _TASK.items()])
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
    return size <= costs.DECODED_BYTES and len(manifests) <= costs.DECODED_MANIFESTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Where metadata tables are read by executors.

    Attributes:
        io: the table's files; sent to the workers.
    """

    spark: SparkSession
    io: FileIO
    support: SparkTypeSupport

    def tasks(self, manifests: Sequence[ManifestFile]) -> DataFrame:
        """A row a manifest."""
        table = pa.Table.from_pylist([stated_manifest(m) for m in manifests], TASK_ARROW)
        return spread_over_tasks(self.spark.createDataFrame(table, _TASK_SPARK), len(manifests))

    def tasks_of_snapshots(
        self, snapshots: Sequence[Snapshot], contents: frozenset[ManifestContent]
    ) -> DataFrame:
        """A row a manifest that some of the snapshots have; their lists are read by executors."""
        lists = self._snapshots(snapshots)
        found = map_batches(lists, _ListReader(self.io, contents), _TASK_SPARK)
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
        reader = _ManifestReader(self.io, tables, columns, self.support)
        return map_batches(self._snapshots(snapshots), reader, spark_schema(columns, self.support))

    def _snapshots(self, snapshots: Sequence[Snapshot]) -> DataFrame:
        told = (replace(one, snapshot_id=stored_id(one.snapshot_id)) for one in snapshots)
        rows = [{name: getattr(one, name) for name in _SNAPSHOT_ARROW.names} for one in told]
        table = pa.Table.from_pylist(rows, _SNAPSHOT_ARROW)
        return spread_over_tasks(self.spark.createDataFrame(table), len(snapshots))


@dataclass(frozen=True, slots=True)
class _ListReader:
    """Snapshots to manifests of some kinds, in a Python worker."""

    io: FileIO
    contents: frozenset[ManifestContent]

    def __call__(self, tasks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in tasks:
            for task in batch.to_pylist():
                found = listed_manifests(self.io, Snapshot(**task), cache=ManifestCache(0))
                some = [manifest for manifest in found if manifest.content in self.contents]
                yield pa.RecordBatch.from_pylist([stated_manifest(m) for m in some], TASK_ARROW)


@dataclass(frozen=True, slots=True)
class _ManifestReader:
    """Snapshots to rows of `all_manifests`, in a Python worker."""

    io: FileIO
    tables: ManifestTables
    columns: I.StructType
    support: SparkTypeSupport

    def __call__(self, tasks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in tasks:
            for task in batch.to_pylist():
                found = listed_manifests(self.io, Snapshot(**task), cache=ManifestCache(0))
                frame = self.tables.all_manifests([(task["snapshot_id"], one) for one in found])
                yield from batches_of(frame, self.columns, self.support)


def stated_manifest(manifest: ManifestFile) -> dict[str, object]:
    """Return what a task is told of a manifest; `manifest_of_task` takes it back."""
    return {
        name: int(manifest.content) if name == "content" else getattr(manifest, name)
        for name in _TASK
    }
