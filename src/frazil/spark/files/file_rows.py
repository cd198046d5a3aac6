"""What the plan knows of a file, joined to its rows by the file's ordinal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import polars as pl
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as S

from frazil.format import types as I
from frazil.spark.abilities import TimeType
from frazil.spark.files.arrow.convert import scan_type
from frazil.spark.files.parquet.file_log import ORDINAL
from frazil.spark.types import SparkTypeSupport, type_to_spark

_KEY: Final = "_frazil_joined_ordinal"


@dataclass(frozen=True, slots=True)
class FileValue:
    """One value a file.

    Attributes:
        name: a column name that the rows do not have yet.
        values: in the order of the files, as Arrow values of the Spark type.
        spark_type: the column's type.
    """

    name: str
    values: pa.Array
    spark_type: S.DataType

    @classmethod
    def of_longs(cls, name: str, values: pl.Series) -> FileValue:
        """A column of longs."""
        return cls(name, values.cast(pl.Int64).to_arrow(), S.LongType())


def attach(
    spark: SparkSession, rows: DataFrame, ordinals: pl.Series, values: Sequence[FileValue]
) -> tuple[DataFrame, dict[str, Column]]:
    """The rows with their files' values, and each value's column by its name.

    A value that all files share is a literal where it is NULL or a long; the others come by a
    broadcast join, one small row a file. The rows must have the column `ORDINAL`.

    Args:
        ordinals: the files' ordinals, in the order of the values.
    """
    columns: dict[str, Column] = {}
    joined: list[FileValue] = []
    for value in values:
        if value.values.null_count == len(value.values):
            columns[value.name] = F.lit(None).cast(value.spark_type)
        elif _is_one_integer(value):
            columns[value.name] = F.lit(value.values[0].as_py()).cast(value.spark_type)
        else:
            joined.append(value)
    if not joined:
        return rows, columns
    table = pa.table(
        [ordinals.cast(pl.Int64).to_arrow(), *(value.values for value in joined)],
        names=[_KEY, *(value.name for value in joined)],
    )
    schema = S.StructType(
        [
            S.StructField(_KEY, S.LongType(), False),
            *(S.StructField(v.name, v.spark_type, v.values.null_count > 0) for v in joined),
        ]
    )
    files = F.broadcast(spark.createDataFrame(table, schema))
    attached = rows.join(files, rows[ORDINAL] == files[_KEY], "inner").drop(_KEY)
    return attached, {**columns, **{value.name: F.col(value.name) for value in joined}}


def _is_one_integer(value: FileValue) -> bool:
    whole = isinstance(value.spark_type, S.LongType | S.IntegerType)
    return whole and value.values.null_count == 0 and len(value.values.unique()) == 1


def file_value(
    name: str, values: pl.Series, field_type: I.IcebergType, support: SparkTypeSupport
) -> FileValue:
    """Return internal values (see `frazil.storage.avro.binary_values`) as the user's type."""
    return FileValue(
        name, arrow_values(values, field_type, support), type_to_spark(field_type, support=support)
    )


def scan_value(
    name: str, values: pl.Series, field_type: I.IcebergType, support: SparkTypeSupport
) -> FileValue:
    """A column of internal values as the type that a scan yields for such a column."""
    if isinstance(field_type, I.UUIDType):
        return FileValue(name, values.to_arrow().cast(pa.binary()), S.BinaryType())
    return FileValue(
        name, arrow_values(values, field_type, support), scan_type(field_type, support)
    )


def partition_value(
    name: str,
    fields: Sequence[I.NestedField],
    values: Mapping[int, pl.Series],
    count: int,
    support: SparkTypeSupport,
) -> FileValue:
    """The ``_partition`` struct of every file: NULL for a field that its spec does not have."""
    arrays = [
        arrow_values(values[field.field_id], field.field_type, support)
        if field.field_id in values
        else pa.nulls(count, arrow_type_of(field.field_type, support))
        for field in fields
    ]
    if not arrays:
        return FileValue(name, pa.nulls(count, pa.struct([])), S.StructType([]))
    struct = pa.StructArray.from_arrays(arrays, names=[field.name for field in fields])
    types = [type_to_spark(field.field_type, support=support) for field in fields]
    schema = S.StructType(
        [S.StructField(field.name, kind) for field, kind in zip(fields, types, strict=True)]
    )
    return FileValue(name, struct, schema)


def arrow_values(
    values: pl.Series, field_type: I.IcebergType, support: SparkTypeSupport
) -> pa.Array:
    """Internal values as Arrow values of the type that Spark shows."""
    if isinstance(field_type, I.UUIDType):
        texts = [None if raw is None else str(UUID(bytes=bytes(raw))) for raw in values]
        return pa.array(texts, pa.string())
    target = arrow_type_of(field_type, support)
    if isinstance(field_type, I.UnknownType):
        return pa.nulls(len(values), target)
    array: Any = values.to_arrow()
    if isinstance(field_type, I.FloatType):
        return array.cast(pa.float32(), safe=False)
    return array.cast(target)


def arrow_type_of(field_type: I.IcebergType, support: SparkTypeSupport) -> pa.DataType:
    """The Arrow type of the Spark type that shows a primitive type's values."""
    match type_to_spark(field_type, support=support):
        case S.DecimalType(precision=precision, scale=scale):
            return pa.decimal128(precision, scale)
        case kind:
            return _ARROW[type(kind)]


_ARROW: Final[Mapping[type[S.DataType], pa.DataType]] = {
    S.BooleanType: pa.bool_(),
    S.IntegerType: pa.int32(),
    S.LongType: pa.int64(),
    S.FloatType: pa.float32(),
    S.DoubleType: pa.float64(),
    S.DateType: pa.date32(),
    TimeType: pa.time64("us"),
    S.TimestampNTZType: pa.timestamp("us"),
    S.TimestampType: pa.timestamp("us", tz="UTC"),
    S.StringType: pa.string(),
    S.BinaryType: pa.binary(),
    S.NullType: pa.null(),
}
