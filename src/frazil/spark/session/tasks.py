"""Python functions over Arrow batches and items, on executors or beside the session."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Any, Final, TypeAlias
from zipimport import zipimporter

import pyarrow as pa
from pyspark.errors import PySparkException, PySparkRuntimeError
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as S
from pyspark.sql.pandas.types import from_arrow_schema

from frazil.errors import (
    ConfigurationError,
    FrazilError,
    InvalidDataFileError,
    SchemaMismatchError,
    StorageError,
    UnsupportedError,
)
from frazil.spark.session.arrow_frames import spark_frame
from frazil.spark.session.costs import Cost
from frazil.spark.session.facts import prepare_session, shuffle_partitions
from frazil.spark.session.packages import have_packages, lacks_packages, require_packages
from frazil.storage.side_by_side import in_threads

BatchTask = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""What is done with one partition; called on an executor, so it must be picklable."""

ItemTask = Callable[[dict[str, Any]], Iterable[pa.RecordBatch]]
"""What is done with one item, a row by its columns' names; it must be picklable likewise."""

TaskSchema: TypeAlias = S.StructType | pa.Schema | str
"""The columns that a task yields, in Spark's types or Arrow's."""

_PACKED: Final = pa.ipc.IpcWriteOptions(compression="zstd")
_OWN: Final = re.compile(r"frazil\.errors\.(\w+): (.*)")
_KINDS: Final[Mapping[str, type[FrazilError]]] = {
    "ConfigurationError": ConfigurationError,
    "InvalidDataFileError": InvalidDataFileError,
    "MissingFileError": StorageError,
    "SchemaMismatchError": SchemaMismatchError,
    "StorageError": StorageError,
    "UnsupportedError": UnsupportedError,
}


def work_on(
    spark: SparkSession,
    items: pa.Table,
    task: ItemTask,
    schema: pa.Schema,
    *,
    cost: Cost,
    units: int,
    threads: int | None = None,
) -> pa.Table:
    """Return what a task makes of items, in their order.

    It is made beside the session where that costs less, or where executors lack what the driver
    has; else in one job.

    Args:
        items: one a row.
        task: yields batches of the schema for an item.
        cost: says from how many units on it is executors' work, and of how many tasks.
        units: of all items.
        threads: how many items a process works on beside each other; as the cost says beside the
            session and one on executors, where it is None.

    Raises:
        FrazilError: the task raised it.
        PySparkException: it failed otherwise.
    """
    if units > cost.here and have_packages(spark):
        prepare_session(spark)
        parts = _parts(items, cost.tasks(units))
        numbers = spark.range(0, len(parts), 1, len(parts))
        try:
            return map_batches(
                numbers, partial(_work_on_parts, task, parts, threads or 1), schema
            ).toArrow()
        except PySparkException as error:
            own = own_error(error)
            if own is not None:
                raise own from error
            if not lacks_packages(error):
                raise
    return pa.Table.from_batches(_worked(task, items, threads or cost.threads), schema)


def map_items(items: DataFrame, task: ItemTask, schema: TaskSchema) -> DataFrame:
    """Return what a task makes of each row, on executors; it is computed where it is asked for.

    Raises:
        ConfigurationError: executors' Python cannot run it.
    """
    return map_batches(items, partial(_each_item, task), schema)


def spread_items(spark: SparkSession, items: pa.Table) -> DataFrame:
    """Return items as rows, over as many tasks as there may be."""
    prepare_session(spark)
    tasks = max(1, min(len(items), shuffle_partitions(spark)))
    return spark_frame(spark, items).repartition(tasks)


def map_batches(rows: DataFrame, task: BatchTask, schema: TaskSchema) -> DataFrame:
    """Return what a task makes of the Arrow batches of each partition, as ``mapInArrow`` does.

    Args:
        rows: the partitions.
        task: takes the batches of one partition, and yields batches of the schema.
        schema: of the result.

    Raises:
        ConfigurationError: executors' Python cannot run it.
    """
    require_packages(rows.sparkSession)
    told = from_arrow_schema(schema) if isinstance(schema, pa.Schema) else schema
    return rows.mapInArrow(partial(_forgetting, task), told)


def own_error(error: BaseException) -> FrazilError | None:
    """Return the error of Frazil's that a task raised, found in the text of Spark's error."""
    match = _OWN.search(str(error))
    kind = None if match is None else _KINDS.get(match.group(1))
    return None if match is None or kind is None else kind(match.group(2))


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


def _forgetting(task: BatchTask, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    try:
        yield from task(batches)
    finally:
        forget_zip_importers()


def _each_item(task: ItemTask, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for item in batch.to_pylist():
            yield from task(item)


def _worked(task: ItemTask, items: pa.Table, threads: int) -> Iterator[pa.RecordBatch]:
    found = in_threads(
        lambda item: list(task(item)), items.to_pylist(), threads=threads, name="frazil-items"
    )
    return chain.from_iterable(found)


def _parts(items: pa.Table, count: int) -> tuple[bytes, ...]:
    """About as many items each, as a function takes them along: rows would need a shuffle."""
    size = -(-len(items) // count)
    parts = []
    for start in range(0, len(items), size):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, items.schema, options=_PACKED) as stream:
            stream.write_table(items.slice(start, size))
        parts.append(sink.getvalue().to_pybytes())
    return tuple(parts)


def _work_on_parts(
    task: ItemTask, parts: Sequence[bytes], threads: int, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield from _worked(task, pa.ipc.open_stream(parts[number]).read_all(), threads)


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
