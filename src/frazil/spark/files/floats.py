"""Columns of floating-point numbers, of which Spark pushes no condition into files.

In Spark -0.0 equals 0.0, and NaN is greater than every number. Parquet's filters know neither: a
dictionary holds zeros with their signs, and many writers leave NaN out of the range of a column.
A condition of anybody (a command, a join, what Spark infers from one, a user's filter) would miss
rows that are skipped so. Only predicates that are written for those filters are pushed: see
`TableReader.rows_where`.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import Column
from pyspark.sql import functions as F

from frazil.format import types as I
from frazil.format.predicates.sql.quoting import quote_name_always


def is_float(field_type: I.IcebergType) -> bool:
    """Return whether values of a type are floating-point numbers."""
    return isinstance(field_type, I.FloatType | I.DoubleType)


def holds_floats(field_type: I.IcebergType) -> bool:
    """Return whether Spark could push a comparison of floats on a column of a type or its parts."""
    return next(_paths(field_type, ()), None) is not None


def not_pushed(column: Column, field_type: I.IcebergType) -> Column:
    """Return the same column, on whose floats Spark pushes nothing into files.

    Its other parts stay as they are: they are read alone and pushed where a query takes them.
    """
    for path in _paths(field_type, ()):
        value = column
        for name in path:
            value = value.getField(name)
        # What is pushed is a column against a value, not a function of a column.
        same = F.nanvl(value, value)
        column = column.withField(quote_name_always(path), same) if path else same
    return column


def _paths(field_type: I.IcebergType, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The paths to the floats that are no part of a list or a map."""
    if is_float(field_type):
        yield path
    elif isinstance(field_type, I.StructType):
        for field in field_type.fields:
            yield from _paths(field.field_type, (*path, field.name))
