"""Orphan files of tables that are too large to compare beside the session.

Executors list the folders, decode the manifests, compare and delete. Both sides of the comparison
are rows of one shuffle by their paths, and each of its partitions is compared as columns: Spark
sorts nothing and keeps no path in memory, however many there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Final

import polars as pl
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from frazil.catalog.protocol import LoadedTable
from frazil.format.manifests import EntryStatus
from frazil.spark.metadata_frames.cluster import Cluster, is_planned_here
from frazil.spark.port import SparkHandlePort
from frazil.spark.session import costs
from frazil.spark.session.arrow_frames import arrow_of, columns_of, polars_of
from frazil.spark.session.facts import (
    prepare_session,
    shuffle_partitions,
)
from frazil.spark.session.tasks import map_batches, map_items, spark_frame, spread_items
from frazil.storage.files import FileIO
from frazil.storage.listing import LISTED, Beginning, list_beginning, list_folders
from frazil.table.maintenance.orphans import (
    CONFLICT,
    FILE_COLUMN,
    METADATA_FILE,
    OrphanFilesResult,
    OrphanSearch,
    listing,
    remove_orphans,
)
from frazil.table.maintenance.progress import DeleteProgress, OnDelete
from frazil.table.maintenance.reachable import (
    ReachableMetadata,
    metadata_folders,
    reachable_metadata,
)
from frazil.table.manifests.comparable_paths import COMPARABLE, ComparablePaths

_KEYED: Final = columns_of({**LISTED, "is_candidate": pl.Boolean(), "key": pl.String()})
_IS_REACHED: Final = "is_reached"
_COMPARED: Final = {**LISTED, **COMPARABLE, _IS_REACHED: pl.Boolean()}
"""Of a candidate what was listed and its key; of a reached file its comparable path."""
_UNREACHED: Final = f"path string, size bigint, modified_ms bigint, {CONFLICT} string"
_DELETED: Final = "path string, size bigint, reason string"


def remove_orphan_files(
    table: SparkHandlePort,
    search: OrphanSearch,
    *,
    is_dry_run: bool,
    files: pl.DataFrame | DataFrame | None,
    tell: OnDelete,
) -> OrphanFilesResult:
    """Find orphans and delete them, on executors where there is much to list or to compare.

    Args:
        table: whose folder is searched.
        search: what is looked for.
        is_dry_run: whether nothing is deleted.
        files: in place of a listing; a DataFrame is compared by executors.
        tell: called with what it is at; executors tell of each of its steps, and of no file.
    """
    if isinstance(files, pl.DataFrame):
        return remove_orphans(table, search, is_dry_run=is_dry_run, files=files, tell=tell)
    tell(DeleteProgress("searching"))
    beginning = None
    if files is None:
        beginning = list_beginning(table.io, search.location)
        reachable = reachable_metadata(table.io, table.loaded_table)
        is_small = len(beginning.folders) <= costs.LISTED_FOLDERS
        if is_small and is_planned_here(reachable.manifests):
            listed = listing(table.io, beginning)
            return remove_orphans(table, search, is_dry_run=is_dry_run, files=listed, tell=tell)
    prepare_session(table.spark)
    on_cluster = _OnCluster(table.spark, table.io, search)
    source = on_cluster.listed_files(beginning) if files is None and beginning else files
    assert source is not None
    with ExitStack() as kept:
        done = on_cluster.run(table, source, is_dry_run=is_dry_run, kept=kept, tell=tell)
    count = done.orphan_files_count
    tell(DeleteProgress("done", count, 0 if is_dry_run else count))
    return done


@dataclass(frozen=True, slots=True)
class _OnCluster:
    """The search as jobs of Spark."""

    spark: SparkSession
    io: FileIO
    search: OrphanSearch

    def run(
        self,
        table: SparkHandlePort,
        source: DataFrame,
        *,
        is_dry_run: bool,
        kept: ExitStack,
        tell: OnDelete,
    ) -> OrphanFilesResult:
        keyed = _persist(map_batches(source, partial(_candidates, self.search), _KEYED), kept)
        count = keyed.count()
        tell(DeleteProgress("searching", count))
        loaded = table.refresh()
        reachable = reachable_metadata(self.io, loaded)
        self._refuse_other_tables(keyed, loaded, reachable)
        candidates = keyed.where("is_candidate").drop("is_candidate")
        orphans = self._orphans(candidates, loaded, reachable, count, kept)
        newest = loaded if is_dry_run else table.refresh()
        if newest.metadata_location != loaded.metadata_location:
            again = map_batches(orphans, partial(_candidates, self.search), _KEYED).drop(
                "is_candidate"
            )
            reachable = reachable_metadata(self.io, newest)
            orphans = self._orphans(again, newest, reachable, count, kept)
        if is_dry_run:
            done = orphans.select("path", "size", F.lit(None).cast("string").alias("reason"))
        else:
            tell(DeleteProgress("deleting", orphans.count()))
            spread = orphans.select("path", "size").repartition(shuffle_partitions(self.spark))
            delete = partial(_delete, self.io, self.search.delete_threads)
            done = _persist(map_batches(spread, delete, _DELETED), kept)
        return _result(done, is_dry_run=is_dry_run)

    def listed_files(self, beginning: Beginning) -> DataFrame:
        """The files below the folder; executors list what is below its upper levels."""
        upper = spark_frame(self.spark, arrow_of(beginning.files))
        rows = pa.table({"folder": pa.array(beginning.folders, pa.string())})
        folders = spread_items(self.spark, rows)
        return upper.union(map_items(folders, partial(_list, self.io), columns_of(LISTED)))

    def _orphans(
        self,
        candidates: DataFrame,
        table: LoadedTable,
        reachable: ReachableMetadata,
        count: int,
        kept: ExitStack,
    ) -> DataFrame:
        """Candidates that the table does not reach.

        Raises:
            ValidationError: it reaches some by another prefix, and the mode is ERROR.
        """
        held = (m.added_files_count for m in reachable.manifests)
        most = max(count, sum(each or 0 for each in held))
        parts = max(shuffle_partitions(self.spark), -(-most // costs.PATHS_A_BUCKET))
        here = candidates.withColumn(_IS_REACHED, F.lit(False))
        there = self._reached_paths(table, reachable).withColumn(_IS_REACHED, F.lit(True))
        both = here.unionByName(there, allowMissingColumns=True).select(*_COMPARED)
        spread = both.repartition(parts, "key")
        compared = map_batches(spread, partial(_compare, self.search), _UNREACHED)
        unreached = _persist(compared, kept)
        conflicts = unreached.select(CONFLICT).where(f"{CONFLICT} is not null").distinct()
        told = [row[0] for row in conflicts.limit(100).collect()]
        probe = pl.DataFrame({CONFLICT: told}, schema={CONFLICT: pl.String()})
        keeps_conflicts = len(self.search.orphans(probe)) == len(probe)
        return unreached if keeps_conflicts else unreached.where(f"{CONFLICT} is null")

    def _reached_paths(self, table: LoadedTable, reachable: ReachableMetadata) -> DataFrame:
        cluster = Cluster(spark=self.spark, io=self.io)
        live = [each for each in reachable.manifests if each.has_live_files]
        reached = partial(_live_paths, self.search.paths)
        files = cluster.made_of_entries(live, table.metadata, reached, columns_of(COMPARABLE))
        own = self.search.paths.parts(pl.Series("path", sorted(reachable.paths), pl.String()))
        return spark_frame(self.spark, arrow_of(own)).union(files)

    def _refuse_other_tables(
        self, keyed: DataFrame, table: LoadedTable, reachable: ReachableMetadata
    ) -> None:
        found = keyed.where(F.col("path").rlike(METADATA_FILE))
        # One file of each folder says enough.
        folder = F.regexp_extract("path", "^(.*)/[^/]*$", 1)
        some = found.groupBy(folder.alias("folder")).agg(F.min("path").alias("path"))
        paths = [row.path for row in some.collect()]
        listed = pl.DataFrame({"path": paths}, schema={"path": pl.String()})
        earlier = partial(metadata_folders, self.io, table)
        self.search.refuse_other_tables(listed, reachable.metadata_folders, earlier)


def _list(io: FileIO, item: dict[str, str]) -> list[pa.RecordBatch]:
    """The files below a folder."""
    found: list[pa.RecordBatch] = arrow_of(list_folders(io, [item["folder"]])).to_batches()
    return found


def _candidates(
    search: OrphanSearch, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Listed files that may be orphans, and metadata files, with keys to compare by."""
    for batch in batches:
        files = polars_of(batch, LISTED)
        old = search.candidates(files)["path"]
        found = files.with_columns(is_candidate=pl.col("path").is_in(old.implode())).filter(
            pl.col("is_candidate") | pl.col("path").str.contains(METADATA_FILE)
        )
        keys = search.paths.parts(found["path"])["key"]
        yield from arrow_of(found.with_columns(keys)).to_batches()


def _live_paths(paths: ComparablePaths, entries: pl.DataFrame) -> pl.DataFrame:
    """The comparable paths of live entries."""
    live = entries.filter(pl.col("status") != int(EntryStatus.DELETED))
    return paths.parts(live["file_path"])


def _compare(search: OrphanSearch, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Candidates and reached files of the same keys to what is not reached."""
    some = [polars_of(batch, _COMPARED) for batch in batches]
    if not some:
        return
    rows = pl.concat(some)
    candidates = rows.filter(~pl.col(_IS_REACHED)).select(*LISTED)
    reached = rows.filter(_IS_REACHED).select(*COMPARABLE)
    yield from arrow_of(search.unreached_files(candidates, reached)).to_batches()


def _delete(
    io: FileIO, threads: int, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Delete files by their `path`, on an executor; add the `reason` why one could not be, or NULL.

    A task that is tried again finds files gone, which is no failure.
    """
    for batch in batches:
        paths = batch["path"].to_pylist()
        failures = io.delete_many(paths, threads=threads)
        reasons = [str(failures[path]) if path in failures else None for path in paths]
        yield batch.append_column("reason", pa.array(reasons, pa.string()))


def _result(done: DataFrame, *, is_dry_run: bool) -> OrphanFilesResult:
    [totals] = done.agg(
        F.count("path").alias("count"),
        F.coalesce(F.sum("size"), F.lit(0)).alias("bytes"),
        F.count("reason").alias("failed"),
    ).collect()
    named = pl.DataFrame(pl.from_arrow(done.select("path").limit(costs.MOST_NAMED).toArrow()))
    failed = (
        done.where("reason is not null").select("path", "reason").limit(costs.MOST_NAMED).collect()
    )
    return OrphanFilesResult(
        frame=named.select(pl.col("path").cast(pl.String).alias(FILE_COLUMN)),
        orphan_files_count=totals["count"],
        orphan_bytes=totals["bytes"],
        deleted_files_count=0 if is_dry_run else totals["count"] - totals["failed"],
        failures=tuple((row.path, row.reason) for row in failed),
        is_dry_run=is_dry_run,
    )


def file_list_of(given: DataFrame) -> DataFrame:
    """Return a DataFrame of `file_path` and `last_modified` as a listing."""
    size = F.col("size") if "size" in given.columns else F.lit(0)
    return given.select(
        F.col("file_path").alias("path"),
        size.cast("bigint").alias("size"),
        F.unix_millis(F.col("last_modified").cast("timestamp")).alias("modified_ms"),
    )


def _persist(frame: DataFrame, kept: ExitStack) -> DataFrame:
    """The frame, computed once until the end."""
    # On disk: it is read from end to end, and may be as long as a listing of the store.
    persisted = frame.persist(StorageLevel.DISK_ONLY)
    kept.callback(persisted.unpersist)
    return persisted
