"""How much memory the rows of a scan take, told to Spark's optimizer.

Of Parquet files Spark knows their bytes, which encoding and compression have made small: it sends
millions of rows to every task then. Their number and their types say better what they take.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from frazil.spark.abilities import class_named, module_named
from frazil.spark.gateway_errors import Py4JError
from frazil.spark.session.by_session import BySession
from frazil.spark.session.facts import is_connect
from frazil.storage.caches import BoundedCache

ROW_BYTES: Final = 8
"""What Spark counts for a row beside its columns."""

_CATALOG: Final = "org.apache.spark.sql.catalyst.catalog"
_SIZES: Final = 256
_DIGITS: Final = 4
"""Sizes are rounded up to so many binary digits, so that few of them have to be made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Makers:
    """What makes relations of a known size in a session; each is an object of the virtual machine.

    Attributes:
        dataset: makes DataFrames.
        table: makes what a catalog knows of a table.
        arguments: what it is made of.
        statistics: the place of the statistics among these.
        statistics_of: makes statistics.
        no_columns: that nothing is known of single columns.
        option: Scala's class.
        jvm: has other classes.
        known: tables by size.
    """

    dataset: Any
    table: Any
    arguments: Sequence[Any]
    statistics: int
    statistics_of: Any
    no_columns: Any
    option: Any
    jvm: Any
    known: BoundedCache[Any] = field(default_factory=lambda: BoundedCache(_SIZES))


_MAKERS: Final = BySession[_Makers | None]()


def with_size_of_rows(data: DataFrame, rows: int) -> DataFrame:
    """Return a scan of files of which Spark knows how much its rows take.

    Args:
        data: the scan.
        rows: how many rows the files have.

    Returns:
        the same rows; the same DataFrame where their size does not matter, or where this Spark
        cannot be told.
    """
    spark = data.sparkSession
    if is_connect(spark):
        return data
    frame: Any = data
    try:
        session = frame._jdf.sparkSession()
        size = rows * (ROW_BYTES + int(frame._jdf.schema().defaultSize()))
        # Spark sends no relation of more bytes to every task.
        if size <= int(session.sessionState().conf().autoBroadcastJoinThreshold()):
            return data
        makers = _MAKERS.get_or_make(spark, _make)
        if makers is None:
            return data
        relation = frame._jdf.queryExecution().analyzed()
        sized = relation.copy(
            relation.relation(),
            relation.output(),
            _table_of(spark, makers, _round(size)),
            relation.isStreaming(),
            relation.stream(),
        )
        return DataFrame(makers.dataset.ofRows(session, sized), spark)
    except Py4JError:  # This Spark has relations of another form.
        _MAKERS.put(spark, None)
        return data


def _round(size: int) -> int:
    """The size, rounded up to few digits."""
    unit = 1 << max(size.bit_length() - _DIGITS, 0)
    return -(-size // unit) * unit


def _table_of(spark: SparkSession, makers: _Makers, size: int) -> Any:
    """What a catalog would know of a table of so many bytes."""
    known = makers.known.get(size)
    if known is not None:
        return known
    # Python would make a number of its own of Scala's: the statistics get it inside a list.
    numbers: Any = spark.range(size)
    count = numbers._jdf.queryExecution().analyzed().stats().rowCount().toList()
    values = makers.jvm.java.util.ArrayList()
    values.addAll(makers.jvm.scala.jdk.javaapi.CollectionConverters.asJava(count))
    values.add(makers.option.empty())
    values.add(makers.no_columns)
    arguments = list(makers.arguments)
    statistics = makers.statistics_of.newInstance(values.toArray())
    arguments[makers.statistics] = makers.option.apply(statistics)
    made = makers.option.apply(makers.table.apply(*arguments))
    makers.known.put(size, made, 1)
    return made


def _make(spark: SparkSession) -> _Makers:
    session: Any = spark
    jvm = session._jvm
    spark_sql = jvm.org.apache.spark.sql
    table = module_named(jvm, f"{_CATALOG}.CatalogTable")
    count = class_named(jvm, f"{_CATALOG}.CatalogTable").getConstructors()[0].getParameterCount()
    arguments = [
        # Plans show the name of a relation: it has none.
        spark_sql.catalyst.TableIdentifier(""),
        spark_sql.catalyst.catalog.CatalogTableType.EXTERNAL(),
        module_named(jvm, f"{_CATALOG}.CatalogStorageFormat").empty(),
        session.range(0)._jdf.schema(),
    ]
    defaults = range(len(arguments) + 1, count + 1)
    arguments += [getattr(table, f"apply$default${number}")() for number in defaults]
    example = table.apply(*arguments)
    names = [example.productElementName(number) for number in range(count)]
    return _Makers(
        dataset=spark_sql.classic.Dataset,
        table=table,
        arguments=arguments,
        statistics=names.index("stats"),
        statistics_of=class_named(jvm, f"{_CATALOG}.CatalogStatistics").getConstructors()[0],
        no_columns=getattr(module_named(jvm, f"{_CATALOG}.CatalogStatistics"), "apply$default$3")(),
        option=jvm.scala.Option,
        jvm=jvm,
    )
