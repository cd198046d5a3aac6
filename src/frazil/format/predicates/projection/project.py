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

from collections.abc import Callable, Iterable
from typing import Any

from frazil.format.partitions.partitioning import PartitionField, PartitionSpec
from frazil.format.partitions.transforms import (
    BucketTransform,
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
    And,
    BoundRef,
    Comparison,
    Expression,
    In,
    IsNull,
    Leaf,
    NotIn,
    NotNull,
    Op,
    all_of,
    any_of,
    fold,
    with_ref,
)
from frazil.format.predicates.projection.project_steps import (
    project_prefix_inclusive,
    project_prefix_strict,
    project_step_inclusive,
    project_step_strict,
    step_of,
)
from frazil.format.schema import Schema
from frazil.format.types import BinaryType, StringType


def inclusive(bound: Expression, spec: PartitionSpec, schema: Schema) -> Expression:
    """The predicate that the partition of every kept row satisfies."""

    def leaf(node: Expression) -> Expression:
        if not isinstance(node, Leaf):
            return node
        return all_of(
            _inclusive_leaf(node, field, ref) for field, ref in _fields_over(node, spec, schema)
        )

    return _project(bound, leaf)


def strict(bound: Expression, spec: PartitionSpec, schema: Schema) -> Expression:
    """The predicate whose partitions hold only kept rows."""

    def leaf(node: Expression) -> Expression:
        if not isinstance(node, Leaf):
            return node
        return any_of(
            _strict_leaf(node, field, ref) for field, ref in _fields_over(node, spec, schema)
        )

    return _project(bound, leaf)


def _project(bound: Expression, leaf: Callable[[Expression], Expression]) -> Expression:
    def combine(node: Expression, parts: list[Expression]) -> Expression:
        return all_of(parts) if isinstance(node, And) else any_of(parts)

    return fold(bound, leaf, combine)


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
    if isinstance(transform, IdentityTransform):
        return with_ref(node, ref)
    if isinstance(node, IsNull):
        return IsNull(ref)
    projected: Expression | None = None
    if isinstance(transform, BucketTransform):
        match node:
            case Comparison(op=Op.EQ, literal=literal):
                projected = in_values(ref, [transform.apply(source.type, literal)])
            case In(values=values):
                projected = in_values(ref, _applied(transform, node, values))
    elif _cuts_text(transform, source):
        projected = project_prefix_inclusive(node, ref, transform)
    else:
        projected = project_step_inclusive(node, ref, step_of(transform, source.type))
    if projected is not None:
        return projected
    return NotNull(ref) if rejects_null(node) else AlwaysTrue()


def _strict_leaf(node: Leaf, field: PartitionField, ref: BoundRef) -> Expression:
    transform, source = field.transform, node.bound_ref
    if isinstance(transform, IdentityTransform):
        return with_ref(node, ref)
    if isinstance(node, IsNull | NotNull):
        return with_ref(node, ref)
    projected: Expression | None = None
    if isinstance(transform, BucketTransform):
        match node:
            case Comparison(op=Op.NE, literal=literal):
                projected = not_in_values(ref, [transform.apply(source.type, literal)])
            case NotIn(values=values):
                projected = not_in_values(ref, _applied(transform, node, values))
    elif _cuts_text(transform, source):
        projected = project_prefix_strict(node, ref, transform)
    else:
        projected = project_step_strict(node, ref, step_of(transform, source.type))
    return AlwaysFalse() if projected is None else projected


def _applied(transform: Transform, node: Leaf, values: Iterable[Any]) -> set[Any]:
    return {transform.apply(node.bound_ref.type, value) for value in values}


def _cuts_text(transform: Transform, source: BoundRef) -> bool:
    return isinstance(transform, TruncateTransform) and isinstance(
        source.type, StringType | BinaryType
    )
