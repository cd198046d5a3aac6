"""A bound predicate on columns of manifest entries: partition values and column metrics.

The columnar counterpart of `frazil.format.predicates.evaluate` (partition values) and
`frazil.format.predicates.ranges` (metrics): the same answers for every file, in a few operations on
whole columns.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_
from typing import Any
from uuid import UUID

import polars as pl

from frazil.errors import PredicateError
from frazil.format.partitions.partitioning import PartitionSpec
from frazil.format.predicates.evaluate import keeps_nan
from frazil.format.predicates.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BoundRef,
    Comparison,
    Expression,
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
    all_of,
    any_of,
    fold,
    leaves,
)
from frazil.format.predicates.project import inclusive, strict
from frazil.format.schema import Schema
from frazil.format.types import (
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    PrimitiveType,
    UUIDType,
)
from frazil.format.values.decimals import unscaled_at_scale
from frazil.storage.avro.binary_values import values_of
from frazil.storage.avro.columns import value_column
from frazil.storage.avro.manifest_layout import PARTITION_PREFIX

_HALF = 1 << 64
_SIGN = 1 << 63
_FEW_VALUES = 8


@dataclass(frozen=True, slots=True)
class Ranges:
    """What the metrics of each file say of one column; one row a file.

    Attributes:
        lower, upper: bounds of the values that are neither NULL nor NaN, null where not known; None
            where no file has any.
        may_be_null, may_be_nan, may_be_value: whether a row of the file may be that; without nulls.
    """

    lower: pl.Series | None
    upper: pl.Series | None
    may_be_null: pl.Series
    may_be_nan: pl.Series
    may_be_value: pl.Series


def needed_statistics(bound: Expression) -> dict[str, frozenset[int]]:
    """The statistics maps, and the fields of each, that a predicate is evaluated with."""
    needed: dict[str, set[int]] = {}
    for leaf in leaves(bound):
        ref = leaf.bound_ref
        names = ["null_value_counts"]
        if ref.is_nested:
            names.append("value_counts")
        if _is_floating(ref.type):
            names.append("nan_value_counts")
        if not isinstance(leaf, IsNull | NotNull | IsNaN | NotNaN):
            names += ["lower_bounds", "upper_bounds"]
        for name in names:
            needed.setdefault(name, set()).add(ref.field_id)
    return {name: frozenset(ids) for name, ids in needed.items()}


def only_columns(bound: Expression, field_ids: Collection[int]) -> Expression:
    """A predicate on these columns alone that is TRUE wherever the given one is."""

    def leaf(node: Expression) -> Expression:
        if isinstance(node, Leaf) and node.bound_ref.field_id not in field_ids:
            return AlwaysTrue()
        return node

    def combine(node: Expression, parts: list[Expression]) -> Expression:
        return all_of(parts) if isinstance(node, And) else any_of(parts)

    return fold(bound, leaf, combine)


def keeps_partitions(projected: Expression, entries: pl.DataFrame) -> pl.Series:
    """False for each entry whose partition a predicate on partition fields cannot be TRUE for.

    A field that the writer left out may have any value.

    Args:
        projected: bound to partition fields, as inclusive projections are.
        entries: with the `partition.<id>` columns of one spec.
    """
    return _evaluate_partitions(projected, entries, where_unknown=True)


def must_keep_partitions(projected: Expression, entries: pl.DataFrame) -> pl.Series:
    """True for each entry whose partition a predicate on partition fields is TRUE for.

    A field that the writer left out may have any value. The arguments are those of
    `keeps_partitions`, with a strict projection.
    """
    return _evaluate_partitions(projected, entries, where_unknown=False)


def _evaluate_partitions(
    projected: Expression, entries: pl.DataFrame, *, where_unknown: bool
) -> pl.Series:
    def leaf(node: Leaf) -> pl.Series:
        name = f"{PARTITION_PREFIX}{node.bound_ref.field_id}"
        if name not in entries.columns:
            return _constant(entries, where_unknown)
        return _keeps_values(node, _comparable(node.bound_ref.type, entries[name]))

    return _evaluate(projected, entries, leaf)


def may_match(
    bound: Expression, spec: PartitionSpec, schema: Schema, entries: pl.DataFrame
) -> pl.Series:
    """False for each file that, by its partition and metrics, holds no row that is kept.

    Args:
        bound: a predicate bound to the schema.
        entries: entries of one spec, with the columns that `needed_statistics` names.
    """
    ranges = _RangesOfFiles(entries)

    def leaf(node: Leaf) -> pl.Series:
        metrics = may_keep(node, ranges.of(node.bound_ref))
        return metrics & keeps_partitions(inclusive(node, spec, schema), entries)

    return _evaluate(bound, entries, leaf) & (entries["record_count"] != 0)


def must_match(
    bound: Expression, spec: PartitionSpec, schema: Schema, entries: pl.DataFrame
) -> pl.Series:
    """True for each file whose rows are all kept, by its partition or its metrics (rule 183)."""
    ranges = _RangesOfFiles(entries)

    def leaf(node: Leaf) -> pl.Series:
        metrics = must_keep(node, ranges.of(node.bound_ref))
        return metrics | must_keep_partitions(strict(node, spec, schema), entries)

    return _evaluate(bound, entries, leaf) | (entries["record_count"] == 0)


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
    opposite = leaf.negated()
    assert isinstance(opposite, Leaf)
    # On a value, a leaf is TRUE exactly where its opposite is FALSE.
    kept = ~(known.may_be_value & _may_keep_value(opposite, known))
    if not keeps_nan(leaf):
        kept &= ~known.may_be_nan
    if not isinstance(leaf, IsNull | NotNaN):
        kept &= ~known.may_be_null
    return kept


class _RangesOfFiles:
    """The ranges of each column, decoded once."""

    def __init__(self, entries: pl.DataFrame) -> None:
        self._entries = entries
        self._ranges: dict[int, Ranges] = {}

    def of(self, ref: BoundRef) -> Ranges:
        if ref.field_id not in self._ranges:
            self._ranges[ref.field_id] = ranges_of(ref, self._entries)
        return self._ranges[ref.field_id]


def ranges_of(ref: BoundRef, entries: pl.DataFrame) -> Ranges:
    """What the metrics say of a column (rules 46, 114, 117, 119, 120)."""
    records = entries["record_count"]
    trusted = records >= 0
    floating = _is_floating(ref.type)
    nulls = _counts("null_value_counts", ref, entries)
    nans = _counts("nan_value_counts", ref, entries) if floating else None
    no_nulls = nulls == 0
    if ref.is_nested:
        # Some writers do not count the fields of a struct that is NULL.
        no_nulls &= _counts("value_counts", ref, entries) == records
    all_null = (nulls >= records).fill_null(False)
    known_nans = nans.fill_null(0) if nans is not None else 0
    no_values = (nulls + known_nans >= records).fill_null(False)
    if nans is not None:
        may_be_nan = (nans != 0).fill_null(True) & ~all_null
    else:
        may_be_nan = _constant(entries, False)
    lower, upper = _bounds(ref, entries)
    known = trusted & pl.Series([isinstance(ref.type, PrimitiveType)])
    return Ranges(
        lower if lower is None else lower.set(~known, None),
        upper if upper is None else upper.set(~known, None),
        may_be_null=~(no_nulls.fill_null(False) & known),
        may_be_nan=may_be_nan | ~known,
        may_be_value=~(no_values & known),
    )


def _counts(statistic: str, ref: BoundRef, entries: pl.DataFrame) -> pl.Series:
    name = value_column(statistic, ref.field_id)
    if name not in entries.columns:
        return pl.Series([None] * len(entries), dtype=pl.Int64)
    counts = entries[name]
    return counts.set((counts < 0).fill_null(False), None)


def _bounds(ref: BoundRef, entries: pl.DataFrame) -> tuple[pl.Series | None, pl.Series | None]:
    """Bounds as values; null where they are absent or cannot be trusted."""
    names = [value_column(s, ref.field_id) for s in ("lower_bounds", "upper_bounds")]
    if any(name not in entries.columns for name in names):
        return None, None
    lower, upper = (values_of(ref.type, entries[name]) for name in names)
    if lower is None or upper is None:
        return None, None
    wrong = _constant(entries, False)
    if _is_floating(ref.type):
        # A NaN bound comes from writers that compared NaN as a number: neither bound holds.
        wrong = lower.is_nan().fill_null(False) | upper.is_nan().fill_null(False)
    if not isinstance(ref.type, UUIDType):
        wrong |= (lower > upper).fill_null(False)
    if wrong.any():
        return lower.set(wrong, None), upper.set(wrong, None)
    return lower, upper


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
        return _between(leaf, lower, upper, lambda value: _literal(kind, value))
    # Writers order UUIDs by bytes, as predicates do, or as Java does by two signed halves.
    if isinstance(leaf, Comparison) and leaf.op not in (Op.EQ, Op.NE):
        low, high = _bounds_of_bytes(lower, upper)
        return _between(leaf, low, high, _unsigned_key)
    # Equality is the same in both orders: a value is excluded where both exclude it.
    unsigned = _between(leaf, lower, upper, lambda value: value.bytes)
    unsigned |= (lower > upper).fill_null(False)
    low, high = _signed_halves(lower), _signed_halves(upper)
    signed = _between(leaf, low, high, _signed_key) | (low > high).fill_null(False)
    return unsigned | signed


def _between(
    leaf: Leaf, lower: pl.Series, upper: pl.Series, literal: Callable[[Any], Any]
) -> pl.Series:
    match leaf:
        case Comparison(op=op, literal=value):
            return _may_compare(op, _one(literal(value), lower), lower, upper)
        case In(values=values):
            return _any_between(_many(map(literal, values), lower), lower, upper)
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
        case Op.LT:
            return (lower < value).fill_null(True)
        case Op.LE:
            return (lower <= value).fill_null(True)
        case Op.GT:
            return (upper > value).fill_null(True)
        case Op.GE:
            return (upper >= value).fill_null(True)


def _any_between(values: pl.Series, lower: pl.Series, upper: pl.Series) -> pl.Series:
    """Whether one of the sorted values lies within the bounds."""
    if len(values) <= _FEW_VALUES or values.dtype == pl.Boolean:
        each = (_may_compare(Op.EQ, values[i : i + 1], lower, upper) for i in range(len(values)))
        return reduce(or_, each)
    first = values.search_sorted(lower.fill_null(values.min()))
    first = first.set(lower.is_null(), 0)
    found = values.gather(first.set(first >= len(values), None))
    return found.is_not_null() & (found <= upper).fill_null(True)


def _keeps_values(leaf: Leaf, values: pl.Series) -> pl.Series:
    """Whether a leaf is TRUE for each value, null for NULL."""
    null = values.is_null()
    nan = values.is_nan().fill_null(False) if _is_floating(leaf.bound_ref.type) else None
    kind = leaf.bound_ref.type
    match leaf:
        case Comparison(op=op, literal=literal):
            kept = _compare(op, values, _one(_literal(kind, literal), values))
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


def _compare(op: Op, values: pl.Series, value: pl.Series) -> pl.Series:
    match op:
        case Op.EQ:
            return values == value
        case Op.NE:
            return values != value
        case Op.LT:
            return values < value
        case Op.LE:
            return values <= value
        case Op.GT:
            return values > value
        case Op.GE:
            return values >= value


def _evaluate(
    bound: Expression, entries: pl.DataFrame, of_leaf: Callable[[Leaf], pl.Series]
) -> pl.Series:
    def leaf(node: Expression) -> pl.Series:
        if isinstance(node, Leaf):
            return of_leaf(node)
        if isinstance(node, AlwaysTrue | AlwaysFalse):
            return _constant(entries, isinstance(node, AlwaysTrue))
        raise PredicateError(f"{node!r} is not bound to a schema: call bind() first")

    def combine(node: Expression, parts: list[pl.Series]) -> pl.Series:
        conjunction = isinstance(node, And)
        start = _constant(entries, conjunction)
        return reduce(and_ if conjunction else or_, parts, start)

    return fold(bound, leaf, combine)


def _constant(entries: pl.DataFrame, value: bool) -> pl.Series:
    return pl.Series([value], dtype=pl.Boolean).new_from_index(0, len(entries))


def _comparable(kind: IcebergType, values: pl.Series) -> pl.Series:
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


def _is_floating(kind: IcebergType) -> bool:
    return isinstance(kind, FloatType | DoubleType)


def _bounds_of_bytes(lower: pl.Series, upper: pl.Series) -> tuple[pl.Series, pl.Series]:
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


def _unsigned_key(value: UUID) -> int:
    return value.int - (_SIGN * _HALF)


def _signed_halves(values: pl.Series) -> pl.Series:
    """UUIDs in Java's order: both halves signed, packed into one integer."""
    high, low = (
        values.bin.slice(start, 8).bin.reinterpret(dtype=pl.Int64, endianness="big")
        for start in (0, 8)
    )
    frame = pl.DataFrame({"high": high, "low": low}).cast(pl.Int128)
    packed = pl.col("high") * pl.lit(_HALF, pl.Int128) + (pl.col("low") + pl.lit(_SIGN, pl.Int128))
    return frame.select(packed).to_series()


def _signed_key(value: UUID) -> int:
    high, low = value.int >> 64, value.int & (_HALF - 1)
    return ((high ^ _SIGN) - _SIGN) * _HALF + (low ^ _SIGN)
