"""SQL text to predicates: Spark's dialect, read by sqlglot, what a file can be pruned by."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError

from frazil.errors import PredicateError
from frazil.format.predicates.expressions import (
    AlwaysFalse,
    AlwaysNull,
    AlwaysTrue,
    And,
    Comparison,
    Expression,
    In,
    IsNaN,
    IsNull,
    NotNull,
    Op,
    Or,
    Reference,
    StartsWith,
)
from frazil.format.predicates.nodes import fold_tree
from frazil.format.predicates.sql.sql_literals import (
    NOT_A_LITERAL,
    compare_constants,
    literal_value,
    spark_tokens,
    without_parentheses,
)

_SUPPORTED = (
    "a predicate is made of AND, OR, NOT, column {=, !=, <, <=, >, >=, <=>} literal, [NOT] IN "
    "(literals), [NOT] BETWEEN, IS [NOT] NULL, IS [NOT] TRUE or FALSE, LIKE 'prefix%', "
    "startswith(column, 'prefix') and isnan(column)"
)
_OPS: dict[type[exp.Expression], Op] = {
    exp.EQ: Op.EQ,
    exp.NEQ: Op.NE,
    exp.LT: Op.LT,
    exp.LTE: Op.LE,
    exp.GT: Op.GT,
    exp.GTE: Op.GE,
}
# How the parser writes a keyword in its messages: as the class that stands for it.
_CLASS_NAME = re.compile(r"<class '(?:\w+\.)*(\w+)'>")
_WILDCARDS = ("%", "_")
_UNDERSTOOD = frozenset(
    {"this", "expression", "expressions", "low", "high", "negate"}
    # These are refused, each with a reason of its own.
    | {"query", "unnest", "field", "symmetric"}
    # The parts of a column's name, and whether a number is text.
    | {"table", "db", "catalog", "is_string"}
)


def parse_predicate(text: str) -> Expression:
    r"""Parse the text of a WHERE clause.

    Strings are Spark's: ``'it''s'`` and ``'it\'s'`` are one string, ``\n`` a line feed, ``r'\n'``
    is raw; ``"..."`` is a string, backticks quote names. ``1.5`` and ``1.20BD`` are exact decimals,
    ``1e3`` and ``1.5D`` doubles. A comparison with NULL keeps no row.

    Raises:
        PredicateError: where the text is not SQL, or not a predicate of the supported kind.
    """
    return predicate_of_tree(sql_tree(text), leaf_predicate)


def sql_tree(text: str) -> exp.Expression:
    """Return what sqlglot reads in the text of a WHERE clause, with strings as Spark reads them."""
    if not isinstance(text, str):
        raise PredicateError(f"{text!r} is not the text of a predicate")
    try:
        parsed = Spark().parser().parse(spark_tokens(text), text)
    except RecursionError as error:
        raise PredicateError(
            "the predicate's parentheses are nested too deeply to be parsed; use IN for many values"
        ) from error
    except (SqlglotError, ValueError, IndexError) as error:
        first_line = _reason(error)
        raise PredicateError(f"{_short_text(text)} is not a SQL predicate: {first_line}") from error
    statements = [node for node in parsed if isinstance(node, exp.Expression)]
    if len(statements) != 1:
        raise PredicateError(
            f"{_short_text(text)} holds {len(statements)} SQL expressions; a predicate is one"
        )
    return statements[0]


def _reason(error: Exception) -> str:
    """What a parser says, without the names of its classes."""
    lines = str(error).splitlines()
    if not lines:
        return type(error).__name__
    return _CLASS_NAME.sub(lambda found: found[1].upper(), lines[0])


def _short_text(text: str) -> str:
    return repr(text if len(text) <= 120 else text[:117] + "...")


def _unsupported_error(node: exp.Expression, why: str = "") -> PredicateError:
    try:
        text = node.sql(dialect="spark")
    except (RecursionError, SqlglotError, ValueError):
        text = type(node).__name__
    return PredicateError(f"{_short_text(text)} is not supported: {why or _SUPPORTED}")


def predicate_of_tree(
    root: exp.Expression, leaf: Callable[[exp.Expression], Expression]
) -> Expression:
    """Return the predicate of a tree of AND, OR, NOT and parentheses, given that of its leaves."""
    return fold_tree(root, _operands_of, leaf, _combine_parts)


def _operands_of(node: exp.Expression) -> tuple[exp.Expression, ...] | None:
    if isinstance(node, exp.And | exp.Or):
        return node.this, node.expression
    return (node.this,) if isinstance(node, exp.Not | exp.Paren) else None


def _combine_parts(node: exp.Expression, parts: list[Expression]) -> Expression:
    if isinstance(node, exp.And):
        return And(*parts)
    if isinstance(node, exp.Or):
        return Or(*parts)
    return parts[0].negation() if isinstance(node, exp.Not) else parts[0]


def leaf_predicate(node: exp.Expression) -> Expression:
    """Return what a part without AND, OR and NOT says of a column."""
    stated = {name for name, value in node.args.items() if value}
    if not stated <= _UNDERSTOOD:
        # An argument that is overlooked would change what the predicate means.
        raise _unsupported_error(node)
    found = _positive_leaf(node)
    return found.negation() if "negate" in stated else found


def _positive_leaf(node: exp.Expression) -> Expression:
    match node:
        case exp.Boolean():
            return AlwaysTrue() if node.this else AlwaysFalse()
        case exp.Null():
            return AlwaysNull()
        case exp.Column() | exp.Dot():
            return Comparison(Op.EQ, _column(node), True)
        case exp.NullSafeEQ():
            return _null_safe(node)
        case exp.NullSafeNEQ():
            return _null_safe(node).negation()
        case exp.In():
            return _in_predicate(node)
        case exp.Between():
            return _between_predicate(node)
        case exp.Is():
            return _is_predicate(node)
        case exp.Like():
            return _like_predicate(node, "\\")
        case exp.Escape() if isinstance(node.this, exp.Like):
            escape = literal_value(node.expression)
            if not isinstance(escape, str) or len(escape) != 1 or escape in _WILDCARDS:
                raise _unsupported_error(node, "ESCAPE takes one character, neither % nor _")
            found = _like_predicate(node.this, escape)
            return found.negation() if node.this.args.get("negate") else found
        case exp.IsNan():
            return IsNaN(_column(node.this))
        case exp.StartsWith():
            return _starts_with(node)
        case exp.Anonymous() if str(node.this).lower() in ("isnull", "isnotnull"):
            return _is_null_function(node)
    op = _OPS.get(type(node))
    if op is None:
        raise _unsupported_error(node)
    return _compare(node, node.this, op, node.expression)


def _column(node: exp.Expression) -> Reference:
    reference = _column_or_none(node)
    if reference is None:
        raise _unsupported_error(node, f"here a column must stand; {_SUPPORTED}")
    return reference


def _column_or_none(node: exp.Expression) -> Reference | None:
    node = without_parentheses(node)
    if not isinstance(node, exp.Column | exp.Dot):
        return None
    parts = node.parts
    if not all(isinstance(part, exp.Identifier) for part in parts):
        return None
    return Reference(tuple(part.this for part in parts))


def _compare(
    node: exp.Expression, left: exp.Expression, op: Op, right: exp.Expression
) -> Expression:
    column, literal_side = _column_or_none(left), right
    if column is None:
        column, literal_side, op_of_column = _column_or_none(right), left, op.converse
    else:
        op_of_column = op
    if column is None:
        return _constant(node, left, op, right)
    literal = literal_value(literal_side)
    if literal is NOT_A_LITERAL:
        raise _unsupported_error(node)
    return AlwaysNull() if literal is None else Comparison(op_of_column, column, literal)


def _constant(
    node: exp.Expression, left: exp.Expression, op: Op, right: exp.Expression
) -> Expression:
    first, second = literal_value(left), literal_value(right)
    if first is NOT_A_LITERAL or second is NOT_A_LITERAL:
        raise _unsupported_error(node)
    if first is None or second is None:
        return AlwaysNull()
    truth = compare_constants(first, op, second)
    if truth is None:
        raise _unsupported_error(node, "the two literals cannot be compared with each other")
    return AlwaysTrue() if truth else AlwaysFalse()


def _null_safe(node: exp.Expression) -> Expression:
    column, literal_side = _column_or_none(node.this), node.expression
    if column is None:
        column, literal_side = _column_or_none(node.expression), node.this
    literal = literal_value(literal_side)
    if column is None or literal is NOT_A_LITERAL:
        raise _unsupported_error(node)
    if literal is None:
        return IsNull(column)
    return And(Comparison(Op.EQ, column, literal), NotNull(column))


def _in_predicate(node: exp.In) -> Expression:
    if any(node.args.get(key) is not None for key in ("query", "unnest", "field")):
        raise _unsupported_error(node, "IN takes a list of literals, not a query")
    column = _column(node.this)
    values = [literal_value(item) for item in node.expressions]
    if not values or any(value is NOT_A_LITERAL for value in values):
        raise _unsupported_error(node, "IN takes a list of literals")
    present = tuple(value for value in values if value is not None)
    found: Expression = In(column, present) if present else AlwaysNull()
    return found if len(present) == len(values) else Or(found, AlwaysNull())


def _between_predicate(node: exp.Between) -> Expression:
    if node.args.get("symmetric"):
        raise _unsupported_error(node, "BETWEEN SYMMETRIC; write the smaller literal first")
    low, high = node.args["low"], node.args["high"]
    return And(_compare(node, node.this, Op.GE, low), _compare(node, node.this, Op.LE, high))


def _is_predicate(node: exp.Is) -> Expression:
    column = _column(node.this)
    what = without_parentheses(node.expression)
    if isinstance(what, exp.Null):
        return IsNull(column)
    if isinstance(what, exp.Boolean):
        return And(Comparison(Op.EQ, column, bool(what.this)), NotNull(column))
    raise _unsupported_error(node)


def _like_predicate(node: exp.Expression, escape: str) -> Expression:
    column, pattern = _column(node.this), literal_value(node.expression)
    if pattern is None:
        return AlwaysNull()
    if not isinstance(pattern, str):
        raise _unsupported_error(node, "LIKE takes a string literal as its pattern")
    prefix, is_open = _like_prefix(node, pattern, escape)
    return StartsWith(column, prefix) if is_open else Comparison(Op.EQ, column, prefix)


def _like_prefix(node: exp.Expression, pattern: str, escape: str) -> tuple[str, bool]:
    """The text before the wildcard, and whether there is one."""
    prefix: list[str] = []
    position = 0
    while position < len(pattern):
        character = pattern[position]
        if character == escape:
            following = pattern[position + 1 : position + 2]
            if following not in (*_WILDCARDS, escape) or not following:
                raise _unsupported_error(
                    node, f"in a pattern {escape!r} must stand before %, _ or {escape!r}"
                )
            prefix.append(following)
            position += 2
        elif character == "%" and not pattern[position:].strip("%"):
            return "".join(prefix), True
        elif character in _WILDCARDS:
            raise _unsupported_error(
                node,
                "of LIKE only patterns with one % at the end are, as in 'abc%'; write "
                f"{escape}% or {escape}_ for the characters themselves",
            )
        else:
            prefix.append(character)
            position += 1
    return "".join(prefix), False


def _starts_with(node: exp.StartsWith) -> Expression:
    column, prefix = _column(node.this), literal_value(node.expression)
    if prefix is None:
        return AlwaysNull()
    if not isinstance(prefix, str):
        raise _unsupported_error(node, "startswith takes a column and a string literal")
    return StartsWith(column, prefix)


def _is_null_function(node: exp.Anonymous) -> Expression:
    arguments: Sequence[Any] = node.expressions
    if len(arguments) != 1:
        raise _unsupported_error(node, "it takes one column")
    column = _column(arguments[0])
    return IsNull(column) if str(node.this).lower() == "isnull" else NotNull(column)
