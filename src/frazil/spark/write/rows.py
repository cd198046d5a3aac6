"""Rows in whatever form a user has them, as a DataFrame of Spark.

Frames of this process go through Arrow, so that every type keeps its meaning: timestamps without a
zone stay without one, missing numbers are null, decimals keep their digits.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final, TypeGuard
from uuid import UUID

import polars as pl
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as S

from frazil.errors import SchemaMismatchError, ValidationError
from frazil.spark.abilities import TimeType
from frazil.spark.session.facts import type_support

_ACCEPTED: Final = (
    "a DataFrame of Spark, pandas or Polars (also a LazyFrame), a PyArrow Table, RecordBatch or "
    "RecordBatchReader, or a table or scan of Frazil"
)

_MOST_DIGITS: Final = 38

_SAME: Final[dict[pa.DataType, S.DataType]] = {
    pa.null(): S.NullType(),
    pa.bool_(): S.BooleanType(),
    pa.int8(): S.ByteType(),
    pa.int16(): S.ShortType(),
    pa.int32(): S.IntegerType(),
    pa.int64(): S.LongType(),
    pa.float32(): S.FloatType(),
    pa.float64(): S.DoubleType(),
    pa.date32(): S.DateType(),
    pa.timestamp("us"): S.TimestampNTZType(),
    pa.string(): S.StringType(),
    pa.large_string(): S.StringType(),
    pa.binary(): S.BinaryType(),
    pa.large_binary(): S.BinaryType(),
}

_WIDER: Final[dict[pa.DataType, pa.DataType]] = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
    pa.string_view(): pa.large_string(),
    pa.binary_view(): pa.large_binary(),
}
"""Types that Spark has not, and those that hold all of their values."""


def rows_of(spark: SparkSession, value: object) -> DataFrame:
    """Return rows as a DataFrame of Spark.

    NaN in a column of pandas is null, as pandas means it. Timestamps of nanoseconds become ones of
    microseconds where no digit is lost, else the nanoseconds since the epoch as bigint, as Spark
    shows Iceberg's ``timestamp_ns``. Times of the day are bigint microseconds where this Spark has
    no such type. Unsigned numbers take the next wider type; uuids become text.

    Args:
        spark: makes DataFrames of frames of this process, which pass through it.
        value: a DataFrame of any Spark session, which stays as it is; a pandas DataFrame, whose
            index is left out; a PyArrow Table, RecordBatch or RecordBatchReader; a Polars DataFrame
            or LazyFrame; a table or scan of Frazil, or what else has ``to_df()``.

    Raises:
        ValidationError: it is something else.
        SchemaMismatchError: columns of types that Spark has not.
    """
    if isinstance(value, DataFrame):
        return value
    if (table := _arrow_table(value)) is not None:
        return _from_arrow(spark, table)
    to_df = getattr(value, "to_df", None)
    if not isinstance(value, type) and callable(to_df):
        made = to_df()
        if isinstance(made, DataFrame):
            return made
    kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
    raise ValidationError(f"rows cannot be made of a {kind}: give {_ACCEPTED}")


def known_row_count(value: object) -> int | None:
    """Return how many rows a frame of this process has; None of others, which must be read."""
    if isinstance(value, pa.Table | pa.RecordBatch):
        return int(value.num_rows)
    return len(value) if isinstance(value, pl.DataFrame) or _is_of_pandas(value) else None


def _arrow_table(value: object) -> pa.Table | None:
    match value:
        case pa.Table():
            return value
        case pa.RecordBatch():
            return pa.Table.from_batches([value])
        case pa.RecordBatchReader():
            return value.read_all()
        case _ if _is_of_pandas(value):
            try:
                return pa.Table.from_pandas(value, preserve_index=False)
            except (pa.ArrowException, TypeError, ValueError) as error:
                raise SchemaMismatchError(
                    f"the pandas DataFrame has a column of no one type: {error}"
                ) from error
        case pl.LazyFrame():
            return _of_polars(value.collect())
        case pl.DataFrame():
            return _of_polars(value)
        case _:
            return None


def _is_of_pandas(value: object) -> TypeGuard[Any]:
    """Whether it is a DataFrame of pandas, which whoever has one has loaded: that takes long."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(value, pandas.DataFrame)


def _of_polars(frame: pl.DataFrame) -> pa.Table:
    # Polars gives the addresses of Python objects as if they were bytes.
    objects = [name for name, kind in frame.schema.items() if kind == pl.Object]
    if objects:
        raise SchemaMismatchError(f"Spark cannot hold these columns of Python objects: {objects}")
    try:
        return frame.to_arrow()
    except (pa.ArrowException, pl.exceptions.PolarsError) as error:
        raise SchemaMismatchError(
            f"the Polars frame has a column of a type that Arrow has not: {error}"
        ) from error


def _from_arrow(spark: SparkSession, table: pa.Table) -> DataFrame:
    if not table.num_columns:
        raise SchemaMismatchError("the frame has no columns")
    times = type_support(spark).time
    arrays: list[pa.ChunkedArray] = []
    fields: list[S.StructField] = []
    problems: list[str] = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        try:
            taken = _as_spark_takes(column, times=times)
            fields.append(S.StructField(name, _spark_type(taken.type)))
            arrays.append(taken)
        except (_NoTypeError, pa.ArrowException) as error:
            problems.append(f"{name!r} ({column.type}): {error}")
    if problems:
        raise SchemaMismatchError("Spark cannot hold these columns: " + "; ".join(problems))
    schema = S.StructType(fields)
    if not table.num_rows:
        return spark.createDataFrame([], schema)
    taken_table = pa.Table.from_arrays(arrays, names=table.column_names)
    try:
        return spark.createDataFrame(taken_table, schema)
    except PySparkException as error:
        raise SchemaMismatchError(f"Spark cannot hold these columns: {error}") from error


class _NoTypeError(Exception):
    """Spark has no type for a column; never leaves this module."""


def _as_spark_takes(column: pa.ChunkedArray, *, times: bool) -> pa.ChunkedArray:
    """A column in a type that Spark takes."""
    if isinstance(column.type, pa.UuidType):
        texts = [None if raw is None else str(_uuid(raw)) for raw in column.to_pylist()]
        return pa.chunked_array([pa.array(texts, pa.string())])
    micros = _type_taken(column.type, _micros, _time_of_day)
    try:
        column = column.cast(micros)
    except pa.ArrowInvalid:
        nanos = _type_taken(column.type, _nanos, _time_of_day)
        if nanos == micros:
            raise
        column = column.cast(nanos)
    if times:
        return column
    # Of another unit than microseconds a number would be another time.
    return column.cast(_type_taken(column.type, _micros, pa.int64))


def _uuid(value: Any) -> UUID:
    return value if isinstance(value, UUID) else UUID(bytes=value)


def _micros(kind: pa.TimestampType) -> pa.DataType:
    return pa.timestamp("us", kind.tz)


def _nanos(kind: pa.TimestampType) -> pa.DataType:
    return pa.int64() if kind.unit == "ns" else pa.timestamp("us", kind.tz)


def _time_of_day() -> pa.DataType:
    return pa.time64("us")


def _type_taken(
    kind: pa.DataType,
    timestamp: Callable[[pa.TimestampType], pa.DataType],
    time: Callable[[], pa.DataType],
) -> pa.DataType:
    """The type that Spark takes for another.

    Args:
        timestamp: makes that of a timestamp.
        time: makes that of a time of the day.
    """

    def inner(field: pa.Field) -> pa.Field:
        # Whether there are nulls is found out when rows are written: Arrow does not look.
        taken = _type_taken(field.type, timestamp, time)
        return pa.field(field.name, taken)

    is_ = pa.types
    if kind in _WIDER:
        return _WIDER[kind]
    if is_.is_timestamp(kind):
        return timestamp(kind)
    if is_.is_time(kind):
        return time()
    if is_.is_dictionary(kind):
        return _type_taken(kind.value_type, timestamp, time)
    if is_.is_fixed_size_binary(kind):
        return pa.binary()
    if is_.is_decimal(kind):
        digits = max(kind.precision, kind.precision - kind.scale)
        if digits > _MOST_DIGITS:
            raise _NoTypeError(f"decimals of Spark have at most {_MOST_DIGITS} digits")
        return pa.decimal128(digits, max(kind.scale, 0))
    if is_.is_map(kind):
        key = inner(kind.key_field).with_nullable(False)
        return pa.map_(key, inner(kind.item_field))
    if is_.is_list(kind) or is_.is_large_list(kind) or is_.is_fixed_size_list(kind):
        return pa.list_(inner(kind.value_field))
    if is_.is_struct(kind):
        return pa.struct([inner(kind.field(place)) for place in range(kind.num_fields)])
    return kind


def _spark_type(kind: pa.DataType) -> S.DataType:
    """The Spark type of a type that Spark takes."""
    is_ = pa.types
    if (known := _SAME.get(kind)) is not None:
        return known
    if is_.is_timestamp(kind):
        return S.TimestampType()
    if is_.is_time64(kind):
        return TimeType(6)
    if is_.is_decimal128(kind):
        return S.DecimalType(kind.precision, kind.scale)
    if is_.is_list(kind):
        return S.ArrayType(_spark_type(kind.value_type))
    if is_.is_map(kind):
        return S.MapType(_spark_type(kind.key_type), _spark_type(kind.item_type))
    if is_.is_struct(kind):
        fields = [kind.field(place) for place in range(kind.num_fields)]
        return S.StructType([S.StructField(f.name, _spark_type(f.type)) for f in fields])
    raise _NoTypeError(f"there is no type of Spark for {kind}")
