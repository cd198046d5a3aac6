"""From a predicate on columns to a predicate on partition values (rules 171-173, 183).

Both projections are bound to partition fields: a ``ref`` holds a partition field's id, name and
result type. For every row, with its partition:

- inclusive: a row that the predicate keeps has a partition that the projection keeps;
- strict: every row of a partition that the projection keeps is kept by the predicate.

A transform maps NULL to NULL and nothing else to it (rule 83), but for void, which says nothing.
Fields of unknown and multi-argument transforms say nothing either (rule 75), nor do those whose
source column the schema no longer has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from frazil.format.partitions.partitioning import PartitionField, PartitionSpec
from frazil.format.partitions.transforms import (
    BucketTransform,
    DayTransform,
    IdentityTransform,
    Transform,
    TruncateTransform,
    UnknownTransform,
    VoidTransform,
)
from frazil.format.predicates.bind import in_values, not_in_values, rejects_null
from frazil.format.predicates.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    BoundRef,
    Comparison,
    Expression,
    In,
    IsNull,
    Leaf,
    NotIn,
    NotNull,
    NotStartsWith,
    Op,
    StartsWith,
    all_of,
    any_of,
    push_down_not,
    with_leaves,
    with_ref,
)
from frazil.format.schema import Schema
from frazil.format.types import BinaryType, DateType, DecimalType, IcebergType, StringType
from frazil.format.types.forms import form_of
from frazil.format.values.decimals import add, subtract, unit_of

_TEXTS: Final = (StringType, BinaryType)
"""The types of which truncate leaves a prefix."""


def inclusive_projection(bound: Expression, spec: PartitionSpec, schema: Schema) -> Expression:
    """The predicate that the partition of every kept row satisfies."""

    return _projection(bound, spec, schema, _inclusive_leaf, all_of)


def strict_projection(bound: Expression, spec: PartitionSpec, schema: Schema) -> Expression:
    """The predicate whose partitions hold only kept rows."""

    return _projection(bound, spec, schema, _strict_leaf, any_of)


def _projection(
    bound: Expression,
    spec: PartitionSpec,
    schema: Schema,
    of_field: Callable[[Leaf, PartitionField, BoundRef], Expression],
    join: Callable[[Iterable[Expression]], Expression],
) -> Expression:
    def leaf(node: Expression) -> Expression:
        if not isinstance(node, Leaf):
            return node
        return join(of_field(node, field, ref) for field, ref in _fields_over(node, spec, schema))

    return with_leaves(bound, leaf)


def _fields_over(
    node: Leaf, spec: PartitionSpec, schema: Schema
) -> Iterable[tuple[PartitionField, BoundRef]]:
    """The fields that say something of a leaf's column, each with its bound reference."""
    source = node.bound_ref
    for field in spec.fields:
        transform = field.transform
        if (
            field.source_ids == (source.field_id,)
            and not isinstance(transform, VoidTransform | UnknownTransform)
            and schema.field_or_none(source.field_id) is not None
            and transform.can_transform(source.type)
        ):
            result_type = transform.result_type(source.type)
            yield field, BoundRef(field.field_id, result_type, (field.name,))


def _inclusive_leaf(node: Leaf, field: PartitionField, ref: BoundRef) -> Expression:
    transform, source = field.transform, node.bound_ref
    if isinstance(transform, IdentityTransform) or isinstance(node, IsNull):
        return with_ref(node, ref)
    if isinstance(transform, TruncateTransform) and isinstance(source.type, _TEXTS):
        projected = project_prefix_inclusive(node, ref, transform.width)
    else:
        projected = _project_value(node, source.type, ref, transform)
    if projected is not None:
        return projected
    return NotNull(ref) if rejects_null(node) else AlwaysTrue()


def _strict_leaf(node: Leaf, field: PartitionField, ref: BoundRef) -> Expression:
    transform, source = field.transform, node.bound_ref
    if isinstance(transform, IdentityTransform) or isinstance(node, IsNull | NotNull):
        return with_ref(node, ref)
    if isinstance(transform, TruncateTransform) and isinstance(source.type, _TEXTS):
        projected = project_prefix_strict(node, ref, transform.width)
    else:
        # Every row meets it in the partitions of which none may have a row that meets its negation.
        others = _project_value(node.negation(), source.type, ref, transform)
        projected = None if others is None else push_down_not(others.negation())
    return AlwaysFalse() if projected is None else projected


def _project_value(
    node: Expression, source_type: IcebergType, ref: BoundRef, transform: Transform
) -> Expression | None:
    """The inclusive projection of a comparison, or None where it says no more than NOT NULL."""
    if not isinstance(transform, BucketTransform):
        return project_step(node, ref, step_of(transform, source_type))
    match node:
        case Comparison(op=Op.EQ, literal=literal):
            return in_values(ref, [transform.apply(source_type, literal)])
        case In(values=values):
            return in_values(ref, {transform.apply(source_type, value) for value in values})
        case _:
            return None


# -- steps -----------------------------------------------------------------------------------------

# A step transform rounds down: truncate on numbers, year, month, day and hour. Two habits of
# released Java writers make stored values differ from it, and both projections must hold for
# either value. Old writers rounded times before 1970 up instead of down: where the right value is
# negative, the stored one may be greater by one; a date's day is not rounded and never wrong.
# Truncating an int or long within a width of the smallest one wraps round to the top of the range.


@dataclass(frozen=True, slots=True)
class Step:
    """A transform that rounds values down to steps, and how stored values may deviate.

    Attributes:
        apply: from a column's value to the right partition value.
        unit: the distance from one column value to the next.
        may_be_rounded_up: stored values may be one too great where they should be negative.
        wraps_below: the smallest partition value that fits the type, where smaller ones wrap.
        wrap: what is added to a value that wraps.
    """

    apply: Callable[[Any], Any]
    unit: Any
    may_be_rounded_up: bool = False
    wraps_below: int | None = None
    wrap: int = 0

    def stored_values(self, value: Any) -> Iterator[Any]:
        """The partition values under which files of a column value may be stored."""
        right = self.apply(value)
        yield right
        if self.may_be_rounded_up and right < 0:
            yield right + 1
        if self.wraps_below is not None and right < self.wraps_below:
            yield right + self.wrap

    def value_before(self, value: Any) -> Any:
        """The right partition value of the next smaller column value."""
        exact = isinstance(value, Decimal)
        return self.apply(subtract(value, self.unit) if exact else value - self.unit)

    def value_after(self, value: Any) -> Any:
        """The right partition value of the next greater column value."""
        exact = isinstance(value, Decimal)
        return self.apply(add(value, self.unit) if exact else value + self.unit)


def step_of(transform: Transform, source_type: IcebergType) -> Step:
    """How a step transform treats a type's values."""

    def apply(value: Any) -> Any:
        return transform.apply(source_type, value)

    if not isinstance(transform, TruncateTransform):
        rounds = not (isinstance(transform, DayTransform) and isinstance(source_type, DateType))
        return Step(apply, 1, may_be_rounded_up=rounds)
    if isinstance(source_type, DecimalType):
        return Step(apply, unit_of(source_type.scale))
    count = 1 << form_of(source_type).bits
    if count // 2 % transform.width == 0:
        return Step(apply, 1)
    return Step(apply, 1, wraps_below=-count // 2, wrap=count)


def project_step(node: Expression, ref: BoundRef, step: Step) -> Expression | None:
    """The projection of a comparison, or None where it says no more than NOT NULL."""
    match node:
        case Comparison(op=Op.EQ, literal=literal):
            return in_values(ref, step.stored_values(literal))
        case In(values=values):
            return in_values(ref, _all_stored(step, values))
        case Comparison(op=Op.LT, literal=literal):
            return _at_most(ref, step, step.value_before(literal))
        case Comparison(op=Op.LE, literal=literal):
            return _at_most(ref, step, step.apply(literal))
        case Comparison(op=Op.GT, literal=literal):
            return Comparison(Op.GE, ref, step.value_after(literal))
        case Comparison(op=Op.GE, literal=literal):
            return Comparison(Op.GE, ref, step.apply(literal))
        case _:
            return None


def _at_most(ref: BoundRef, step: Step, highest: Any) -> Expression:
    rounded_up = step.may_be_rounded_up and highest < 0
    below = Comparison(Op.LE, ref, highest + 1 if rounded_up else highest)
    if step.wraps_below is None:
        return below
    return any_of([below, Comparison(Op.EQ, ref, _wrapped_value(step))])


def _wrapped_value(step: Step) -> Any:
    # Less than one width of values lies below the type's first step, so only one value wraps.
    assert step.wraps_below is not None
    return step.apply(step.wraps_below) + step.wrap


def _all_stored(step: Step, values: Iterable[Any]) -> set[Any]:
    return {stored for value in values for stored in step.stored_values(value)}


def project_prefix_inclusive(node: Leaf, ref: BoundRef, width: int) -> Expression | None:
    """The projection through truncate on text or bytes, or None for no more than NOT NULL."""
    match node:
        case Comparison(op=Op.EQ, literal=literal):
            return in_values(ref, [literal[:width]])
        case In(values=values):
            return in_values(ref, {value[:width] for value in values})
        case Comparison(op=Op.LT, literal=literal):
            # The partition value is a prefix of the row's, so it is less as well.
            return Comparison(Op.LT if len(literal) <= width else Op.LE, ref, literal[:width])
        case Comparison(op=Op.LE, literal=literal):
            return Comparison(Op.LE, ref, literal[:width])
        case Comparison(op=Op.GT | Op.GE, literal=literal):
            return Comparison(Op.GE, ref, literal[:width])
        case StartsWith(prefix=prefix):
            if len(prefix) <= width:
                return StartsWith(ref, prefix)
            return Comparison(Op.EQ, ref, prefix[:width])
        case NotStartsWith(prefix=prefix) if len(prefix) <= width:
            return NotStartsWith(ref, prefix)
        case _:
            return None


def project_prefix_strict(node: Leaf, ref: BoundRef, width: int) -> Expression | None:
    """The strict projection through truncate on text or bytes, or None where nothing is known."""
    match node:
        case Comparison(op=Op.EQ, literal=literal) if len(literal) < width:
            # A partition value shorter than the width is the row's value itself.
            return Comparison(Op.EQ, ref, literal)
        case In(values=values):
            whole = [value for value in values if len(value) < width]
            return in_values(ref, whole) if whole else None
        case Comparison(op=Op.NE, literal=literal):
            return Comparison(Op.NE, ref, literal[:width])
        case NotIn(values=values):
            return not_in_values(ref, {value[:width] for value in values})
        case Comparison(op=Op.LE, literal=literal) if len(literal) < width:
            return Comparison(Op.LE, ref, literal)
        case Comparison(op=Op.LT | Op.LE, literal=literal):
            return Comparison(Op.LT, ref, literal[:width])
        case Comparison(op=Op.GE, literal=literal) if len(literal) <= width:
            return Comparison(Op.GE, ref, literal)
        case Comparison(op=Op.GT | Op.GE, literal=literal):
            return Comparison(Op.GT, ref, literal[:width])
        case StartsWith(prefix=prefix) if len(prefix) <= width:
            return StartsWith(ref, prefix)
        case NotStartsWith(prefix=prefix):
            if len(prefix) <= width:
                return NotStartsWith(ref, prefix)
            return Comparison(Op.NE, ref, prefix[:width])
        case _:
            return None
