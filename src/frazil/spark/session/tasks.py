"""Python functions over Arrow batches and items, on executors or beside the session."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Generic, TypeAlias, TypeVar
from zipimport import zipimporter

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.errors import PySparkException, PySparkRuntimeError
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as S
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_type

from frazil.errors import (
    ConfigurationError,
    FrazilError,
    InvalidDataFileError,
    InvalidManifestError,
    SchemaMismatchError,
    StorageError,
    UnsupportedError,
)
from frazil.format import types as I
from frazil.format.values.decimals import at_scale
from frazil.spark.abilities import HAS_ARROW_FUNCTIONS
from frazil.spark.session import costs
from frazil.spark.session.costs import Cost
from frazil.spark.session.facts import prepare_session, shuffle_partitions
from frazil.spark.session.packages import have_packages, lacks_packages, require_packages
from frazil.storage.side_by_side import in_threads

BatchTask = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""What is done with one partition; called on an executor, so it must be picklable."""

ItemTask = Callable[[dict[str, Any]], Iterable[pa.RecordBatch]]
"""What is done with one item, a row by its columns' names; it must be picklable likewise."""

ValueFunction = Callable[[I.IcebergType, Any], Any]
"""What is made of a value of a type; it must be picklable."""

TaskSchema: TypeAlias = S.StructType | pa.Schema | str
"""The columns that a task yields, in Spark's types or Arrow's."""

Item = TypeVar("Item")
Result = TypeVar("Result")

_OWN: Final = re.compile(r"frazil\.errors\.(\w+): (.*)")
_KINDS: Final[Mapping[str, type[FrazilError]]] = {
    "ConfigurationError": ConfigurationError,
    "InvalidDataFileError": InvalidDataFileError,
    "InvalidManifestError": InvalidManifestError,
    "MissingFileError": StorageError,
    "SchemaMismatchError": SchemaMismatchError,
    "StorageError": StorageError,
    "UnsupportedError": UnsupportedError,
}


@dataclass(frozen=True, slots=True)
class Wire(Generic[Result]):
    """How results come from executors; beside the session they stay what they are.

    Attributes:
        to_text: called on an executor, so it must be picklable.
        from_text: called beside the session, with what `to_text` returned.
    """

    to_text: Callable[[Result], str]
    from_text: Callable[[str], Result]


def spark_frame(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """Return rows of Arrow as Spark's, with their columns where there are none."""
    return spark.createDataFrame(rows, from_arrow_schema(rows.schema))


def work_on(
    spark: SparkSession,
    items: Sequence[Item],
    work: Callable[[Item], Result],
    wire: Wire[Result],
    *,
    cost: Cost,
    units: int,
    threads: int | None = None,
    otherwise: type[FrazilError] = InvalidDataFileError,
) -> list[Result]:
    """Return what work makes of items, in their order.

    It is done beside the session where that costs less, or where executors lack what the driver
    has; else by one job of Spark's. Few items go to it along with the function, many as rows, so
    that a task gets its own alone.

    Args:
        items: picklable.
        work: called with an item, and picklable too.
        wire: brings results from executors.
        cost: says from how many units on it is executors' work, and of how many tasks.
        units: of all items.
        threads: how many items a process works on beside each other; unless given, as the cost
            says beside the session, and one on executors.
        otherwise: raised where the work fails on executors by another error.

    Raises:
        FrazilError: the work raised it.
    """
    if units > cost.here and have_packages(spark):
        prepare_session(spark)
        tasks = cost.tasks(units)
        if len(items) <= costs.ITEMS_IN_FUNCTION:
            rows = spark.range(0, len(items), 1, tasks)
            item_of: Callable[[Any], Any] = items.__getitem__
        else:
            packed = pa.table({"item": pa.array(map(cloudpickle.dumps, items), pa.binary())})
            numbered = packed.add_column(0, "id", pa.array(range(len(items)), pa.int64()))
            rows, item_of = spark_frame(spark, numbered).repartition(tasks), cloudpickle.loads
        task = partial(_work_there, work, wire.to_text, item_of, threads or 1)
        try:
            found = map_batches(rows, task, "id bigint, result string").toArrow().sort_by("id")
            return [wire.from_text(text) for text in found["result"].to_pylist()]
        except PySparkException as error:
            own = own_error(error)
            if own is not None:
                raise own from error
            if not lacks_packages(error):
                raise otherwise(f"executors cannot do their work: {error}") from error
    return in_threads(work, items, threads=threads or cost.threads, name="frazil-items")


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
    found = from_arrow_schema(schema) if isinstance(schema, pa.Schema) else schema
    return rows.mapInArrow(partial(_run_and_forget, task), found)


def own_error(error: BaseException) -> FrazilError | None:
    """Return the error of Frazil's that a task raised, found in the text of Spark's error."""
    match = _OWN.search(str(error))
    kind = None if match is None else _KINDS.get(match.group(1))
    return None if match is None or kind is None else kind(match.group(2))


def arrow_function(function: Callable[..., pa.Array], kind: S.DataType) -> Callable[..., Column]:
    """Return a function of columns that executors compute from their Arrow arrays.

    There are none unless `HAS_ARROW_FUNCTIONS`.

    Args:
        function: takes an array of each column; called on an executor, so it must be picklable.
        kind: of what it returns.

    Raises:
        ConfigurationError: executors' Python cannot run it.
    """
    _require_packages()
    with warnings.catch_warnings():
        # Spark would rather see type hints, which it cannot read from an object.
        warnings.simplefilter("ignore", UserWarning)
        made: Callable[..., Column] = F.arrow_udf(  # type: ignore[attr-defined]
            function,
            kind,
            F.ArrowUDFType.SCALAR,  # type: ignore[attr-defined]
        )
    return made


def value_function(
    function: ValueFunction, source: I.IcebergType, kind: S.DataType
) -> Callable[..., Column]:
    """Return a function of a column that executors compute value by value; NULL stays NULL.

    Args:
        function: takes the type and an internal value; called on an executor, so it must be
            picklable.
        source: the column's type, a decimal, a number, or a time.
        kind: of what it returns.

    Raises:
        ConfigurationError: executors' Python cannot run it.
    """
    if HAS_ARROW_FUNCTIONS:
        return arrow_function(_EachValue(function, source, to_arrow_type(kind)), kind)
    _require_packages()
    # Pandas, which Arrow's values go through otherwise, makes floats of whole numbers beside NULL.
    made: Callable[..., Column] = F.udf(partial(_of_value, function, source), kind, useArrow=False)
    return made


@dataclass(frozen=True, slots=True, eq=False)
class _EachValue:
    """A function of values as one of Arrow's arrays, called for each distinct value of a batch."""

    function: ValueFunction
    source: I.IcebergType
    kind: pa.DataType

    def __call__(self, values: pa.Array) -> pa.Array:
        if pa.types.is_time(values.type) or pa.types.is_timestamp(values.type):
            values = values.cast(pa.int64())
        distinct: Any = values.dictionary_encode()
        values = distinct.dictionary.to_pylist()
        found = [_of_value(self.function, self.source, value) for value in values]
        return pa.array(found, self.kind).take(distinct.indices)


def _of_value(function: ValueFunction, source: I.IcebergType, value: Any) -> Any:
    if value is None:
        return None
    # What comes without Arrow has its digits, and not the scale of its type.
    known = at_scale(value, source.scale) if isinstance(source, I.DecimalType) else value
    return function(source, known)


def _require_packages() -> None:
    # A thread that has no session finds out when its query runs.
    with suppress(PySparkRuntimeError):
        require_packages(SparkSession.active())


def _run_and_forget(task: BatchTask, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    try:
        yield from task(batches)
    finally:
        forget_zip_importers()


def _each_item(task: ItemTask, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for item in batch.to_pylist():
            yield from task(item)


def _work_there(
    work: Callable[[Item], Result],
    to_text: Callable[[Result], str],
    item_of: Callable[[Any], Item],
    threads: int,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        # The last column is the item, or the number of one.
        some = [item_of(value) for value in batch.columns[-1].to_pylist()]
        found = in_threads(work, some, threads=threads, name="frazil-items")
        texts = pa.array(map(to_text, found), pa.string())
        yield pa.record_batch({"id": batch.column(0), "result": texts})


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
