"""Predicates as values: what a filter says, before and after it is bound to a schema.

Truth is SQL's: three values, and a row is kept where the predicate is TRUE. What each node means
where its column is NULL:

    ==================================  ======================  =======================
    node                                column is NULL          its negation on NULL
    ==================================  ======================  =======================
    ``= != < <= > >=``, In, NotIn       NULL: not kept          NULL: not kept
    StartsWith, NotStartsWith           NULL: not kept          NULL: not kept
    AlwaysNull (``a = NULL``)           NULL: not kept          NULL: not kept
    IsNull / NotNull                    TRUE / FALSE            FALSE / TRUE
    IsNaN / NotNaN                      FALSE / TRUE            TRUE / FALSE
    ==================================  ======================  =======================

Floating point follows Spark: NaN equals NaN and is greater than every other value, and -0.0 equals
0.0. Iceberg's Java evaluators keep NULL rows under ``!=`` and ``NOT IN``; SQL does not, nor do
these.

The same classes serve both states: unbound, a leaf's ``ref`` is a `Reference` and its literals are
Python objects; bound (`frazil.format.predicates.bind`), ``ref`` is a `BoundRef`, literals are
internal values of the column's type and no `Not` or `AlwaysNull` is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from frazil.format.predicates.nodes import (
    AlwaysFalse,
    AlwaysNull,
    AlwaysTrue,
    And,
    Comparison,
    Expression,
    In,
    IsNaN,
    IsNull,
    Junction,
    Leaf,
    Not,
    NotIn,
    NotNaN,
    NotNull,
    NotStartsWith,
    Or,
    SparkCondition,
    StartsWith,
    fold,
    leaves,
    operands_of,
    render,
)
from frazil.format.predicates.terms import BoundRef, Op, Reference

__all__ = [
    "AlwaysFalse",
    "AlwaysNull",
    "AlwaysTrue",
    "And",
    "BoundRef",
    "Comparison",
    "Expression",
    "In",
    "IsNaN",
    "IsNull",
    "Junction",
    "Leaf",
    "Not",
    "NotIn",
    "NotNaN",
    "NotNull",
    "NotStartsWith",
    "Op",
    "Or",
    "Reference",
    "SparkCondition",
    "StartsWith",
    "all_of",
    "any_of",
    "fold",
    "leaves",
    "operands_of",
    "push_down_not",
    "render",
    "with_leaves",
    "with_ref",
]


def all_of(parts: Iterable[Expression]) -> Expression:
    """AND of the predicates, simplified; TRUE where there are none."""
    return _junction(parts, And, neutral=AlwaysTrue, decisive=AlwaysFalse)


def any_of(parts: Iterable[Expression]) -> Expression:
    """OR of the predicates, simplified; FALSE where there are none."""
    return _junction(parts, Or, neutral=AlwaysFalse, decisive=AlwaysTrue)


def _junction(
    parts: Iterable[Expression],
    junction: type[And | Or],
    *,
    neutral: type[AlwaysTrue | AlwaysFalse],
    decisive: type[AlwaysTrue | AlwaysFalse],
) -> Expression:
    kept: list[Expression] = []
    for part in parts:
        if isinstance(part, decisive):
            return part
        if not isinstance(part, neutral):
            kept.append(part)
    if not kept:
        return neutral()
    return kept[0] if len(kept) == 1 else junction(*kept)


def push_down_not(root: Expression) -> Expression:
    """The same predicate with NOT only inside of the leaves (De Morgan holds for three values)."""

    def with_negation(node: Expression) -> tuple[Expression, Expression]:
        return node, node.negation()

    def combine(
        node: Expression, parts: list[tuple[Expression, Expression]]
    ) -> tuple[Expression, Expression]:
        if isinstance(node, Not):
            positive, negative = parts[0]
            return negative, positive
        positives, negatives = (part[0] for part in parts), (part[1] for part in parts)
        if isinstance(node, And):
            return all_of(positives), any_of(negatives)
        return any_of(positives), all_of(negatives)

    return fold(root, with_negation, combine)[0]


def with_leaves(root: Expression, leaf: Callable[[Expression], Expression]) -> Expression:
    """The predicate with what `leaf` makes of each of its leaves, simplified."""
    return fold(root, leaf, _join_parts)


def _join_parts(node: Expression, parts: list[Expression]) -> Expression:
    if isinstance(node, Not):
        return parts[0].negation()
    return all_of(parts) if isinstance(node, And) else any_of(parts)


def with_ref(leaf: Leaf, ref: Reference | BoundRef) -> Leaf:
    """The same predicate on another column."""
    if isinstance(leaf, Comparison):
        return Comparison(leaf.op, ref, leaf.literal)
    return replace(leaf, ref=ref)
