"""Single-value bytes (SPEC rules 46, 275) as columns.

The columns hold internal values in an order that polars compares as the types do: a decimal is its
unscaled 128-bit integer, a float is a double, a UUID is its 16 bytes.
"""

from __future__ import annotations

import polars as pl

from frazil.format.types import DecimalType, IcebergType
from frazil.format.types.forms import form_of
from frazil.format.values.decimals import decimal_from_unscaled

_DECIMAL_BYTES = 16
_MAX_LONG = 2**63 - 1

_DTYPES: dict[str, pl.DataType] = {
    "boolean": pl.Boolean(),
    "int": pl.Int32(),
    "long": pl.Int64(),
    "float": pl.Float32(),
    "double": pl.Float64(),
    "string": pl.String(),
    "uuid": pl.Binary(),
    "fixed": pl.Binary(),
    "binary": pl.Binary(),
}


def partition_dtype(kind: IcebergType) -> pl.DataType | None:
    """The column type of internal values; None where the type has none (unknown, geometry, …)."""
    if isinstance(kind, DecimalType):
        return pl.Decimal(38, kind.scale)
    return _DTYPES.get(form_of(kind).carrier)


def values_of(kind: IcebergType, column: pl.Series) -> pl.Series | None:
    """The values of a binary column; bytes that do not fit the type become null.

    Bytes written before a promotion are shorter: 4 bytes for a long are an int, for a double a
    float, for a timestamp a date; a decimal has any length (rule 46). None for a type whose bytes
    have no order.
    """
    form = form_of(kind)
    match form.carrier:
        case "boolean":
            return _little(column, pl.UInt8()) != 0
        case "long" if form.promoted_from == "date":
            return _timestamps(column, form.units_per_day)
        case ("long" | "double") as carrier if form.promoted_from:
            return _promote_column(column, _DTYPES[carrier], _DTYPES[form.promoted_from])
        case ("int" | "long") as carrier:
            return _little(column, _DTYPES[carrier])
        case "float":
            return _little(column, pl.Float32()).cast(pl.Float64)
        case "decimal":
            return _unscaled_integers(column)
        case "string":
            return _text(column)
        case "uuid":
            return _of_length(column, 16)
        case "fixed" | "binary":
            # Bounds of fixed values may be cut like those of binary ones.
            return column
        case _:
            return None


def decimals(values: pl.Series, scale: int) -> pl.Series:
    """Big-endian bytes as decimals; one Python value for each distinct one."""
    distinct = values.drop_nulls().unique().to_list()
    dtype = pl.Decimal(38, scale)
    if not distinct:
        return pl.Series(values.name, [None] * len(values), dtype=dtype)
    converted = [
        decimal_from_unscaled(int.from_bytes(value, "big", signed=True), scale)
        for value in distinct
    ]
    table = pl.Series(converted, dtype=dtype)
    return values.replace_strict(pl.Series(distinct), table, default=None, return_dtype=dtype)


def _little(column: pl.Series, dtype: pl.DataType) -> pl.Series:
    return column.bin.reinterpret(dtype=dtype, endianness="little")


def _promote_column(column: pl.Series, wide: pl.DataType, narrow: pl.DataType) -> pl.Series:
    values = _little(column, wide)
    if values.null_count() == column.null_count():
        return values
    return _first_known(values, _little(column, narrow).cast(wide))


def _timestamps(column: pl.Series, units_per_day: int) -> pl.Series:
    values = _little(column, pl.Int64())
    if values.null_count() == column.null_count():
        return values
    days = _little(column, pl.Int32()).cast(pl.Int64)
    last = _MAX_LONG // units_per_day
    inside = days.set(days.abs() > last, None)
    return _first_known(values, inside * units_per_day)


def _unscaled_integers(column: pl.Series) -> pl.Series:
    """Big-endian two's complement of 1 to 16 bytes as 128-bit integers."""
    bytes_ = pl.col("b")
    padding = pl.when(bytes_ >= b"\x80").then(pl.lit(b"\xff" * _DECIMAL_BYTES))
    padded = padding.otherwise(pl.lit(bytes(_DECIMAL_BYTES))) + bytes_
    value = padded.bin.tail(_DECIMAL_BYTES).bin.reinterpret(dtype=pl.Int128, endianness="big")
    fits = bytes_.bin.size().is_between(1, _DECIMAL_BYTES)
    return pl.DataFrame({"b": column}).select(pl.when(fits).then(value)).to_series()


def _text(column: pl.Series) -> pl.Series:
    try:
        return column.cast(pl.String)
    except pl.exceptions.ComputeError:
        # Only where some bytes are not UTF-8: those become null.
        return pl.Series(column.name, [_decode_text(value) for value in column], dtype=pl.String)


def _decode_text(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _of_length(column: pl.Series, length: int) -> pl.Series:
    fits = column.bin.size() == length
    return column if fits.all() else column.set(~fits, None)


def _first_known(first: pl.Series, second: pl.Series) -> pl.Series:
    return first.zip_with(first.is_not_null(), second)
