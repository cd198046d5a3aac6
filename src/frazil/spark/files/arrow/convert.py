"""From the types that Spark's Parquet reader yields to the types that users see.

Spark reads a uuid as 16 bytes; users see text. A column of type unknown is not in files at all
(SPEC rule 259). Native geospatial columns are read as WKB.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as S

from frazil.format import types as I
from frazil.format.types.inside import fields_inside
from frazil.spark.types import FIELD_ID_KEY, WGS84_SRID, SparkTypeSupport, type_to_spark


def is_scanned(field_type: I.IcebergType) -> bool:
    """Whether files can hold a column of this type: neither unknown nor a struct of only such."""
    if isinstance(field_type, I.UnknownType):
        return False
    if isinstance(field_type, I.StructType) and field_type.fields:
        return any(is_scanned(field.field_type) for field in field_type.fields)
    return True


def needs_conversion(field_type: I.IcebergType, support: SparkTypeSupport) -> bool:
    """Whether the scan's type differs from the user's, at any depth."""
    if isinstance(field_type, I.UUIDType | I.UnknownType):
        return True
    if isinstance(field_type, I.GeometryType | I.GeographyType):
        return not isinstance(type_to_spark(field_type, support=support), S.BinaryType)
    return any(needs_conversion(child.field_type, support) for child in fields_inside(field_type))


def scan_type(field_type: I.IcebergType, support: SparkTypeSupport) -> S.DataType:
    """The Spark type to read a column of this type with; nested fields carry their ids."""
    match field_type:
        case I.UUIDType() | I.GeometryType() | I.GeographyType():
            return S.BinaryType()
        case I.StructType(fields=fields):
            return S.StructType(
                [
                    S.StructField(
                        field.name,
                        scan_type(field.field_type, support),
                        not field.required,
                        {FIELD_ID_KEY: field.field_id},
                    )
                    for field in fields
                    if is_scanned(field.field_type)
                ]
            )
        case I.ListType():
            element = scan_type(field_type.element_type, support)
            return S.ArrayType(element, not field_type.element_required)
        case I.MapType():
            return S.MapType(
                scan_type(field_type.key_type, support),
                scan_type(field_type.value_type, support),
                not field_type.value_required,
            )
        case _:
            return type_to_spark(field_type, support=support)


def convert_column(
    column: Column,
    field_type: I.IcebergType,
    support: SparkTypeSupport,
    *,
    scanned: I.IcebergType | None = None,
    required: bool = False,
) -> Column:
    """The column in the user's type; the same column where nothing has to change.

    Args:
        scanned: the column's type in the scan, where structs may hold more fields than wanted.
    """
    source = field_type if scanned is None else scanned
    if source == field_type and not needs_conversion(field_type, support):
        return column
    match field_type, source:
        case I.UUIDType(), _:
            text = _uuid_text(column)
            return text if required else F.when(column.isNotNull(), text)
        case I.UnknownType(), _:
            return F.lit(None)
        case I.GeometryType(), _:
            plain = F.call_function("st_geomfromwkb", column)
            return F.call_function("st_setsrid", plain, F.lit(WGS84_SRID))
        case I.GeographyType(), _:
            return F.call_function("st_geogfromwkb", column)
        case I.StructType(fields=fields), I.StructType():
            if not is_scanned(field_type):
                return F.lit(None).cast(type_to_spark(field_type, support=support))
            parts = [_child(column, f, source, support).alias(f.name) for f in fields]
            rebuilt = F.struct(*parts)
            return rebuilt if required else F.when(column.isNotNull(), rebuilt)
        case I.ListType(element_type=element_type), I.ListType(element_type=scanned_type):
            needed = field_type.element_required
            return F.transform(
                column,
                lambda item: convert_column(
                    item, element_type, support, scanned=scanned_type, required=needed
                ),
            )
        case I.MapType(), I.MapType():
            key_type, value_type, stored = field_type.key_type, field_type.value_type, source
            needed = field_type.value_required
            entries = F.transform(
                F.map_entries(column),
                lambda entry: F.struct(
                    convert_column(entry["key"], key_type, support, required=True).alias("key"),
                    convert_column(
                        entry["value"],
                        value_type,
                        support,
                        scanned=stored.value_type,
                        required=needed,
                    ).alias("value"),
                ),
            )
            return F.map_from_entries(entries)
        case _:
            return column


def pruned_column(column: Column, field_type: I.IcebergType, held: I.IcebergType) -> Column:
    """A column of the user's types without the fields of structs that were not asked for."""
    match field_type, held:
        case I.StructType(fields=fields), I.StructType() if field_type != held:
            parts = []
            for field in fields:
                inside = held.field_by_id(field.field_id)
                child = column.getField(field.name)
                inner = field.field_type if inside is None else inside.field_type
                parts.append(pruned_column(child, field.field_type, inner).alias(field.name))
            return F.when(column.isNotNull(), F.struct(*parts))
        case _:
            return column


def _child(
    struct: Column, field: I.NestedField, source: I.StructType, support: SparkTypeSupport
) -> Column:
    if not is_scanned(field.field_type):
        return F.lit(None).cast(type_to_spark(field.field_type, support=support))
    stored = source.field_by_id(field.field_id)
    return convert_column(
        struct.getField(field.name),
        field.field_type,
        support,
        scanned=None if stored is None else stored.field_type,
        required=field.required,
    )


def _uuid_text(column: Column) -> Column:
    text = F.lower(F.hex(column))
    parts = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
    return F.concat_ws("-", *(F.substring(text, start, length) for start, length in parts))
