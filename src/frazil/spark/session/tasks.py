"""Python functions over the Arrow batches of a DataFrame's partitions, on executors."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from zipimport import zipimporter

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as S

BatchTask = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""What is done with one partition; called on an executor, so it must be picklable."""


def map_batches(rows: DataFrame, task: BatchTask, schema: S.StructType | str) -> DataFrame:
    """Return what a task makes of the Arrow batches of each partition, as ``mapInArrow`` does.

    Args:
        rows: the partitions.
        task: takes the batches of one partition, and yields batches of the schema.
        schema: of the result, in Spark's types.
    """
    return rows.mapInArrow(_Task(task), schema)


@dataclass(frozen=True, slots=True)
class _Task:
    task: BatchTask

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            yield from self.task(batches)
        finally:
            forget_zip_importers()


def forget_zip_importers() -> None:
    """Drop what this process keeps of the archives on its path, apart from their lists of names.

    Spark invalidates the import caches of a Python worker at each task. Up to Python 3.11.3 that
    reads the names of every archive anew, as often as there are packages in it: a tenth of a second
    for Spark's own archives, and more with each jar of ``spark.jars.packages``. An import that
    needs an archive finds its names, which stay known.
    """
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter):
            sys.path_importer_cache.pop(path, None)
