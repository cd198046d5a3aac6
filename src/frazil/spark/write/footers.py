"""Entries of many written files, read from their footers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pyspark.sql import SparkSession

from frazil.format import types as I
from frazil.format.manifests import DataFile
from frazil.spark.files.wire import entry_wire
from frazil.spark.session import costs
from frazil.spark.session.tasks import work_on
from frazil.spark.write.finish import Finisher
from frazil.storage.files import FileInfo


def read_entries(
    spark: SparkSession,
    finisher: Finisher,
    partition_type: I.StructType,
    files: Sequence[FileInfo],
    *,
    is_local: bool,
) -> list[DataFile]:
    """Return the entries of files, in their order.

    Args:
        spark: its executors read what is too much for the driver.
        partition_type: of the entries.
        is_local: whether the driver's local disk has them.

    Raises:
        InvalidDataFileError: a file does not hold what was to be written.
        StorageError: a file cannot be read.
    """
    width = costs.COLUMNS_OF_A_FOOTER + len(finisher.schema.fields)
    if finisher.labels:
        width *= costs.LABELLED
    return work_on(
        spark,
        files,
        partial(_finish, finisher),
        entry_wire(partition_type),
        cost=costs.LOCAL_FOOTERS if is_local else costs.REMOTE_FOOTERS,
        units=len(files) * width if is_local else len(files),
    )


def _finish(finisher: Finisher, file: FileInfo) -> DataFile:
    return finisher.finish(file.path, file.size)
