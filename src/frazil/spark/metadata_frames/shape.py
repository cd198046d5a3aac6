"""Polars frames of metadata tables in the columns, types and nullability that Spark shows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as S

from frazil.format import types as I
from frazil.spark.files.file_rows import arrow_type_of
from frazil.spark.types import COMMENT_KEY, SparkTypeSupport, type_to_spark


def spark_schema(columns: I.StructType, support: SparkTypeSupport) -> S.StructType:
    """The Spark schema of a metadata table: docs as comments, without field ids."""
    return S.StructType(
        [
            S.StructField(
                field.name,
                _spark_type(field.field_type, support),
                not field.required,
                {} if field.doc is None else {COMMENT_KEY: field.doc},
            )
            for field in columns.fields
        ]
    )


def dataframe_of(
    spark: SparkSession, frame: pl.DataFrame, columns: I.StructType, support: SparkTypeSupport
) -> DataFrame:
    """A frame whose columns are those of `columns`, as a DataFrame.

    A required column that is NULL somewhere is shown as nullable: lists of version 1 may lack
    counts.
    """
    known = I.StructType(
        tuple(
            replace(f, required=f.required and not frame[f.name].null_count())
            for f in columns.fields
        )
    )
    table = pa.Table.from_batches([record_batch(frame, known, support)])
    return spark.createDataFrame(table, spark_schema(known, support))


def record_batch(
    frame: pl.DataFrame, columns: I.StructType, support: SparkTypeSupport
) -> pa.RecordBatch:
    """The frame as Arrow arrays of the types that Spark's columns have."""
    arrays = [
        _shape(frame[field.name].rechunk().to_arrow(), field.field_type, support)
        for field in columns.fields
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(columns, support))


def arrow_schema(columns: I.StructType, support: SparkTypeSupport) -> pa.Schema:
    """The Arrow schema of a metadata table."""
    return pa.schema([_arrow_field(field, support) for field in columns.fields])


def _spark_type(kind: I.IcebergType, support: SparkTypeSupport) -> S.DataType:
    match kind:
        case I.StructType():
            return spark_schema(kind, support)
        case I.ListType():
            element = _spark_type(kind.element_type, support)
            return S.ArrayType(element, not kind.element_required)
        case I.MapType():
            key, value = (_spark_type(part, support) for part in (kind.key_type, kind.value_type))
            return S.MapType(key, value, not kind.value_required)
        case _:
            return type_to_spark(kind, support=support)


def _arrow_field(field: I.NestedField, support: SparkTypeSupport) -> pa.Field:
    return pa.field(field.name, _arrow_type(field.field_type, support), nullable=not field.required)


def _arrow_type(kind: I.IcebergType, support: SparkTypeSupport) -> pa.DataType:
    match kind:
        case I.StructType(fields=fields):
            return pa.struct([_arrow_field(field, support) for field in fields])
        case I.ListType():
            return pa.list_(_arrow_field(kind.element_field, support))
        case I.MapType():
            key = _arrow_type(kind.key_type, support)
            return pa.map_(key, _arrow_field(kind.value_field, support))
        case _:
            return arrow_type_of(kind, support)


def _shape(array: Any, kind: I.IcebergType, support: SparkTypeSupport) -> pa.Array:
    """An array in the type's Arrow type; a map comes as a list of structs of key and value."""
    target = _arrow_type(kind, support)
    if array.offset and isinstance(kind, I.ListType | I.MapType):
        # Offsets and masks do not go together on a slice.
        array = array.take(pa.array(range(len(array)), pa.int64()))
    match kind:
        case I.StructType(fields=fields):
            parts = [
                _shape(part, field.field_type, support)
                for part, field in zip(array.flatten(), fields, strict=True)
            ]
            if not parts:
                return pa.nulls(len(array), target)
            return pa.StructArray.from_arrays(parts, fields=list(target), mask=array.is_null())
        case I.ListType():
            items = _shape(array.values, kind.element_type, support)
            offsets = array.offsets.cast(pa.int32())
            return pa.ListArray.from_arrays(offsets, items, type=target, mask=array.is_null())
        case I.MapType():
            keys, values = array.values.flatten()
            return pa.MapArray.from_arrays(
                array.offsets.cast(pa.int32()),
                _shape(keys, kind.key_type, support),
                _shape(values, kind.value_type, support),
                type=target,
                mask=array.is_null(),
            )
        case I.UnknownType():
            return pa.nulls(len(array), target)
        case _:
            return array.cast(target, safe=False)
