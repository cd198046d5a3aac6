"""How columns are stored: their Spark types, and the values of columns that rows do not have."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any, Final

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as S

from frazil.format import types as I
from frazil.format.values.decimals import decimal_as_text
from frazil.spark.types import type_to_spark

_EPOCH: Final = dt.datetime(1970, 1, 1)


def storage_type(iceberg_type: I.IcebergType) -> S.DataType:
    """The Spark type of an aligned column, without parts of type unknown."""
    return type_to_spark(_stored_type(iceberg_type))


def _stored_type(iceberg_type: I.IcebergType) -> I.IcebergType:
    match iceberg_type:
        case I.StructType(fields=fields):
            return I.StructType(
                tuple(
                    replace(field, field_type=_stored_type(field.field_type))
                    for field in fields
                    if not isinstance(field.field_type, I.UnknownType)
                )
            )
        case I.ListType(element_type=element):
            return replace(iceberg_type, element_type=_stored_type(element))
        case I.MapType(value_type=value):
            return replace(iceberg_type, value_type=_stored_type(value))
        case _:
            return iceberg_type


def default_literal(field: I.NestedField) -> Column:
    """A field's write default as a column; null where there is none (rules 31-33, 39, 40)."""
    value, iceberg_type = field.write_default, field.field_type
    if value is None or isinstance(iceberg_type, I.UnknownType):
        return _null(iceberg_type)
    if isinstance(iceberg_type, I.StructType):
        return F.struct(
            *(
                default_literal(child).alias(child.name)
                for child in iceberg_type.fields
                if not isinstance(child.field_type, I.UnknownType)
            )
        )
    return _literal(iceberg_type, value).cast(storage_type(iceberg_type))


def _literal(iceberg_type: I.IcebergType, value: Any) -> Column:
    match iceberg_type:
        case I.DateType():
            return F.date_from_unix_date(F.lit(value))
        case I.TimestamptzType():
            return F.timestamp_micros(F.lit(value))
        case I.TimestampType():
            return F.lit((_EPOCH + dt.timedelta(microseconds=value)).isoformat(sep=" "))
        case I.UUIDType():
            return F.lit(str(value))
        case I.DecimalType(precision, scale):
            # As text, since Spark Connect gives decimals of Python too few digits.
            return F.lit(decimal_as_text(value)).cast(S.DecimalType(precision, scale))
        case _:
            return F.lit(value)


def _null(iceberg_type: I.IcebergType) -> Column:
    return F.lit(None).cast(storage_type(iceberg_type))
