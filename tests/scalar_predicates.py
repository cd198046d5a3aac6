"""What a predicate means for a single row: `keeps`, value by value."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

from frazil.errors import PredicateError
from frazil.format.predicates import (
    AlwaysFalse,
    AlwaysTrue,
    And,
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
    fold,
)


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
