"""One bound leaf of a predicate on a column of values, and on the ranges of files."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from operator import or_
from typing import Any
from uuid import UUID

import polars as pl

from frazil.errors import PredicateError
from frazil.format.predicates.expressions import (
    Comparison,
    In,
    IsNaN,
    IsNull,
    Leaf,
    NotIn,
    NotNaN,
    NotNull,
    NotStartsWith,
    Op,
    StartsWith,
)
from frazil.format.predicates.float_order import keeps_nan
from frazil.format.types import DecimalType, FloatType, IcebergType, UUIDType
from frazil.format.values.decimals import unscaled_at_scale
from frazil.planning.prune.ranges import Ranges, is_floating

_FEW_VALUES = 8


def may_keep(leaf: Leaf, known: Ranges) -> pl.Series:
    """False for each file of which a leaf keeps no row within the ranges."""
    kept = known.may_be_value & _may_keep_value(leaf, known)
    if keeps_nan(leaf):
        kept |= known.may_be_nan
    if isinstance(leaf, IsNull | NotNaN):
        kept |= known.may_be_null
    return kept


def must_keep(leaf: Leaf, known: Ranges) -> pl.Series:
    """True for each file of which a leaf keeps every row within the ranges."""
    opposite = leaf.negation()
    assert isinstance(opposite, Leaf)
    # On a value, a leaf is TRUE exactly where its opposite is FALSE.
    kept = ~(known.may_be_value & _may_keep_value(opposite, known))
    if not keeps_nan(leaf):
        kept &= ~known.may_be_nan
    if not isinstance(leaf, IsNull | NotNaN):
        kept &= ~known.may_be_null
    return kept


def _may_keep_value(leaf: Leaf, known: Ranges) -> pl.Series:
    """False where a leaf keeps no value within the bounds, a null bound being open."""
    rows = known.may_be_value
    lower, upper = known.lower, known.upper
    if isinstance(leaf, IsNull | IsNaN):
        return pl.Series([False]).new_from_index(0, len(rows))
    if lower is None or upper is None or isinstance(leaf, NotNull | NotNaN):
        return pl.Series([True]).new_from_index(0, len(rows))
    kind = leaf.bound_ref.type
    if not isinstance(kind, UUIDType):
        return _may_be_between(leaf, lower, upper, lambda value: _literal(kind, value))
    # Writers order UUIDs by bytes, as predicates do, or as Java does by two signed halves.
    if isinstance(leaf, Comparison) and leaf.op not in (Op.EQ, Op.NE):
        low, high = bounds_of_bytes(lower, upper)
        return _may_be_between(leaf, low, high, unsigned_key)
    # Equality is the same in both orders: a value is excluded where both exclude it.
    unsigned = _may_be_between(leaf, lower, upper, lambda value: value.bytes)
    unsigned |= (lower > upper).fill_null(False)
    low, high = signed_halves(lower), signed_halves(upper)
    signed = _may_be_between(leaf, low, high, signed_key) | (low > high).fill_null(False)
    return unsigned | signed


def _may_be_between(
    leaf: Leaf, lower: pl.Series, upper: pl.Series, literal: Callable[[Any], Any]
) -> pl.Series:
    match leaf:
        case Comparison(op=op, literal=value):
            return _may_compare(op, _one(literal(value), lower), lower, upper)
        case In(values=values):
            return _may_any_be_between(_many(map(literal, values), lower), lower, upper)
        case NotIn(values=values):
            listed = _many(map(literal, values), lower)
            return ~((lower == upper) & lower.is_in(listed.implode())).fill_null(False)
        case StartsWith(prefix=prefix):
            size = len(prefix)
            below = (lower.str.head(size) <= prefix).fill_null(True)
            return below & (upper.str.head(size) >= prefix).fill_null(True)
        case NotStartsWith(prefix=prefix):
            both = lower.str.starts_with(prefix) & upper.str.starts_with(prefix)
            return ~both.fill_null(False)
    raise PredicateError(f"{leaf!r} cannot be evaluated on bounds")


def _may_compare(op: Op, value: pl.Series, lower: pl.Series, upper: pl.Series) -> pl.Series:
    match op:
        case Op.EQ:
            return (lower <= value).fill_null(True) & (upper >= value).fill_null(True)
        case Op.NE:
            return ~((lower == value) & (upper == value)).fill_null(False)
        case Op.LT | Op.LE:
            below: pl.Series = op.compare(lower, value)
            return below.fill_null(True)
        case Op.GT | Op.GE:
            above: pl.Series = op.compare(upper, value)
            return above.fill_null(True)


def _may_any_be_between(values: pl.Series, lower: pl.Series, upper: pl.Series) -> pl.Series:
    """Whether one of the sorted values lies within the bounds."""
    if len(values) <= _FEW_VALUES or values.dtype == pl.Boolean:
        each = (_may_compare(Op.EQ, values[i : i + 1], lower, upper) for i in range(len(values)))
        return reduce(or_, each)
    first = values.search_sorted(lower.fill_null(values.min()))
    first = first.set(lower.is_null(), 0)
    found = values.gather(first.set(first >= len(values), None))
    return found.is_not_null() & (found <= upper).fill_null(True)


def keeps_values(leaf: Leaf, values: pl.Series) -> pl.Series:
    """Whether a leaf is TRUE for each value, null for NULL."""
    null = values.is_null()
    nan = values.is_nan().fill_null(False) if is_floating(leaf.bound_ref.type) else None
    kind = leaf.bound_ref.type
    match leaf:
        case Comparison(op=op, literal=literal):
            kept: pl.Series = op.compare(values, _one(_literal(kind, literal), values))
        case In(values=listed):
            kept = values.is_in(_many((_literal(kind, v) for v in listed), values).implode())
        case NotIn(values=listed):
            kept = ~values.is_in(_many((_literal(kind, v) for v in listed), values).implode())
        case StartsWith(prefix=prefix):
            kept = values.str.starts_with(prefix)
        case NotStartsWith(prefix=prefix):
            kept = ~values.str.starts_with(prefix)
        case NotNull() | NotNaN():
            kept = ~null
        case IsNull() | IsNaN():
            kept = pl.Series([False]).new_from_index(0, len(values))
        case _:
            raise PredicateError(f"{leaf!r} cannot be evaluated on partitions")
    kept = kept.fill_null(False)
    if nan is not None:
        kept = (kept | nan) if keeps_nan(leaf) else (kept & ~nan)
    return (kept | null) if isinstance(leaf, IsNull | NotNaN) else (kept & ~null)


def comparable(kind: IcebergType, values: pl.Series) -> pl.Series:
    """Partition values in the form that `values_of` gives bounds."""
    if isinstance(kind, DecimalType):
        return values.to_physical()
    if isinstance(kind, FloatType):
        return values.cast(pl.Float64)
    return values


def _literal(kind: IcebergType, value: Any) -> Any:
    if isinstance(kind, DecimalType):
        return unscaled_at_scale(value, kind.scale)
    if isinstance(value, UUID):
        return value.bytes
    return value


def _one(value: Any, like: pl.Series) -> pl.Series:
    # A projected literal may lie outside of its column's type: truncate[10] of the least int does.
    return pl.Series([value], dtype=like.dtype if _fits(value, like.dtype) else pl.Int128())


def _many(values: Iterable[Any], like: pl.Series) -> pl.Series:
    fitting = [value for value in values if _fits(value, like.dtype)]
    return pl.Series(fitting, dtype=like.dtype).unique().sort()


def _fits(value: Any, dtype: pl.DataType) -> bool:
    if not isinstance(dtype, pl.Int32 | pl.Int64):
        return True
    bits = 31 if isinstance(dtype, pl.Int32) else 63
    return bool(-(1 << bits) <= value < 1 << bits)


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
