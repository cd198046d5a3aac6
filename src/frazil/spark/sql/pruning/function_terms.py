"""Comparisons of a lake's functions with literals, as predicates on the columns within.

All but `bucket` keep the order of values, so that what they say of their result is a range of the
column: ``system.days(ts) = DATE '2024-03-01'`` is the day's first microsecond and all up to the
next day's. A bucket says nothing of the column's range; it leaves files out by their partition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

from sqlglot import exp

from frazil.errors import PredicateError
from frazil.format import types as I
from frazil.format.predicates import (
    AlwaysFalse,
    BoundRef,
    Comparison,
    Expression,
    NotNull,
    Op,
    StartsWith,
    all_of,
    any_of,
)
from frazil.format.predicates.bind import resolve
from frazil.format.predicates.expressions import Reference
from frazil.format.predicates.sql.implied import NOTHING_IMPLIED, ConditionReader, Implied
from frazil.format.predicates.sql.parse import sql_tree
from frazil.format.types import IcebergType
from frazil.spark.sql.binding.buckets import Buckets
from frazil.spark.sql.functions.calls import BUCKET, PARAMETERS, TRUNCATE

_OPS: Final[dict[type[exp.Expr], Op]] = {
    exp.EQ: Op.EQ,
    exp.LT: Op.LT,
    exp.LTE: Op.LE,
    exp.GT: Op.GT,
    exp.GTE: Op.GE,
}
_EPOCH: Final = date(1970, 1, 1)
_MICROS_OF_DAY: Final = 86_400_000_000
_MICROS_OF_HOUR: Final = 3_600_000_000
_TIMES: Final = (I.TimestampType, I.TimestamptzType)
_HASHED_ALIKE: Final = (
    I.IntegerType, I.LongType, I.DecimalType, I.DateType, I.TimestampType, I.TimestamptzType,
    I.StringType, I.BinaryType, I.FixedType,
)  # fmt: skip
"""Types whose values Spark has in a form with the same hash: a uuid is a text to Spark."""

_LIMITS: Final[dict[type[IcebergType], int]] = {
    I.IntegerType: 1 << 31,
    I.LongType: 1 << 63,
    I.DateType: 1 << 31,
    I.TimestampType: 1 << 63,
    I.TimestamptzType: 1 << 63,
}


@dataclass(frozen=True, slots=True)
class _Called:
    name: str
    number: int
    ref: BoundRef


@dataclass(frozen=True, kw_only=True)
class FunctionReader(ConditionReader):
    """Reads conditions in which a lake's functions stand.

    Attributes:
        is_lake: whether a name stands before names of a lake.
    """

    is_lake: Callable[[str], bool]

    def implied_by_tree(self, tree: exp.Expression) -> Expression:
        """Return a bound predicate that is TRUE for every row for which a condition is."""
        return self._implied_by_tree(tree, ()).predicate

    def implied_by_functions(self, text: str) -> Implied:
        """Return what a text implies, where functions of the lake are called in it."""
        try:
            return self._implied_by_tree(sql_tree(text), ())
        except PredicateError:
            return NOTHING_IMPLIED

    def buckets(self, tree: exp.Expression) -> Buckets | None:
        """Return what a condition says of a column's bucket, where it says that alone."""
        found = self._comparison(tree)
        if found is None or found[0].name != BUCKET or found[1] is not Op.EQ:
            return None
        call, _, literals = found
        numbers = [_integer(each) for each in literals]
        if not isinstance(call.ref.type, _HASHED_ALIKE) or None in numbers:
            return None
        wanted = frozenset(number for number in numbers if number is not None)
        return Buckets(call.ref, call.number, wanted)

    def _leaf(self, node: exp.Expression, own: tuple[type[IcebergType], ...]) -> Expression | None:
        found = self._comparison(node)
        if found is None:
            return super()._leaf(node, own)
        call, op, literals = found
        parts = [_predicate(call, op, each) for each in literals]
        known = [part for part in parts if part is not None]
        return any_of(known) if len(known) == len(parts) else None

    def _comparison(self, node: exp.Expr) -> tuple[_Called, Op, Sequence[exp.Expr]] | None:
        """A call, and the literals that it is compared with."""
        if isinstance(node, exp.In) and node.expressions:
            call = self._call(node.this)
            return None if call is None else (call, Op.EQ, node.expressions)
        op = _OPS.get(type(node))
        if op is None:
            return None
        left, right = node.this.unnest(), node.expression.unnest()
        call = self._call(left)
        if call is not None:
            return call, op, [right]
        call = self._call(right)
        return None if call is None else (call, op.converse, [left])

    def _call(self, node: exp.Expr) -> _Called | None:
        if not isinstance(node, exp.Dot):
            return None
        *before, function = _dotted_parts(node)
        names = [each.name for each in before if isinstance(each, exp.Identifier)]
        if len(names) != len(before) or not isinstance(function, exp.Anonymous):
            return None
        if len(names) > 2 or names[-1].lower() != "system":
            return None
        if len(names) == 2 and not self.is_lake(names[0]):
            return None
        name, arguments = str(function.this).lower(), function.expressions
        if name not in PARAMETERS or len(arguments) != len(PARAMETERS[name]) or not arguments:
            return None
        number = _integer(arguments[0]) if len(arguments) == 2 else 0
        column = arguments[-1].unnest()
        if not isinstance(column, exp.Column) or number is None:
            return None
        parts = tuple(str(part.this) for part in column.parts)
        try:
            reference = self._by_columns(NotNull(Reference(parts)))
            assert isinstance(reference, NotNull)
            assert isinstance(reference.ref, Reference)
            ref = resolve(reference.ref, self.schema, case_sensitive=self.case_sensitive)
        except PredicateError:
            return None
        return _Called(name, number, ref)


def _dotted_parts(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, exp.Dot):
        return [*_dotted_parts(node.this), node.expression]
    return [node]


def _predicate(call: _Called, op: Op, literal: exp.Expr) -> Expression | None:
    """What a comparison of a call says of its column; None where that is not known."""
    if call.name == TRUNCATE and isinstance(call.ref.type, I.StringType):
        if op is not Op.EQ or not (isinstance(literal, exp.Literal) and literal.is_string):
            return None
        return _begins(call, str(literal.this))
    value = _day(literal) if call.name == "days" else _integer(literal)
    if value is None:
        return None
    first, after = _first_value(call, value), _first_value(call, value + 1)
    if first is None or after is None:
        return None
    ref = call.ref
    match op:
        case Op.EQ:
            return all_of([_at_least(ref, first), _less_than(ref, after)])
        case Op.GE:
            return _at_least(ref, first)
        case Op.GT:
            return _at_least(ref, after)
        case Op.LT:
            return _less_than(ref, first)
        case Op.LE:
            return _less_than(ref, after)
        case _:
            return None


def _begins(call: _Called, text: str) -> Expression:
    if len(text) < call.number:
        return Comparison(Op.EQ, call.ref, text)
    return StartsWith(call.ref, text) if len(text) == call.number else AlwaysFalse()


def _first_value(call: _Called, result: int) -> int | None:
    """The smallest value of a column whose transform is at least a result."""
    kind = call.ref.type
    match call.name:
        case "truncate" if isinstance(kind, I.IntegerType | I.LongType):
            return -(-result // call.number) * call.number
        case "hours" if isinstance(kind, _TIMES):
            return result * _MICROS_OF_HOUR
        case "days":
            day: int | None = result
        case "months":
            day = _first_day(1970 + result // 12, result % 12 + 1)
        case "years":
            day = _first_day(1970 + result, 1)
        case _:
            return None
    if day is None or isinstance(kind, I.DateType):
        return day
    return day * _MICROS_OF_DAY if isinstance(kind, _TIMES) else None


def _first_day(year: int, month: int) -> int | None:
    return (date(year, month, 1) - _EPOCH).days if 1 <= year <= 9999 else None


def _at_least(ref: BoundRef, value: int) -> Expression:
    limit = _LIMITS[type(ref.type)]
    if value >= limit:
        return AlwaysFalse()
    return NotNull(ref) if value <= -limit else Comparison(Op.GE, ref, value)


def _less_than(ref: BoundRef, value: int) -> Expression:
    limit = _LIMITS[type(ref.type)]
    if value >= limit:
        return NotNull(ref)
    return AlwaysFalse() if value <= -limit else Comparison(Op.LT, ref, value)


def _integer(node: exp.Expr) -> int | None:
    node = node.unnest()
    if isinstance(node, exp.Neg):
        inner = _integer(node.this)
        return None if inner is None else -inner
    if isinstance(node, exp.Literal) and not node.is_string:
        text = str(node.this)
        return int(text) if text.isascii() and text.isdigit() else None
    return None


def _day(node: exp.Expr) -> int | None:
    """The days of a date's literal since 1970."""
    node = node.unnest()
    if isinstance(node, exp.Cast) and node.to.is_type(exp.DataType.Type.DATE):
        node = node.this
    if not (isinstance(node, exp.Literal) and node.is_string):
        return None
    try:
        said = date.fromisoformat(str(node.this))
    except ValueError:
        return None
    return (said - _EPOCH).days if str(node.this) == said.isoformat() else None
