"""Entries of many written files, read from their footers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import SparkSession

from frazil.format import types as I
from frazil.format.manifests import DataFile
from frazil.spark.files.wire import entry_from_text, entry_to_text
from frazil.spark.session import costs
from frazil.spark.session.tasks import work_on
from frazil.spark.write.finish import Finisher
from frazil.storage.files import FileInfo

_ENTRIES: Final = pa.schema({"entry": pa.string()})


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
    items = pa.table({"path": [f.path for f in files], "size": [f.size for f in files]})
    width = costs.COLUMNS_OF_A_FOOTER + len(finisher.schema.fields)
    if finisher.labels:
        width *= costs.LABELLED
    told = work_on(
        spark,
        items,
        partial(_finished, finisher, partition_type),
        _ENTRIES,
        cost=costs.LOCAL_FOOTERS if is_local else costs.REMOTE_FOOTERS,
        units=len(files) * width if is_local else len(files),
    )
    return [entry_from_text(text, partition_type) for text in told["entry"].to_pylist()]


def _finished(
    finisher: Finisher, partition_type: I.StructType, file: dict[str, Any]
) -> Iterator[pa.RecordBatch]:
    entry = finisher.finish(file["path"], file["size"])
    yield pa.record_batch([[entry_to_text(entry, partition_type)]], schema=_ENTRIES)
