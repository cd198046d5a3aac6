"""Columns as the values that sketches are made of: the single-value bytes of Iceberg (rule 275)."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as S

from frazil.format import types as I
from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.format.values import to_bytes
from frazil.spark.session.tasks import value_function


def single_values(parts: Sequence[str], kind: I.IcebergType) -> Column:
    """Return a column whose values Spark's sketch hashes as the single-value bytes are hashed.

    Spark hashes long and double as their 8 bytes, little-endian, and text as UTF-8.

    Args:
        parts: the name of the column, after those of the structs that it is in.
        kind: of the column.
    """
    quoted = quote_name_always(parts)
    column = F.col(quoted)
    match kind:
        case I.LongType() | I.DoubleType() | I.StringType() | I.BinaryType() | I.FixedType():
            return column
        case I.BooleanType():
            return F.expr(f"if({quoted}, x'01', if({quoted} is null, null, x'00'))")
        case I.IntegerType():
            return _four_bytes(quoted)
        case I.DateType():
            return _four_bytes(f"unix_date({quoted})")
        case I.TimestamptzType():
            return F.unix_micros(column)
        case I.TimestampType():
            # A cast would go through the session's zone.
            return F.expr(f"timestampdiff(MICROSECOND, timestamp_ntz'1970-01-01', {quoted})")
        case I.UUIDType():
            return F.expr(f"unhex(replace(cast({quoted} as string), '-', ''))")
    return value_function(to_bytes, kind, S.BinaryType())(column)


def _four_bytes(expression: str) -> Column:
    """An int as 4 bytes, little-endian."""
    digits = f"lpad(hex(cast({expression} as bigint) & 4294967295), 8, '0')"
    swapped = " || ".join(f"substr({digits}, {start}, 2)" for start in (7, 5, 3, 1))
    return F.expr(f"unhex({swapped})")
