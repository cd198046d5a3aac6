"""A bound leaf on one value of its column: the meaning that every evaluator shares."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

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


def keeps_nan(leaf: Leaf) -> bool:
    """True where a bound leaf is TRUE for NaN, which is above every literal."""
    if isinstance(leaf, Comparison):
        return leaf.op in (Op.GT, Op.GE, Op.NE)
    return isinstance(leaf, NotIn | NotNull | IsNaN)


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
