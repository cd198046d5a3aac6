"""Python functions over the Arrow batches of a DataFrame's partitions, on executors."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from zipimport import zipimporter

import pyarrow as pa
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as S

from frazil.spark.session.packages import require_packages

BatchTask = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""What is done with one partition; called on an executor, so it must be picklable."""


def map_batches(rows: DataFrame, task: BatchTask, schema: S.StructType | str) -> DataFrame:
    """Return what a task makes of the Arrow batches of each partition, as ``mapInArrow`` does.

    Args:
        rows: the partitions.
        task: takes the batches of one partition, and yields batches of the schema.
        schema: of the result, in Spark's types.

    Raises:
        ConfigurationError: executors' Python cannot run it.
    """
    require_packages(rows.sparkSession)
    return rows.mapInArrow(_Task(task), schema)


def arrow_function(function: Callable[..., pa.Array], kind: S.DataType) -> Callable[..., Column]:
    """Return a function of columns that executors compute from their Arrow arrays.

    Args:
        function: takes an array of each column; called on an executor, so it must be picklable.
        kind: of what it returns.

    Raises:
        ConfigurationError: executors' Python cannot run it.
    """
    # A thread that has no session finds out when its query runs.
    with suppress(PySparkRuntimeError):
        require_packages(SparkSession.active())
    with warnings.catch_warnings():
        # Spark would rather see type hints, which it cannot read from an object.
        warnings.simplefilter("ignore", UserWarning)
        made: Callable[..., Column] = F.arrow_udf(  # type: ignore[attr-defined]
            function,
            kind,
            F.ArrowUDFType.SCALAR,  # type: ignore[attr-defined]
        )
    return made


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
