"""Comparisons of floats in a form that a reader of Parquet may skip data by.

In Spark -0.0 equals 0.0, and NaN equals itself and is greater than every number. Parquet's filters
know neither: a dictionary holds zeros with their signs, and many writers leave NaN out of the range
of a column. What is pushed down must keep the rows that the predicate keeps.
"""

from __future__ import annotations

from collections.abc import Collection

from frazil.format.predicates.bind import in_values, not_in_values
from frazil.format.predicates.expressions import (
    And,
    BoundRef,
    Comparison,
    Expression,
    In,
    IsNaN,
    Leaf,
    Not,
    NotIn,
    NotNull,
    Op,
    Or,
    fold,
)
from frazil.format.types import DoubleType, FloatType


def in_spark_order(bound: Expression, *, without_nan: Collection[int] = ()) -> Expression:
    """The same predicate, whose parts may each be pushed into Parquet's readers.

    Zeros become ranges from -0.0 to 0.0. What keeps NaN is joined with ``isnan``, which no reader
    takes, so that Spark decides on every row.
    `without_nan`: ids of columns that hold no NaN in the files that are read.
    """

    def leaf(node: Expression) -> Expression:
        if not isinstance(node, Comparison | In | NotIn) or not isinstance(node.ref, BoundRef):
            return node
        if not isinstance(node.ref.type, FloatType | DoubleType):
            return node
        ranged = _with_both_zeros(node, node.ref)
        if keeps_nan(node) and node.ref.field_id not in without_nan:
            return Or(ranged, IsNaN(node.ref))
        return ranged

    def combine(node: Expression, parts: list[Expression]) -> Expression:
        if isinstance(node, Not):
            return Not(parts[0])
        return And(*parts) if isinstance(node, And) else Or(*parts)

    return fold(bound, leaf, combine)


def keeps_nan(leaf: Leaf) -> bool:
    """True where a bound leaf is TRUE for NaN, which is above every literal."""
    if isinstance(leaf, Comparison):
        return leaf.op in (Op.GT, Op.GE, Op.NE)
    return isinstance(leaf, NotIn | NotNull | IsNaN)


def _with_both_zeros(node: Leaf, ref: BoundRef) -> Expression:
    match node:
        case Comparison(op=op, literal=literal) if literal == 0:
            return _compared_with_zero(op, ref)
        case In(values=values) if 0 in values:
            others = in_values(ref, (value for value in values if value != 0))
            return Or(others, _compared_with_zero(Op.EQ, ref))
        case NotIn(values=values) if 0 in values:
            others = not_in_values(ref, (value for value in values if value != 0))
            return And(others, _compared_with_zero(Op.NE, ref))
        case _:
            return node


def _compared_with_zero(op: Op, ref: BoundRef) -> Expression:
    match op:
        case Op.EQ:
            return And(Comparison(Op.GE, ref, -0.0), Comparison(Op.LE, ref, 0.0))
        case Op.NE:
            return Or(Comparison(Op.LT, ref, -0.0), Comparison(Op.GT, ref, 0.0))
        case Op.LT | Op.GE:
            return Comparison(op, ref, -0.0)
        case Op.LE | Op.GT:
            return Comparison(op, ref, 0.0)
