"""Predicates on single values, as the reference for `frazil.planning.prune`, which is on columns.

`keeps` is the meaning of a predicate on a row or a partition. What is known of many rows, by a
file's metrics or a manifest's summaries, is a `ColumnRange` a column: which kinds of rows there may
be (NULL, NaN, values) and bounds of the values. ``may_match`` is False only where no such row can
be kept, ``must_match`` is True only where every such row is kept. What is not known, or contradicts
itself, never decides. A residual is what is left to check once the partition is known (rule 183).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from frazil.errors import FrazilError, PredicateError
from frazil.format import types as T
from frazil.format.manifests import DataFile, FieldSummary, ManifestFile
from frazil.format.partitions.partitioning import PartitionSpec
from frazil.format.predicates import (
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
    Or,
    StartsWith,
    all_of,
    any_of,
    fold,
    inclusive,
    strict,
)
from frazil.format.schema import Schema
from frazil.format.values import from_bytes


def may_match(bound: Expression, file: DataFile) -> bool:
    """False where a file's metrics show that it holds no row that the predicate keeps (rule 174).

    Args:
        bound: a predicate bound to the table's schema.
    """
    if file.record_count == 0:
        return False
    return may_match_ranges(bound, lambda ref: range_in_file(ref, file))


def must_match(bound: Expression, file: DataFile) -> bool:
    """True where a file's metrics show that the predicate keeps each of its rows."""
    if file.record_count == 0:
        return True
    return must_match_ranges(bound, lambda ref: range_in_file(ref, file))


def may_match_manifest(
    projected: Expression, manifest: ManifestFile, *, partition_type: T.StructType
) -> bool:
    """False where a manifest's summaries show that no file's partition matches (rule 171).

    Args:
        projected: an inclusive projection on the manifest's own spec (rule 172).
        partition_type: of that spec; there is one summary for each field, in order (rule 164).
    """
    summaries = manifest.partitions or ()
    fields = partition_type.fields
    known = dict(zip((field.field_id for field in fields), summaries, strict=False))
    if len(summaries) != len(fields):
        known = {}

    def range_of(ref: BoundRef) -> ColumnRange:
        summary = known.get(ref.field_id)
        return UNKNOWN_RANGE if summary is None else range_in_summary(ref.type, summary)

    return may_match_ranges(projected, range_of)


def keeps(bound: Expression, row: Mapping[int, Any]) -> bool:
    """True where the predicate is TRUE for a row.

    Args:
        bound: a predicate bound to the row's schema.
        row: internal values by field id, None for NULL; a field that is missing is NULL.

    Raises:
        PredicateError: where the predicate is not bound.
    """

    def leaf(node: Expression) -> bool:
        if isinstance(node, Leaf):
            return keeps_value(node, row.get(node.bound_ref.field_id))
        return _constant(node)

    return fold(bound, leaf, _combined)


def keeps_partition(projected: Expression, spec: PartitionSpec, partition: Sequence[Any]) -> bool:
    """True where a predicate on partition fields is TRUE for a partition tuple in spec order."""
    return keeps(projected, partition_values(spec, partition))


def partition_values(spec: PartitionSpec, partition: Sequence[Any]) -> dict[int, Any]:
    """The values of a partition tuple by partition field id.

    Raises:
        PredicateError: where the tuple has not one value for each field of the spec.
    """
    if len(partition) != len(spec.fields):
        raise PredicateError(
            f"the partition {tuple(partition)!r} has {len(partition)} values, and spec "
            f"{spec.spec_id} has {len(spec.fields)} fields"
        )
    return {field.field_id: value for field, value in zip(spec.fields, partition, strict=True)}


def _constant(node: Expression) -> bool:
    if isinstance(node, AlwaysTrue | AlwaysFalse):
        return isinstance(node, AlwaysTrue)
    raise PredicateError(f"{node!r} is not bound to a schema: call bind() first")


def _combined(node: Expression, parts: list[bool]) -> bool:
    if isinstance(node, And):
        return all(parts)
    if isinstance(node, Or):
        return any(parts)
    raise PredicateError(f"{node!r} is not bound to a schema: call bind() first")


class Residuals:
    """The residuals of one predicate for the partitions of one spec.

    Each part of the predicate that the partition decides becomes TRUE or FALSE; the rest stays. On
    rows of the partition, the residual keeps exactly the rows that the predicate keeps.
    """

    __slots__ = ("_bound", "_projected", "_spec")

    def __init__(self, bound: Expression, spec: PartitionSpec, schema: Schema) -> None:
        self._bound = bound
        self._spec = spec
        # Keyed by identity: hashing a leaf costs its literals, of which there may be many.
        self._projected: dict[int, tuple[Expression, Expression]] = {}

        def project(node: Expression) -> None:
            if isinstance(node, Leaf):
                self._projected[id(node)] = (
                    strict(node, spec, schema),
                    inclusive(node, spec, schema),
                )

        fold(bound, project, lambda _node, _parts: None)

    def for_partition(self, partition: Sequence[Any]) -> Expression:
        """The residual for a partition tuple in spec order.

        Raises:
            PredicateError: where the tuple has not one value for each field of the spec.
        """
        values = partition_values(self._spec, partition)

        def leaf(node: Expression) -> Expression:
            if id(node) not in self._projected:
                return node
            sure, possible = self._projected[id(node)]
            if keeps(sure, values):
                return AlwaysTrue()
            return node if keeps(possible, values) else AlwaysFalse()

        def combine(node: Expression, parts: list[Expression]) -> Expression:
            return all_of(parts) if isinstance(node, And) else any_of(parts)

        return fold(self._bound, leaf, combine)


def residual_for(
    bound: Expression, spec: PartitionSpec, schema: Schema, partition: Sequence[Any]
) -> Expression:
    """The residual of a bound predicate for one partition tuple in spec order.

    For many partitions of one spec make `Residuals` once.
    """
    return Residuals(bound, spec, schema).for_partition(partition)


def keeps_value(leaf: Leaf, value: Any) -> bool:
    """True where a bound leaf is TRUE for a value of its column, None for NULL."""
    if value is None:
        return isinstance(leaf, IsNull | NotNaN)
    if isinstance(value, float) and value != value:
        return keeps_nan(leaf)
    match leaf:
        case Comparison(op=op, literal=literal):
            return _compares(value, op, literal)
        case In(values=values):
            return contains(values, value)
        case NotIn(values=values):
            return not contains(values, value)
        case StartsWith(prefix=prefix):
            return bool(value.startswith(prefix))
        case NotStartsWith(prefix=prefix):
            return not value.startswith(prefix)
        case NotNull() | NotNaN():
            return True
        case _:
            return False


def contains(values: Sequence[Any], value: Any) -> bool:
    """True where sorted values hold a value."""
    at = bisect_left(values, value)
    return at < len(values) and bool(values[at] == value)


def _compares(value: Any, op: Op, literal: Any) -> bool:
    match op:
        case Op.EQ:
            return bool(value == literal)
        case Op.NE:
            return bool(value != literal)
        case Op.LT:
            return bool(value < literal)
        case Op.LE:
            return bool(value <= literal)
        case Op.GT:
            return bool(value > literal)
        case Op.GE:
            return bool(value >= literal)


def keeps_nan(leaf: Leaf) -> bool:
    """True where a bound leaf is TRUE for NaN, which is above every literal."""
    if isinstance(leaf, Comparison):
        return leaf.op in (Op.GT, Op.GE, Op.NE)
    return isinstance(leaf, NotIn | NotNull | IsNaN)


@dataclass(frozen=True, slots=True)
class ColumnRange:
    """What is known of a column in some set of rows.

    Attributes:
        lower: an internal value that is at most every value that is neither NULL nor NaN, or None
            where there is none or it is not known. It need not be a value of any row.
        upper: likewise, at least every such value.
        may_be_null: whether a row may be NULL.
        may_be_nan: whether a row may be NaN.
        may_be_value: whether a row may be neither.
    """

    lower: Any = None
    upper: Any = None
    may_be_null: bool = True
    may_be_nan: bool = True
    may_be_value: bool = True


UNKNOWN_RANGE = ColumnRange()


def may_match_ranges(bound: Expression, range_of: Callable[[BoundRef], ColumnRange]) -> bool:
    """False only where no row within the ranges is kept."""
    return _evaluate(bound, range_of, may_keep)


def must_match_ranges(bound: Expression, range_of: Callable[[BoundRef], ColumnRange]) -> bool:
    """True only where every row within the ranges is kept."""
    return _evaluate(bound, range_of, must_keep)


def _evaluate(
    bound: Expression,
    range_of: Callable[[BoundRef], ColumnRange],
    decide: Callable[[Leaf, ColumnRange], bool],
) -> bool:
    def leaf(node: Expression) -> bool:
        if isinstance(node, Leaf):
            return decide(node, range_of(node.bound_ref))
        if isinstance(node, AlwaysTrue | AlwaysFalse):
            return isinstance(node, AlwaysTrue)
        raise PredicateError(f"{node!r} is not bound to a schema: call bind() first")

    def combine(node: Expression, parts: list[bool]) -> bool:
        if isinstance(node, And):
            return all(parts)
        if isinstance(node, Or):
            return any(parts)
        raise PredicateError(f"{node!r} is not bound to a schema: call bind() first")

    return fold(bound, leaf, combine)


def may_keep(leaf: Leaf, known: ColumnRange) -> bool:
    """False only where a bound leaf keeps no row within the range."""
    return (
        (known.may_be_null and isinstance(leaf, IsNull | NotNaN))
        or (known.may_be_nan and keeps_nan(leaf))
        or (known.may_be_value and _may_keep_value(leaf, known.lower, known.upper))
    )


def must_keep(leaf: Leaf, known: ColumnRange) -> bool:
    """True only where a bound leaf keeps every row within the range."""
    if known.may_be_null and not isinstance(leaf, IsNull | NotNaN):
        return False
    if known.may_be_nan and not keeps_nan(leaf):
        return False
    if not known.may_be_value:
        return True
    opposite = leaf.negated()
    # On a value, a leaf is TRUE exactly where its opposite is FALSE.
    return isinstance(opposite, Leaf) and not _may_keep_value(opposite, known.lower, known.upper)


def range_in_file(ref: BoundRef, file: DataFile) -> ColumnRange:
    """What a file's metrics say of a column (rules 46, 114, 117, 119, 120)."""
    if not isinstance(ref.type, T.PrimitiveType) or file.record_count < 0:
        return UNKNOWN_RANGE
    nulls = _count(file.null_value_counts, ref.field_id)
    nans = _count(file.nan_value_counts, ref.field_id) if _is_floating(ref.type) else 0
    counts_all_rows = not ref.is_nested or (
        # Some writers do not count the fields of a struct that is NULL.
        _count(file.value_counts, ref.field_id) == file.record_count
    )
    no_nulls = nulls == 0 and counts_all_rows
    all_null = nulls is not None and nulls >= file.record_count
    no_values = nulls is not None and nulls + (nans or 0) >= file.record_count
    lower, upper = _bounds(
        ref.type,
        (file.lower_bounds or {}).get(ref.field_id),
        (file.upper_bounds or {}).get(ref.field_id),
    )
    return ColumnRange(
        lower,
        upper,
        may_be_null=not no_nulls,
        may_be_nan=nans != 0 and not all_null,
        may_be_value=not no_values,
    )


def range_in_summary(field_type: T.IcebergType, summary: FieldSummary) -> ColumnRange:
    """What a manifest says of a partition field (rule 163).

    Both bounds are absent where every value is NULL or NaN.
    """
    floating = _is_floating(field_type)
    may_be_nan = floating and summary.contains_nan is not False
    unbounded = summary.lower_bound is None and summary.upper_bound is None
    explained = summary.contains_null or (floating and summary.contains_nan is True)
    lower, upper = _bounds(field_type, summary.lower_bound, summary.upper_bound)
    return ColumnRange(
        lower,
        upper,
        may_be_null=summary.contains_null,
        may_be_nan=may_be_nan,
        may_be_value=not (unbounded and explained),
    )


def _is_floating(column_type: T.IcebergType) -> bool:
    return isinstance(column_type, T.FloatType | T.DoubleType)


def _count(counts: Mapping[int, int] | None, field_id: int) -> int | None:
    count = None if counts is None else counts.get(field_id)
    return None if count is None or count < 0 else count


def _bounds(
    column_type: T.IcebergType, lower: bytes | None, upper: bytes | None
) -> tuple[Any, Any]:
    """Bounds as internal values; None for those that are absent or cannot be trusted."""
    low = None if lower is None else _lower_bound(column_type, lower)
    high = None if upper is None else _decoded(column_type, upper)
    if low != low or high != high:
        # A NaN bound comes from writers that compared NaN as a number: neither bound holds.
        return None, None
    if (
        low is not None
        and high is not None
        and not isinstance(column_type, T.UUIDType)
        and low > high
    ):
        return None, None
    return low, high


def _lower_bound(column_type: T.IcebergType, bound: bytes) -> Any:
    if isinstance(column_type, T.StringType):
        try:
            return bound.decode("utf-8")
        except UnicodeDecodeError as error:
            # Cut within a character: what is whole of it is a lower bound, too.
            return bound[: error.start].decode("utf-8")
    return _decoded(column_type, bound)


def _decoded(column_type: T.IcebergType, bound: bytes) -> Any:
    if isinstance(column_type, T.FixedType):
        # Bounds of fixed values may be cut like those of binary ones.
        return bytes(bound)
    try:
        return from_bytes(column_type, bound)
    except (FrazilError, UnicodeDecodeError):
        return None


def _may_keep_value(leaf: Leaf, lower: Any, upper: Any) -> bool:
    """False only where a leaf keeps no value from ``lower`` to ``upper``, None being open."""
    if isinstance(lower, UUID) or isinstance(upper, UUID):
        return _may_keep_uuid(leaf, lower, upper)
    match leaf:
        case Comparison(op=op, literal=literal):
            return _may_compare(op, literal, lower, upper)
        case In(values=values):
            at = 0 if lower is None else bisect_left(values, lower)
            return at < len(values) and (upper is None or bool(values[at] <= upper))
        case NotIn(values=values):
            return lower is None or lower != upper or not contains(values, lower)
        case StartsWith(prefix=prefix):
            size = len(prefix)
            return (lower is None or bool(lower[:size] <= prefix)) and (
                upper is None or bool(upper[:size] >= prefix)
            )
        case NotStartsWith(prefix=prefix):
            return (
                lower is None
                or upper is None
                or not (lower.startswith(prefix) and upper.startswith(prefix))
            )
        case IsNull() | IsNaN():
            return False
        case NotNull() | NotNaN():
            return True
        case _:
            return True


def _may_compare(op: Op, literal: Any, lower: Any, upper: Any) -> bool:
    match op:
        case Op.EQ:
            return (lower is None or lower <= literal) and (upper is None or upper >= literal)
        case Op.NE:
            return lower is None or upper is None or not (lower == literal == upper)
        case Op.LT:
            return lower is None or bool(lower < literal)
        case Op.LE:
            return lower is None or bool(lower <= literal)
        case Op.GT:
            return upper is None or bool(upper > literal)
        case Op.GE:
            return upper is None or bool(upper >= literal)


def _may_keep_uuid(leaf: Leaf, lower: UUID | None, upper: UUID | None) -> bool:
    """UUID bounds in either order that writers use: of bytes, or Java's of two signed halves.

    Predicates compare bytes. Equality is the same in both orders, so a value is excluded where both
    exclude it; for the others the bounds are widened to what holds in the order of bytes.
    """
    if isinstance(leaf, Comparison) and leaf.op not in (Op.EQ, Op.NE):
        return _may_compare(leaf.op, leaf.literal, *_bounds_of_bytes(lower, upper))
    return any(
        (low is not None and high is not None and low > high)
        or _may_keep_value(_with_keys(leaf, key), low, high)
        for key in (_unsigned, _signed)
        for low, high in [
            (None if lower is None else key(lower), None if upper is None else key(upper))
        ]
    )


def _bounds_of_bytes(lower: UUID | None, upper: UUID | None) -> tuple[UUID | None, UUID | None]:
    """What bounds of an unknown order say in the order of bytes, by their upper halves alone."""
    low_sign = None if lower is None else lower.int >> 127
    high_sign = None if upper is None else upper.int >> 127
    same_sign = low_sign is not None and low_sign == high_sign
    low, high = None, None
    if lower is not None and (low_sign == 0 or same_sign):
        low = UUID(int=lower.int >> 64 << 64)
    if upper is not None and (high_sign == 1 or same_sign):
        high = UUID(int=upper.int | (1 << 64) - 1)
    return (None, None) if low is not None and high is not None and low > high else (low, high)


def _with_keys(leaf: Leaf, key: Callable[[UUID], tuple[int, int]]) -> Leaf:
    match leaf:
        case Comparison(op=op, ref=ref, literal=literal):
            return Comparison(op, ref, key(literal))
        case In(ref=ref, values=values):
            return In(ref, tuple(sorted(map(key, values))))
        case NotIn(ref=ref, values=values):
            return NotIn(ref, tuple(sorted(map(key, values))))
        case _:
            return leaf


def _unsigned(value: UUID) -> tuple[int, int]:
    return value.int >> 64, value.int & (1 << 64) - 1


def _signed(value: UUID) -> tuple[int, int]:
    high, low = _unsigned(value)
    return (high ^ 1 << 63) - (1 << 63), (low ^ 1 << 63) - (1 << 63)
