"""Manifests that hold few partitions each, so that a scan of some partitions opens few of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from operator import itemgetter
from typing import TYPE_CHECKING, Final

import polars as pl
import pyarrow as pa
from pyspark.sql import SparkSession

from frazil.format.arguments import one_or_several
from frazil.format.manifests import ManifestFile
from frazil.spark.compaction.results import ManifestsResult
from frazil.spark.metadata_frames.cluster import TASK_ARROW, stated_manifest
from frazil.spark.metadata_frames.entry_rows import manifest_of_task
from frazil.spark.session import engine_summary, prepare_session
from frazil.storage.avro.manifest_records import manifest_of, manifest_record
from frazil.table.manifests.clusters import ClusterWriter, ManifestCluster
from frazil.table.snapshots.producer import snapshot_options
from frazil.table.snapshots.rewrite_manifests import RewriteManifests

if TYPE_CHECKING:
    from frazil.spark.row_level.writes import Writes

ON_DRIVER_BYTES: Final = 64 * 1024 * 1024
"""Manifests of up to this size together are rewritten beside the session, which holds all of them
unpacked meanwhile. Executors would read each as often as new manifests take entries of it."""

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
_WRITTEN: Final = pa.schema(
    {
        "number": pa.int32(),
        **{field.name: field.type for field in TASK_ARROW},
        "min_sequence_number": pa.int64(),
        **_COUNTS,
        "partitions": pa.list_(_SUMMARY),
    }
)
_SPARK_TYPES: Final = {pa.int32(): "int", pa.int64(): "bigint", pa.string(): "string"}
_WRITTEN_SPARK: Final = ", ".join(
    f"{field.name} {_SPARK_TYPES[field.type]}" for field in _WRITTEN if field.name != "partitions"
) + (
    ", partitions array<struct<contains_null: boolean, contains_nan: boolean, "
    "lower_bound: binary, upper_bound: binary>>"
)


def is_rewritten_here(manifests: Sequence[ManifestFile]) -> bool:
    """Whether these manifests are rewritten beside the session."""
    return sum(manifest.manifest_length for manifest in manifests) <= ON_DRIVER_BYTES


def rewrite_manifests(
    writes: Writes,
    *,
    spec_id: int | None,
    sort_by: str | Sequence[str],
    branch: str | None,
    snapshot_properties: Mapping[str, str] | None,
) -> ManifestsResult:
    """Rewrite manifests; see `TableMaintenance.rewrite_manifests`."""
    properties = {**engine_summary(writes.spark), **(snapshot_properties or {})}
    operation = RewriteManifests(
        writes.io,
        spec_id=spec_id,
        sort_by=[str(name) for name in one_or_several(sort_by, argument="sort_by")],
        is_small=is_rewritten_here,
        write=partial(_write_clusters, writes.spark),
        options=snapshot_options(branch=branch, snapshot_properties=properties),
    )
    writes._run(operation)
    if not operation.added:
        return ManifestsResult()
    return ManifestsResult(
        rewritten_manifests_count=len(operation.rewritten),
        added_manifests_count=len(operation.added),
        snapshot_id=operation.snapshot_id,
    )


def _write_clusters(
    spark: SparkSession, writer: ClusterWriter, clusters: Sequence[ManifestCluster]
) -> list[ManifestFile]:
    """Let executors write the new manifests, a task each."""
    prepare_session(spark)
    tasks = spark.createDataFrame(_tasks(clusters))
    spread = tasks.repartitionByRange(len(clusters), "number")
    written = spread.mapInArrow(_Writer(writer), _WRITTEN_SPARK).toArrow().to_pylist()
    written.sort(key=itemgetter("number"))
    return [manifest_of(row, file=row["manifest_path"]) for row in written]


def _tasks(clusters: Sequence[ManifestCluster]) -> pa.Table:
    """A row a cluster: its number, its path, and its sources with their rows."""
    held = [source for cluster in clusters for source in cluster.sources]
    told = pa.Table.from_pylist([stated_manifest(manifest) for manifest, _ in held], TASK_ARROW)
    rows = pl.concat([taken for _, taken in held]).cast(pl.Int32).to_arrow()
    of_source = pa.ListArray.from_arrays(_offsets([len(taken) for _, taken in held]), rows)
    columns = [column.combine_chunks() for column in told.columns]
    sources = pa.StructArray.from_arrays([*columns, of_source], [*told.column_names, "rows"])
    of_cluster = _offsets([len(cluster.sources) for cluster in clusters])
    return pa.table(
        {
            "number": pa.array(range(len(clusters)), pa.int32()),
            "path": pa.array([cluster.path for cluster in clusters], pa.string()),
            "sources": pa.ListArray.from_arrays(of_cluster, sources),
        }
    )


def _offsets(lengths: Sequence[int]) -> pa.Int32Array:
    return pa.array(list(accumulate(lengths, initial=0)), pa.int32())


@dataclass(frozen=True, slots=True)
class _Writer:
    """Clusters to what a manifest list says of their manifests, in a Python worker."""

    writer: ClusterWriter

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for task in batch.to_pylist():
                sources = tuple(
                    (manifest_of_task(each), pl.Series("row", each["rows"], pl.Int64()))
                    for each in task["sources"]
                )
                written = self.writer.write(ManifestCluster(task["path"], sources))
                row = {"number": task["number"], **manifest_record(written)}
                yield pa.RecordBatch.from_pylist([row], _WRITTEN)
