"""Iceberg's types and their names (SPEC rules 14-29, 197)."""

from __future__ import annotations

from frazil.format.types.forms import (
    EXACT_TYPES,
    ORDERED_TYPES,
    TEMPORAL_TYPES,
)
from frazil.format.types.forms import FORMS as FORMS
from frazil.format.types.forms import SQL_TYPES as SQL_TYPES
from frazil.format.types.forms import WITHOUT_PARAMETERS as WITHOUT_PARAMETERS
from frazil.format.types.forms import form_of as form_of
from frazil.format.types.model import (
    DEFAULT_CRS,
    DEFAULT_EDGE_ALGORITHM,
    EDGE_ALGORITHMS,
    MAX_DECIMAL_PRECISION,
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
    VariantType,
)
from frazil.format.types.text import as_type, type_named

__all__ = [
    "DEFAULT_CRS",
    "DEFAULT_EDGE_ALGORITHM",
    "EDGE_ALGORITHMS",
    "EXACT_TYPES",
    "MAX_DECIMAL_PRECISION",
    "ORDERED_TYPES",
    "TEMPORAL_TYPES",
    "BinaryType",
    "BooleanType",
    "DateType",
    "DecimalType",
    "DoubleType",
    "FixedType",
    "FloatType",
    "GeographyType",
    "GeometryType",
    "IcebergType",
    "IntegerType",
    "ListType",
    "LongType",
    "MapType",
    "NestedField",
    "PrimitiveType",
    "StringType",
    "StructType",
    "TimeType",
    "TimestampNanoType",
    "TimestampType",
    "TimestamptzNanoType",
    "TimestamptzType",
    "UUIDType",
    "UnknownType",
    "VariantType",
    "as_type",
    "type_named",
]
