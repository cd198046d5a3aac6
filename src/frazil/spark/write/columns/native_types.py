"""Which columns Spark's Parquet writer writes as Iceberg wants them."""

from __future__ import annotations

from frazil.format import types as I


def holds_type(iceberg_type: I.IcebergType, *wanted: type[I.IcebergType]) -> bool:
    """Return whether a column or one of its parts is of a type."""
    if isinstance(iceberg_type, wanted):
        return True
    return any(
        holds_type(field.field_type, *wanted) for field in getattr(iceberg_type, "fields", ())
    )


def lacks_label(iceberg_type: I.IcebergType) -> bool:
    """Return whether Spark writes the column without an id or its logical type."""
    return holds_type(
        iceberg_type,
        I.StructType,
        I.ListType,
        I.MapType,
        I.TimeType,
        I.TimestampNanoType,
        I.TimestamptzNanoType,
        I.GeometryType,
        I.GeographyType,
    )


def lacks_physical_type(iceberg_type: I.IcebergType) -> bool:
    """Return whether Spark's Parquet writer has no physical type for the column."""
    return holds_type(iceberg_type, I.UUIDType, I.FixedType)
