"""Bounds of UUIDs, which writers order by bytes, or as Java does by two signed halves."""

from __future__ import annotations

from uuid import UUID

import polars as pl

_HALF = 1 << 64
_SIGN = 1 << 63


def bounds_of_bytes(lower: pl.Series, upper: pl.Series) -> tuple[pl.Series, pl.Series]:
    """What bounds of an unknown order say in the order of bytes, by their upper halves alone."""
    halves = {
        name: values.bin.slice(0, 8).bin.reinterpret(dtype=pl.Int64, endianness="big")
        for name, values in (("lower", lower), ("upper", upper))
    }
    frame = pl.DataFrame(halves).cast(pl.Int128)
    low, high = (
        # The upper half as an unsigned number, moved down so that 128 signed bits hold the whole.
        pl.when(pl.col(name) < 0)
        .then(pl.col(name) + pl.lit(_SIGN, pl.Int128))
        .otherwise(pl.col(name) - pl.lit(_SIGN, pl.Int128))
        * pl.lit(_HALF, pl.Int128)
        for name in ("lower", "upper")
    )
    same_sign = ((pl.col("lower") < 0) == (pl.col("upper") < 0)).fill_null(False)
    nothing = pl.lit(None, pl.Int128)
    widened = frame.select(
        lower=pl.when((pl.col("lower") >= 0) | same_sign).then(low).otherwise(nothing),
        upper=pl.when((pl.col("upper") < 0) | same_sign)
        .then(high + pl.lit(_HALF - 1, pl.Int128))
        .otherwise(nothing),
    )
    crossed = (widened["lower"] > widened["upper"]).fill_null(False)
    return widened["lower"].set(crossed, None), widened["upper"].set(crossed, None)


def unsigned_key(value: UUID) -> int:
    """Return a UUID in the order of bytes, in the form of `bounds_of_bytes`."""
    return value.int - (_SIGN * _HALF)


def signed_halves(values: pl.Series) -> pl.Series:
    """UUIDs in Java's order: both halves signed, packed into one integer."""
    high, low = (
        values.bin.slice(start, 8).bin.reinterpret(dtype=pl.Int64, endianness="big")
        for start in (0, 8)
    )
    frame = pl.DataFrame({"high": high, "low": low}).cast(pl.Int128)
    packed = pl.col("high") * pl.lit(_HALF, pl.Int128) + (pl.col("low") + pl.lit(_SIGN, pl.Int128))
    return frame.select(packed).to_series()


def signed_key(value: UUID) -> int:
    """Return a UUID in Java's order, in the form of `signed_halves`."""
    high, low = value.int >> 64, value.int & (_HALF - 1)
    return ((high ^ _SIGN) - _SIGN) * _HALF + (low ^ _SIGN)
