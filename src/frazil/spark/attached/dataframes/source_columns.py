"""Columns that were taken from a DataFrame, as ``df.id``, by names that outlast its plan."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.spark.session.facts import is_connect

_OPERATORS: Final[Mapping[str, Callable[..., Any]]] = {
    "=": operator.eq,
    "<=>": Column.eqNullSafe,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "and": operator.and_,
    "or": operator.or_,
    "not": operator.invert,
    "!": operator.invert,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": operator.mod,
}
"""What stands between columns, by the names that Spark calls it by."""


@dataclass(frozen=True, slots=True)
class SourceColumns:
    """The columns of a merge's source.

    A merge looks at its source more than once, so that a column of the DataFrame's own plan, as
    ``df.id``, is not found: a name with the source's alias is.

    Attributes:
        rows: the source.
        alias: what it is called in the merge.
    """

    rows: DataFrame
    alias: str

    def named(self, column: Any) -> Any:
        """Return a column with names in place of the source's own columns.

        Only comparisons, calls and the columns themselves are looked into; what else there is stays
        as it is.
        """
        if not isinstance(column, Column) or is_connect(self.rows.sparkSession):
            return column
        # Spark's public API does not say what a column is made of.
        given: Any = column
        node = given._jc.node()
        own = {each.exprId().toString(): each.name() for each in self._attributes()}
        return self._renamed(node, own) if _names_one(node, own) else column

    def _attributes(self) -> Iterator[Any]:
        rows: Any = self.rows
        return _each(rows._jdf.queryExecution().analyzed().output())

    def _renamed(self, node: Any, own: dict[str, str]) -> Any:
        name = _own_name(node, own)
        if name is not None:
            return F.col(quote_name_always([self.alias, name]))
        match _kind(node):
            case "UnresolvedFunction":
                inner = [self._renamed(each, own) for each in _each(node.arguments())]
                called = _OPERATORS.get(node.functionName())
                if called is not None:
                    return called(*inner)
                return F.call_function(node.functionName(), *inner)
            case "UnresolvedAttribute":
                return F.col(quote_name_always(list(_each(node.nameParts()))))
            case "Literal":
                return F.lit(node.value())
        return F.expr(node.sql())


def _names_one(node: Any, own: dict[str, str]) -> bool:
    if _own_name(node, own) is not None:
        return True
    if _kind(node) != "UnresolvedFunction":
        return False
    return any(_names_one(each, own) for each in _each(node.arguments()))


def _own_name(node: Any, own: dict[str, str]) -> str | None:
    if _kind(node) != "ExpressionColumnNode":
        return None
    expression = node.expression()
    if expression.nodeName() != "AttributeReference":
        return None
    return own.get(expression.exprId().toString())


def _kind(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def _each(sequence: Any) -> Iterator[Any]:
    for place in range(sequence.size()):
        yield sequence.apply(place)
