"""The files of large tables beside what metadata says, looked at by executors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import polars as pl
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import functions as F

from frazil.format.manifests import ManifestFile
from frazil.spark.metadata_frames.cluster import Cluster
from frazil.spark.port import SparkHandlePort
from frazil.spark.session import costs
from frazil.spark.session.arrow_frames import arrow_of, columns_of, polars_of
from frazil.spark.session.tasks import map_batches
from frazil.storage.files import FileIO
from frazil.table.maintenance.check import CheckResult, check_files_here, check_table
from frazil.table.maintenance.checks.files import PROBLEMS, STATED, check_entries, stated_entries
from frazil.table.maintenance.progress import OnMaintenance, StageCount


def check(table: SparkHandlePort, tell: OnMaintenance) -> CheckResult:
    """Check a table; executors look at its files where there are many."""
    loaded = table.refresh()
    here = check_files_here(table.io, loaded.metadata, tell)

    def check_files(manifests: Sequence[ManifestFile]) -> tuple[int, pl.DataFrame, int]:
        counts = [(m.added_files_count, m.existing_files_count) for m in manifests]
        known = sum((added or 0) + (existing or 0) for added, existing in counts)
        if known <= costs.CHECKED_FILES:
            return here(manifests)
        return _check_on_cluster(table, manifests, tell)

    return check_table(table.io, loaded, check_files, catalog=table.catalog, tell=tell)


def _check_on_cluster(
    table: SparkHandlePort, manifests: Sequence[ManifestFile], tell: OnMaintenance
) -> tuple[int, pl.DataFrame, int]:
    cluster = Cluster(spark=table.spark, io=table.io)
    stated = cluster.made_of_entries(
        manifests, table.metadata, stated_entries, columns_of(STATED)
    ).distinct()
    # All that is said of a file goes to one task, which opens it once.
    spread = stated.repartition(F.col("file_path")).persist()
    try:
        count = spread.select("file_path").distinct().count()
        counting = StageCount(tell, "checking files", count)
        jobs = max(1, -(-count // costs.FILES_OF_A_CHECK))
        found, every = pl.DataFrame(schema=PROBLEMS), 0
        for job in range(jobs):
            some = spread.where(F.pmod(F.xxhash64("file_path"), F.lit(jobs)) == job)
            problems = map_batches(some, partial(_check, table.io), columns_of(PROBLEMS))
            # A limit alone would end tasks before they have looked at their files.
            problems.persist(StorageLevel.DISK_ONLY)
            try:
                every += problems.count()
                most = costs.MOST_NAMED - len(found)
                found = found.vstack(polars_of(problems.limit(most).toArrow(), PROBLEMS))
            finally:
                problems.unpersist()
            counting.add((job + 1) * count // jobs - job * count // jobs)
    finally:
        spread.unpersist()
    return count, found, every - len(found)


def _check(io: FileIO, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What is wrong with the files of entries."""
    for batch in batches:
        yield from arrow_of(check_entries(io, polars_of(batch, STATED))).to_batches()
