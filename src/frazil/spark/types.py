"""Iceberg schemas as Spark schemas and back.

| Iceberg | Spark |
|---|---|
| boolean, int, long, float, double, decimal(P, S), date | the same |
| timestamp / timestamptz | timestamp_ntz / timestamp |
| timestamp_ns, timestamptz_ns | bigint (nanoseconds) |
| time | time(6), or bigint (microseconds) |
| string, uuid | string |
| fixed(L), binary | binary |
| geometry, geography | the same, or binary (WKB) |
| variant / unknown | variant / void |
| struct, list, map | struct, array, map |

Types that a session has switched off (`SparkTypeSupport`) take their second form. From Spark,
byte and short become int, char and varchar become string.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import Column
from pyspark.sql import types as S

from frazil.errors import UnsupportedError
from frazil.format import types as I
from frazil.format.schema import Schema
from frazil.format.types.forms import SQL_TYPES, form_of
from frazil.format.types.inside import holds_type
from frazil.spark.abilities import GeographyType, GeometryType, TimeType

FIELD_ID_KEY: Final = "parquet.field.id"
"""The metadata key by which Spark's Parquet reader and writer know a field's id."""

COMMENT_KEY: Final = "comment"
WGS84_SRID: Final = 4326


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkTypeSupport:
    """Which of Spark's newer types the session has switched on.

    Attributes:
        time: ``spark.sql.timeType.enabled``.
        geospatial: ``spark.sql.geospatial.enabled``.
    """

    time: bool = False
    geospatial: bool = False


NO_NEW_TYPES: Final = SparkTypeSupport()

_OF_SQL: Final[dict[str, S.DataType]] = {
    kind.simpleString(): kind
    for kind in (
        *(S.BooleanType(), S.IntegerType(), S.LongType(), S.FloatType(), S.DoubleType()),
        *(S.DateType(), S.TimestampNTZType(), S.TimestampType(), S.StringType(), S.BinaryType()),
        *(S.VariantType(), S.NullType()),
    )
}

_FROM_SPARK: Final[dict[type[S.DataType], I.IcebergType]] = {
    **{type(kind): SQL_TYPES[name] for name, kind in _OF_SQL.items()},
    **dict.fromkeys((S.ByteType, S.ShortType), I.IntegerType()),
    **dict.fromkeys((S.CharType, S.VarcharType), I.StringType()),
}


def schema_to_spark(schema: Schema, *, support: SparkTypeSupport = NO_NEW_TYPES) -> S.StructType:
    """The Spark schema of a table, each field's id in its metadata under `FIELD_ID_KEY`."""
    return struct_to_spark(schema.as_struct(), support=support)


def struct_to_spark(
    struct: I.StructType, *, support: SparkTypeSupport = NO_NEW_TYPES
) -> S.StructType:
    """A struct's fields with their ids and, as ``comment``, their docs."""
    return S.StructType([_spark_field(field, support) for field in struct.fields])


def type_to_spark(
    iceberg_type: I.IcebergType, *, support: SparkTypeSupport = NO_NEW_TYPES
) -> S.DataType:
    """The Spark type that holds an Iceberg type's values.

    Raises:
        UnsupportedError: a type that Spark has no place for.
    """
    match iceberg_type:
        case I.DecimalType(precision=precision, scale=scale):
            return S.DecimalType(precision, scale)
        case I.StructType():
            return struct_to_spark(iceberg_type, support=support)
        case I.ListType():
            return S.ArrayType(
                type_to_spark(iceberg_type.element_type, support=support),
                not iceberg_type.element_required,
            )
        case I.MapType():
            return S.MapType(
                type_to_spark(iceberg_type.key_type, support=support),
                type_to_spark(iceberg_type.value_type, support=support),
                not iceberg_type.value_required,
            )
        case I.TimeType() if support.time:
            return TimeType(6)
        case I.GeometryType(crs=crs):
            native = support.geospatial and _is_default(crs)
            return GeometryType(WGS84_SRID) if native else S.BinaryType()
        case I.GeographyType(crs=crs, algorithm=algorithm):
            native = (
                support.geospatial and _is_default(crs) and algorithm == I.DEFAULT_EDGE_ALGORITHM
            )
            return GeographyType(WGS84_SRID) if native else S.BinaryType()
    plain = _OF_SQL.get(form_of(iceberg_type).spark)
    if plain is None:
        raise UnsupportedError(f"Spark has no type for Iceberg's {iceberg_type}")
    return plain


def shows_times(iceberg_type: I.IcebergType, support: SparkTypeSupport) -> bool:
    """Whether Spark's own times of the day are in the Spark type that holds a type's values."""
    return support.time and holds_type(iceberg_type, I.TimeType)


def with_fields_made(
    data_type: S.DataType, make: Callable[[S.StructField, S.DataType], S.StructField]
) -> S.DataType:
    """Return a type in which each field of a struct is made of the one there and its new type."""
    match data_type:
        case S.StructType(fields=fields):
            return S.StructType([make(f, with_fields_made(f.dataType, make)) for f in fields])
        case S.ArrayType(elementType=element, containsNull=has_null):
            return S.ArrayType(with_fields_made(element, make), has_null)
        case S.MapType(keyType=key, valueType=value, valueContainsNull=has_null):
            made = with_fields_made(key, make), with_fields_made(value, make)
            return S.MapType(*made, has_null)
        case _:
            return data_type


def _is_default(crs: str) -> bool:
    # DuckDB writes the name in lower case.
    return crs.upper() == I.DEFAULT_CRS


def schema_from_spark(schema: S.StructType) -> Schema:
    """A table schema with fresh ids, top-level fields first; nullability is kept.

    Raises:
        UnsupportedError: columns whose types Iceberg cannot hold; all are listed.
    """
    _check_storable(schema)
    return Schema(_FreshIds(keep_required=True).fields(schema))


def query_schema_from_spark(schema: S.StructType) -> Schema:
    """A table schema for a query's result: as `schema_from_spark`, every field optional.

    A query's nullability says what the optimizer could prove, not what the user wants, so
    CREATE TABLE AS SELECT makes every field optional, as the Java runtime does by default.
    """
    _check_storable(schema)
    return Schema(_FreshIds(keep_required=False).fields(schema))


def _spark_field(field: I.NestedField, support: SparkTypeSupport) -> S.StructField:
    metadata: dict[str, Any] = {FIELD_ID_KEY: field.field_id}
    if field.doc is not None:
        metadata[COMMENT_KEY] = field.doc
    spark_type = type_to_spark(field.field_type, support=support)
    return S.StructField(field.name, spark_type, not field.required, metadata)


def named_column(column: Column, field: I.NestedField) -> Column:
    """Return a column under a field's name, with its comment."""
    metadata = {} if field.doc is None else {COMMENT_KEY: field.doc}
    return column.alias(field.name, metadata=metadata)


def primitive_from_spark(spark_type: S.DataType) -> I.IcebergType | None:
    """The Iceberg type of a Spark type that is not nested, or None where there is none."""
    known = _FROM_SPARK.get(type(spark_type))
    if known is not None:
        return known
    if isinstance(spark_type, S.DecimalType) and spark_type.scale >= 0:
        return I.DecimalType(spark_type.precision, spark_type.scale)
    if isinstance(spark_type, TimeType):
        return I.TimeType()
    if isinstance(spark_type, GeometryType) and spark_type.srid == WGS84_SRID:
        return I.GeometryType()
    if isinstance(spark_type, GeographyType) and spark_type.srid == WGS84_SRID:
        return I.GeographyType()
    return None


def _check_storable(schema: S.StructType) -> None:
    problems = [
        f"{path}: {spark_type.simpleString()}"
        for path, spark_type in _leaves("", schema)
        if primitive_from_spark(spark_type) is None
    ]
    if problems:
        raise UnsupportedError(
            "Iceberg has no type for these columns; cast or drop them: " + ", ".join(problems)
        )


def _leaves(path: str, spark_type: S.DataType) -> Iterator[tuple[str, S.DataType]]:
    if isinstance(spark_type, S.StructType):
        for field in spark_type.fields:
            yield from _leaves(f"{path}.{field.name}" if path else field.name, field.dataType)
    elif isinstance(spark_type, S.ArrayType):
        yield from _leaves(f"{path}.element", spark_type.elementType)
    elif isinstance(spark_type, S.MapType):
        yield from _leaves(f"{path}.key", spark_type.keyType)
        yield from _leaves(f"{path}.value", spark_type.valueType)
    else:
        yield path, spark_type


class _FreshIds:
    """Numbers the fields of one struct before those inside them, from 1."""

    def __init__(self, *, keep_required: bool) -> None:
        self._last = 0
        self._is_required: Callable[[bool], bool] = (
            (lambda nullable: not nullable) if keep_required else (lambda nullable: False)
        )

    def fields(self, struct: S.StructType) -> tuple[I.NestedField, ...]:
        ids = [self._next_id() for _ in struct.fields]
        return tuple(
            I.NestedField(
                field_id,
                field.name,
                self._type(field.dataType),
                self._is_required(field.nullable),
                (field.metadata or {}).get(COMMENT_KEY),
            )
            for field_id, field in zip(ids, struct.fields, strict=True)
        )

    def _next_id(self) -> int:
        self._last += 1
        return self._last

    def _type(self, spark_type: S.DataType) -> I.IcebergType:
        if isinstance(spark_type, S.StructType):
            return I.StructType(self.fields(spark_type))
        if isinstance(spark_type, S.ArrayType):
            element_id = self._next_id()
            required = self._is_required(spark_type.containsNull)
            return I.ListType(element_id, self._type(spark_type.elementType), required)
        if isinstance(spark_type, S.MapType):
            key_id, value_id = self._next_id(), self._next_id()
            return I.MapType(
                key_id,
                self._type(spark_type.keyType),
                value_id,
                self._type(spark_type.valueType),
                self._is_required(spark_type.valueContainsNull),
            )
        known = primitive_from_spark(spark_type)
        if known is None:
            raise UnsupportedError(f"Iceberg has no type for Spark's {spark_type.simpleString()}")
        return known
