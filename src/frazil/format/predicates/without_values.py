"""A predicate as the protocol's JSON for reports: which columns it is about, without its values."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable
from typing import Any, Final

from frazil.format.predicates.nodes import (
    AlwaysFalse,
    And,
    Comparison,
    Expression,
    In,
    IsNaN,
    IsNull,
    Leaf,
    Not,
    NotIn,
    NotNaN,
    NotNull,
    NotStartsWith,
    StartsWith,
    fold,
)
from frazil.format.predicates.terms import Op

_OPS: Final = {
    Op.EQ: "eq",
    Op.NE: "not-eq",
    Op.LT: "lt",
    Op.LE: "lt-eq",
    Op.GT: "gt",
    Op.GE: "gt-eq",
}
_NAMES: Final[dict[type[Leaf], str]] = {
    IsNull: "is-null",
    NotNull: "not-null",
    IsNaN: "is-nan",
    NotNaN: "not-nan",
    In: "in",
    NotIn: "not-in",
    StartsWith: "starts-with",
    NotStartsWith: "not-starts-with",
}


def without_values(where: Expression) -> Any:
    """Return a predicate as the protocol's JSON with the kinds of its values in place of them.

    What has no form there is ``true``: it tells nothing of the rows.

    Examples:
        >>> without_values(parse_predicate("name = 'Ann'"))
        {'type': 'eq', 'term': 'name', 'value': '(text)'}
    """
    return fold(where, _leaf, _combine_parts)


def _leaf(node: Expression) -> Any:
    if not isinstance(node, Leaf):
        return not isinstance(node, AlwaysFalse)
    term = ".".join(node.ref.parts)
    if isinstance(node, Comparison):
        return {"type": _OPS[node.op], "term": term, "value": _kind_of(node.literal)}
    told = {"type": _NAMES[type(node)], "term": term}
    if isinstance(node, In | NotIn):
        return {**told, "values": list(dict.fromkeys(map(_kind_of, node.values)))}
    return {**told, "value": "(text)"} if isinstance(node, StartsWith | NotStartsWith) else told


def _combine_parts(node: Expression, parts: list[Any]) -> Any:
    if isinstance(node, Not):
        return {"type": "not", "child": parts[0]}
    name = "and" if isinstance(node, And) else "or"
    return _join_by_halves(
        parts, lambda left, right: {"type": name, "left": left, "right": right}, node
    )


def _join_by_halves(parts: list[Any], join: Callable[[Any, Any], Any], node: Expression) -> Any:
    """Any number of operands as pairs of pairs, so that no list is deeper than its logarithm."""
    if not parts:
        return isinstance(node, And)
    while len(parts) > 1:
        pairs = [join(*parts[i : i + 2]) for i in range(0, len(parts) - 1, 2)]
        parts = pairs + parts[len(pairs) * 2 :]
    return parts[0]


def _kind_of(value: Any) -> str:
    """What kind a value is of; of a whole number how many digits it has."""
    if isinstance(value, bool):
        return "(boolean)"
    if isinstance(value, int):
        return f"({len(str(abs(value)))}-digit-int)"
    if isinstance(value, float | decimal.Decimal):
        return "(number)"
    if isinstance(value, dt.date | dt.time):
        return "(time)"
    return "(bytes)" if isinstance(value, bytes) else "(text)"
