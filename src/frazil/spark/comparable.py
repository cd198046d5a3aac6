"""Columns in a form whose equality is that of the stored values.

Spark neither groups by maps and variants, nor tells -0.0 from 0.0. Rows are compared by these forms
and returned as they are.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as S


def comparable(column: Column, data_type: S.DataType) -> Column:
    """A column that can be grouped by: NULL equals NULL, NaN equals NaN, -0.0 differs from 0.0.

    Maps are equal where their entries are, in whatever order.
    """
    if _is_comparable(data_type):
        return column
    match data_type:
        case S.FloatType() | S.DoubleType():
            return column.cast("string")
        case S.ArrayType(elementType=element):
            return F.transform(column, lambda item: comparable(item, element))
        case S.MapType(keyType=key, valueType=value):
            entries = F.transform(
                F.map_entries(column),
                lambda entry: F.struct(
                    comparable(entry["key"], key).alias("key"),
                    comparable(entry["value"], value).alias("value"),
                ),
            )
            return F.array_sort(entries)
        case S.StructType(fields=fields):
            parts = [
                comparable(column.getField(field.name), field.dataType).alias(f"c{place}")
                for place, field in enumerate(fields)
            ]
            return F.when(column.isNotNull(), F.struct(*parts))
        case S.VariantType():
            # Text alone would not tell a number from a text of its digits.
            parts = [F.to_json(column), F.schema_of_variant(column)]
            return F.when(column.isNotNull(), F.struct(*parts))
        case _:
            return F.call_function("st_asbinary", column)


def _is_comparable(data_type: S.DataType) -> bool:
    match data_type:
        case S.ArrayType(elementType=element):
            return _is_comparable(element)
        case S.StructType(fields=fields):
            return all(_is_comparable(field.dataType) for field in fields)
        case S.MapType() | S.VariantType() | S.FloatType() | S.DoubleType():
            return False
        case _:
            return data_type.typeName() not in ("geometry", "geography")
