"""The files of large tables beside what metadata says, looked at by executors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl
import pyarrow as pa
from pyspark.sql import functions as F

from frazil.format.manifests import ManifestFile
from frazil.format.metadata.partition_sources import schema_with_sources
from frazil.format.partitions.partitioning import PartitionSpec
from frazil.format.schema import Schema
from frazil.planning.cache import ManifestCache
from frazil.planning.load import ManifestLoader
from frazil.spark.metadata_frames.cluster import Cluster
from frazil.spark.metadata_frames.entry_rows import manifest_of_task
from frazil.spark.port import SparkHandlePort
from frazil.spark.session import costs
from frazil.spark.session.facts import prepare_session, type_support
from frazil.spark.session.tasks import map_batches
from frazil.spark.upkeep.arrow_frames import arrow_of, polars_of
from frazil.storage.files import FileIO
from frazil.table.maintenance.check import CheckResult, check_files_here, check_table
from frazil.table.maintenance.file_checks import PROBLEMS, STATED, check_entries, stated_entries

_STATED: Final = (
    "content int, file_path string, file_format string, record_count bigint, "
    "file_size_in_bytes bigint, content_offset bigint, content_size_in_bytes bigint"
)
_PROBLEMS: Final = (
    "file_path string, kind string, problem string, stated bigint, found bigint, "
    "content_offset bigint, reason string"
)


def check(table: SparkHandlePort) -> CheckResult:
    """Check a table; executors look at its files where there are many."""
    loaded = table.refresh()
    here = check_files_here(table.io, loaded.metadata)

    def check_files(manifests: Sequence[ManifestFile]) -> tuple[int, pl.DataFrame]:
        counts = [(m.added_files_count, m.existing_files_count) for m in manifests]
        known = sum((added or 0) + (existing or 0) for added, existing in counts)
        if known <= costs.CHECKED_FILES:
            return here(manifests)
        return _check_on_cluster(table, manifests)

    return check_table(table.io, loaded, check_files)


def _check_on_cluster(
    table: SparkHandlePort, manifests: Sequence[ManifestFile]
) -> tuple[int, pl.DataFrame]:
    spark, metadata = table.spark, table.metadata
    prepare_session(spark)
    cluster = Cluster(spark=spark, io=table.io, support=type_support(spark))
    reader = _StatedEntries(table.io, metadata.partition_specs, schema_with_sources(metadata))
    stated = map_batches(cluster.tasks(manifests), reader, _STATED).distinct()
    # All that is said of a file goes to one task, which opens it once.
    spread = stated.repartition(F.col("file_path")).persist()
    try:
        count = spread.select("file_path").distinct().count()
        problems = map_batches(spread, _CheckedEntries(table.io), _PROBLEMS)
        found = problems.limit(costs.MOST_NAMED).toArrow()
    finally:
        spread.unpersist()
    return count, polars_of(found, PROBLEMS)


@dataclass(frozen=True, slots=True)
class _StatedEntries:
    """Manifests to what their live entries state, in a Python worker."""

    io: FileIO
    specs: tuple[PartitionSpec, ...]
    sources: Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        specs = {spec.spec_id: spec for spec in self.specs}
        loader = ManifestLoader(self.io, specs, self.sources, ManifestCache(0))
        for batch in batches:
            for task in batch.to_pylist():
                [frame] = loader.entries([manifest_of_task(task)])
                yield from arrow_of(stated_entries(frame)).to_batches()


@dataclass(frozen=True, slots=True)
class _CheckedEntries:
    """Entries to what is wrong with their files, in a Python worker."""

    io: FileIO

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from arrow_of(check_entries(self.io, polars_of(batch, STATED))).to_batches()
