"""Manifests that hold few partitions each, so that a scan of some partitions opens few of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import SparkSession

from frazil.format.arguments import one_or_several
from frazil.format.manifests import ManifestFile
from frazil.planning.load import file_count_of
from frazil.spark.maintenance.compaction.results import ManifestsResult
from frazil.spark.metadata_frames.entry_rows import (
    TASK_ARROW,
    manifest_of_task,
    stated_manifest,
)
from frazil.spark.port import SparkPort
from frazil.spark.session import costs
from frazil.spark.session.facts import shuffle_partitions
from frazil.spark.session.tasks import map_batches, map_items, spread_items
from frazil.storage.avro.manifest_records import manifest_of, manifest_record
from frazil.table.maintenance.progress import MaintenanceProgress, OnMaintenance, tell_nobody
from frazil.table.manifests.clusters import ClusterOrder, ClusterWriter, ManifestClusters
from frazil.table.snapshots.producer import DEFAULT_OPTIONS, SnapshotOptions
from frazil.table.snapshots.rewrite_manifests import RewriteManifests

_COUNTS: Final = {
    f"{status}_{what}_count": kind
    for status in ("added", "existing", "deleted")
    for what, kind in (("files", pa.int32()), ("rows", pa.int64()))
}
_SUMMARY: Final = pa.struct(
    {
        "contains_null": pa.bool_(),
        "contains_nan": pa.bool_(),
        "lower_bound": pa.binary(),
        "upper_bound": pa.binary(),
    }
)
_TASK: Final = pa.schema(
    [*TASK_ARROW, pa.field("source", pa.int32()), pa.field("starts", pa.list_(pa.int64()))]
)
_PIECES: Final = pa.schema({"number": pa.int32(), "source": pa.int32(), "data": pa.binary()})
_WRITTEN: Final = pa.schema(
    {
        "number": pa.int32(),
        **{field.name: field.type for field in TASK_ARROW},
        "min_sequence_number": pa.int64(),
        **_COUNTS,
        "partitions": pa.list_(_SUMMARY),
    }
)


def is_rewritten_here(manifests: Sequence[ManifestFile]) -> bool:
    """Whether these manifests are rewritten beside the session."""
    size = sum(manifest.manifest_length for manifest in manifests)
    files = sum(map(file_count_of, manifests))
    return size <= costs.REWRITTEN_BYTES and files <= costs.REWRITTEN_FILES


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterManifests:
    """Rewrite manifests so that each is of the target size and holds few partitions.

    Attributes:
        spec_id: the partition spec whose manifests are rewritten; the current one unless given.
        sort_by: names of partition fields, the most important one first; all unless given.
        on_progress: called as manifests are read, where they are many, and before they are written.
        commit: where the snapshot goes, and what its summary says.
    """

    spec_id: int | None = None
    sort_by: str | Sequence[str] = ()
    on_progress: OnMaintenance | None = None
    commit: SnapshotOptions = DEFAULT_OPTIONS

    def run(self, port: SparkPort) -> ManifestsResult:
        """Run it; see `TableMaintenance.rewrite_manifests`."""
        tell = self.on_progress or tell_nobody

        def tell_of_manifests(done: int, count: int) -> None:
            tell(MaintenanceProgress("reading manifests", count, done))

        operation = RewriteManifests(
            port.io,
            spec_id=self.spec_id,
            sort_by=[str(name) for name in one_or_several(self.sort_by, argument="sort_by")],
            is_small=is_rewritten_here,
            write=partial(_write_clusters, port.spark, tell),
            on_read=tell_of_manifests,
            options=port.naming_engine(self.commit),
        )
        port.run(operation)
        tell(MaintenanceProgress("done", len(operation.added), len(operation.added)))
        if not operation.rewritten:
            return ManifestsResult()
        return ManifestsResult(
            rewritten_manifests_count=len(operation.rewritten),
            added_manifests_count=len(operation.added),
            snapshot_id=operation.snapshot_id,
        )


def _write_clusters(
    spark: SparkSession, tell: OnMaintenance, writer: ClusterWriter, clusters: ManifestClusters
) -> list[ManifestFile]:
    """Let executors read each source once, and write the new manifests of the pieces."""
    tell(MaintenanceProgress("writing manifests", len(clusters.paths)))
    cut = partial(_pieces, writer, clusters.order)
    pieces = map_items(spread_items(spark, _tasks(clusters)), cut, _PIECES)
    tasks = min(len(clusters.paths), shuffle_partitions(spark))
    together = pieces.repartition(tasks, "number")
    ordered = together.sortWithinPartitions("number", "source")
    join = partial(_join, writer, tuple(clusters.paths))
    written = map_batches(ordered, join, _WRITTEN).toArrow().to_pylist()
    written.sort(key=itemgetter("number"))
    return [manifest_of(row, file=row["manifest_path"]) for row in written]


def _tasks(clusters: ManifestClusters) -> pa.Table:
    """A row a source: what is told of it, and which of its entries go where."""
    rows = [
        {**stated_manifest(manifest), "source": number, "starts": starts}
        for number, (manifest, starts) in enumerate(
            zip(clusters.sources, clusters.starts, strict=True)
        )
    ]
    return pa.Table.from_pylist(rows, _TASK)


def _pieces(
    writer: ClusterWriter, order: ClusterOrder, task: dict[str, Any]
) -> Iterator[pa.RecordBatch]:
    """The pieces of new manifests that a source gives."""
    for number, data in writer.pieces(manifest_of_task(task), order, task["starts"]):
        piece = {"number": number, "source": task["source"], "data": data}
        yield pa.RecordBatch.from_pylist([piece], _PIECES)


def _join(
    writer: ClusterWriter, paths: Sequence[str], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """What a list says of each manifest that is written, given its pieces together."""
    every = (piece for batch in batches for piece in batch.to_pylist())
    for number, pieces in groupby(every, key=itemgetter("number")):
        written = writer.write(paths[number], [piece["data"] for piece in pieces])
        row = {"number": number, **manifest_record(written)}
        yield pa.RecordBatch.from_pylist([row], _WRITTEN)
