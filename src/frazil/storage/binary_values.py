"""Single-value bytes (SPEC rules 46, 275) as column expressions.

The columns hold internal values; a decimal is its unscaled 128-bit integer, strings stay UTF-8
bytes, whose order is that of their code points, and a UUID is its 16 bytes.
"""

from __future__ import annotations

from decimal import Decimal

import polars as pl

from frazil.format.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

MICROS_PER_DAY = 86_400_000_000
NANOS_PER_DAY = 1000 * MICROS_PER_DAY
_DECIMAL_BYTES = 16

PARTITION_DTYPES: dict[type[IcebergType], pl.DataType] = {
    BooleanType: pl.Boolean(),
    IntegerType: pl.Int32(),
    DateType: pl.Int32(),
    LongType: pl.Int64(),
    TimeType: pl.Int64(),
    TimestampType: pl.Int64(),
    TimestamptzType: pl.Int64(),
    TimestampNanoType: pl.Int64(),
    TimestamptzNanoType: pl.Int64(),
    FloatType: pl.Float32(),
    DoubleType: pl.Float64(),
    StringType: pl.String(),
    UUIDType: pl.Binary(),
    FixedType: pl.Binary(),
    BinaryType: pl.Binary(),
}


def partition_dtype(kind: IcebergType) -> pl.DataType | None:
    """The column type of internal values; None where the type has none (unknown, geometry, …)."""
    if isinstance(kind, DecimalType):
        return pl.Decimal(38, kind.scale)
    return PARTITION_DTYPES.get(type(kind))


def has_ordered_bytes(kind: IcebergType) -> bool:
    """Whether bounds of this type can be decoded and compared."""
    return partition_dtype(kind) is not None


def values_of(kind: IcebergType, column: pl.Expr) -> pl.Expr:
    """The values of a binary column; bytes that do not fit the type become null.

    Bytes written before a promotion are shorter: 4 bytes for a long are an int, for a double a
    float, for a timestamp a date; a decimal has any length (rule 46).
    """
    match kind:
        case BooleanType():
            byte = column.bin.reinterpret(dtype=pl.UInt8, endianness="little")
            return byte != 0
        case IntegerType() | DateType():
            return _little(column, pl.Int32())
        case LongType():
            return pl.coalesce(_little(column, pl.Int64()), _little(column, pl.Int32()))
        case TimestampType():
            return _timestamps(column, MICROS_PER_DAY)
        case TimestampNanoType():
            return _timestamps(column, NANOS_PER_DAY)
        case TimeType() | TimestamptzType() | TimestamptzNanoType():
            return _little(column, pl.Int64())
        case FloatType():
            return _little(column, pl.Float32())
        case DoubleType():
            return pl.coalesce(_little(column, pl.Float64()), _little(column, pl.Float32()))
        case DecimalType():
            return unscaled(column)
        case UUIDType():
            return pl.when(column.bin.size() == 16).then(column)
        case _:
            return column


def unscaled(column: pl.Expr) -> pl.Expr:
    """Big-endian two's complement of 1 to 16 bytes as 128-bit integers."""
    padding = pl.when(column >= b"\x80").then(pl.lit(b"\xff" * _DECIMAL_BYTES))
    padded = padding.otherwise(pl.lit(bytes(_DECIMAL_BYTES))) + column
    value = padded.bin.tail(_DECIMAL_BYTES).bin.reinterpret(dtype=pl.Int128, endianness="big")
    return pl.when(column.bin.size().is_between(1, _DECIMAL_BYTES)).then(value)


def unscaled_of(value: Decimal, scale: int) -> int:
    """The unscaled integer of an internal decimal value of that scale."""
    sign, digits, exponent = value.as_tuple()
    number = int("".join(map(str, digits)) or "0")
    shift = int(exponent) + scale
    number = number * 10**shift if shift >= 0 else number // 10**-shift
    return -number if sign else number


def decimals(values: pl.Series, scale: int) -> pl.Series:
    """Big-endian bytes as decimals; one Python value for each distinct one."""
    distinct = values.drop_nulls().unique().to_list()
    dtype = pl.Decimal(38, scale)
    if not distinct:
        return pl.Series(values.name, [None] * len(values), dtype=dtype)
    converted = [
        Decimal(int.from_bytes(value, "big", signed=True)).scaleb(-scale) for value in distinct
    ]
    table = pl.Series(converted, dtype=dtype)
    return values.replace_strict(pl.Series(distinct), table, default=None, return_dtype=dtype)


def _little(column: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    return column.bin.reinterpret(dtype=dtype, endianness="little")


def _timestamps(column: pl.Expr, units_per_day: int) -> pl.Expr:
    days = _little(column, pl.Int32()).cast(pl.Int64)
    return pl.coalesce(_little(column, pl.Int64()), days * units_per_day)
