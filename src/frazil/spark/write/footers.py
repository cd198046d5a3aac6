"""Entries of many written files, read from their footers.

The driver reads what costs less than Spark's tasks do; executors read the rest. A task reads many
footers, since it costs as much to start as several hundred of a narrow table on a local disk.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from frazil.errors import InvalidDataFileError
from frazil.format import types as I
from frazil.format.manifests import DataFile
from frazil.spark.files.wire import entry_from_text, entry_to_text
from frazil.spark.files.write_failures import own_error
from frazil.spark.session.packages import have_packages, lacks_packages
from frazil.spark.session.tasks import map_batches
from frazil.spark.write.finish import Finisher
from frazil.storage.files import FileInfo
from frazil.storage.side_by_side import in_threads

FOOTERS_FOR_DRIVER: Final = 128
"""Up to so many files of a remote store are read by the driver's threads."""

COLUMNS_FOR_DRIVER: Final = 30_000
"""Up to so many columns in all, of files of a local disk, are read by the driver: in a second."""

COLUMNS_A_TASK: Final = 10_000
FOOTERS_A_TASK: Final = 32
MOST_TASKS: Final = 64
COLUMNS_OF_A_FOOTER: Final = 5
"""A footer costs as much as so many columns, beside its own."""

LABELLED: Final = 8
"""A footer that ids and types are put into costs so many times as much."""

_THREADS: Final = 8


def read_entries(
    spark: SparkSession,
    finisher: Finisher,
    partition_type: I.StructType,
    files: Sequence[FileInfo],
    *,
    folder: str,
    is_local: bool,
) -> list[DataFile]:
    """Return the entries of files, in the order of their paths.

    Args:
        spark: its executors read what is too much for the driver.
        partition_type: of the entries.
        folder: of the files, to name it by.
        is_local: whether the driver's local disk has them.

    Raises:
        InvalidDataFileError: a file does not hold what was to be written.
        StorageError: a file cannot be read.
    """
    width = COLUMNS_OF_A_FOOTER + len(finisher.schema.fields)
    if finisher.labels:
        width *= LABELLED
    if is_local:
        most, a_task = COLUMNS_FOR_DRIVER // width, max(1, COLUMNS_A_TASK // width)
    else:
        most, a_task = FOOTERS_FOR_DRIVER, FOOTERS_A_TASK
    if len(files) > most:
        tasks = min(len(files) // a_task + 1, MOST_TASKS)
        found = _on_executors(spark, finisher, partition_type, files, folder, tasks)
        if found is not None:
            return found
    if is_local or len(files) < 4:
        # What a local footer costs is work of Python's, which threads do not share.
        return [finisher.finish(file.path, file.size) for file in files]
    return in_threads(
        lambda file: finisher.finish(file.path, file.size),
        files,
        threads=_THREADS,
        name="frazil-footers",
    )


def _on_executors(
    spark: SparkSession,
    finisher: Finisher,
    partition_type: I.StructType,
    files: Sequence[FileInfo],
    folder: str,
    tasks: int,
) -> list[DataFile] | None:
    """The entries by a Spark job; None where executors lack what the driver has."""
    if not have_packages(spark):
        return None
    work = partial(_finish_some, finisher, partition_type, [(f.path, f.size) for f in files])
    try:
        rows = map_batches(spark.range(0, len(files), 1, tasks), work, "entry string").collect()
    except PySparkException as error:
        if lacks_packages(error):
            return None
        raise own_error(error) or InvalidDataFileError(
            f"a written file cannot be read back: {error}", file=folder
        ) from error
    entries = [entry_from_text(row["entry"], partition_type) for row in rows]
    return sorted(entries, key=lambda entry: entry.file_path)


def _finish_some(
    finisher: Finisher,
    partition_type: I.StructType,
    files: Sequence[tuple[str, int]],
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        lines = [
            entry_to_text(finisher.finish(*files[number]), partition_type)
            for number in batch.column(0).to_pylist()
        ]
        yield pa.record_batch({"entry": pa.array(lines, pa.string())})
