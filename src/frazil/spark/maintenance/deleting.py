"""Files that go for good, deleted by executors where they are many."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final

import pyarrow as pa
from pyspark.sql import SparkSession

from frazil.spark.session import costs
from frazil.spark.session.facts import prepare_session
from frazil.spark.session.packages import have_packages
from frazil.spark.session.tasks import map_batches
from frazil.storage.files import FileIO
from frazil.table.maintenance.progress import DeleteFiles, Deleting, deleting_here

_REASONS: Final = "path string, reason string"


def deleting_by(spark: SparkSession, io: FileIO, *, threads: int) -> DeleteFiles:
    """Return the deletion of files by executors where they are many, otherwise by threads here.

    Args:
        io: the files; sent to the workers.
        threads: how many files a process deletes beside each other.
    """
    here = deleting_here(io, threads=threads)

    def delete(paths: Sequence[str], deleting: Deleting) -> Mapping[str, str]:
        # What a commit gave up goes in any case: threads here take longer, and need no executors.
        if len(paths) <= costs.DELETED_FILES or not have_packages(spark):
            return here(paths, deleting)
        prepare_session(spark)
        failures: dict[str, str] = {}
        for start in range(0, len(paths), costs.FILES_OF_A_DELETION):
            some = paths[start : start + costs.FILES_OF_A_DELETION]
            rows = spark.createDataFrame(pa.table({"path": pa.array(some, pa.string())}))
            spread = rows.repartition(-(-len(some) // costs.DELETIONS_A_TASK))
            done = map_batches(spread, partial(delete_some, io, threads), _REASONS)
            failed = done.where("reason is not null").toArrow().to_pydict()
            failures.update(zip(failed["path"], failed["reason"], strict=True))
            deleting.add_several(len(some))
        return failures

    return delete


def delete_some(
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
