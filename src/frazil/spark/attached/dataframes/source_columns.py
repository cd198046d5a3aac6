"""Columns that were taken from a DataFrame, as ``df.id``, by names that outlast its plan.

And columns of the table by its whole name, as ``lake.db.t.id``: by the name that the merge knows.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.spark.plans.machine import analysed_plan, elements
from frazil.spark.session.facts import is_connect
from frazil.spark.sql.qualifiers import with_short_qualifiers

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
        target: the whole name of the table, whose last part is what the merge calls it.
    """

    rows: DataFrame
    alias: str
    target: tuple[str, ...]

    def named_column(self, column: Any) -> Any:
        """Return a column with names in place of the source's own columns.

        Only comparisons, calls, CASE, casts and columns are looked into; what else there is stays
        as it is.
        """
        if not isinstance(column, Column):
            return column
        # Spark's public API does not say what a column is made of.
        given: Any = column
        if is_connect(self.rows.sparkSession):
            if self.target[-2] not in repr(column):
                return column
            return type(column)(self._requalified_part(given._expr))
        node = given._jc.node()
        attributes = elements(analysed_plan(self.rows).output())
        own = {each.exprId().toString(): each.name() for each in attributes}
        return self._renamed_node(node, own) if self._names_one(node, own) else column

    def _renamed_node(self, node: Any, own: dict[str, str]) -> Any:
        name = _own_name(node, own)
        if name is not None:
            return F.col(quote_name_always([self.alias, name]))
        match _kind(node):
            case "UnresolvedFunction":
                inner = [self._renamed_node(each, own) for each in elements(node.arguments())]
                called = _OPERATORS.get(node.functionName())
                if called is not None:
                    return called(*inner)
                return F.call_function(node.functionName(), *inner)
            case "UnresolvedAttribute":
                return F.col(
                    quote_name_always(self._short_parts(tuple(elements(node.nameParts()))))
                )
            case "Literal":
                return F.lit(node.value())
            case "CaseWhenOtherwise":
                return self._renamed_case(node, own)
            case "Cast" if node.evalMode().isEmpty():
                return self._renamed_node(node.child(), own).cast(node.dataType().sql())
        return F.expr(with_short_qualifiers(node.sql(), (self.target,)))

    def _names_one(self, node: Any, own: dict[str, str]) -> bool:
        match _kind(node):
            case "UnresolvedFunction":
                return any(self._names_one(each, own) for each in elements(node.arguments()))
            case "UnresolvedAttribute":
                parts = tuple(elements(node.nameParts()))
                return self._short_parts(parts) != parts
            case "ExpressionColumnNode":
                return _own_name(node, own) is not None
            case "Literal":
                return False
            case "CaseWhenOtherwise":
                return any(self._names_one(each, own) for each in _parts_of_case(node))
            case "Cast":
                return self._names_one(node.child(), own)
        text = str(node.sql())
        return with_short_qualifiers(text, (self.target,)) != text

    def _renamed_case(self, node: Any, own: dict[str, str]) -> Any:
        parts = [self._renamed_node(each, own) for each in _parts_of_case(node)]
        found = F.when(parts[0], parts[1])
        for at in range(2, len(parts) - 1, 2):
            found = found.when(parts[at], parts[at + 1])
        return found.otherwise(parts[-1]) if len(parts) % 2 else found

    def _short_parts(self, parts: tuple[str, ...]) -> tuple[str, ...]:
        """The name of a column with the table's last part alone before it."""
        lowered = [part.lower() for part in parts]
        for start in range(len(self.target) - 1):
            before = [part.lower() for part in self.target[start:]]
            if len(parts) > len(before) and lowered[: len(before)] == before:
                return parts[len(before) - 1 :]
        return parts

    def _requalified_part(self, part: Any) -> Any:
        """An expression of Spark Connect in which columns have short names."""
        if isinstance(part, list | tuple):
            return type(part)(self._requalified_part(each) for each in part)
        if not hasattr(part, "to_plan"):
            return part
        made = copy.copy(part)
        for name, value in vars(part).items():
            setattr(made, name, self._requalified_part(value))
        if type(part).__name__ == "ColumnReference":
            text = str(part._unparsed_identifier)
            made._unparsed_identifier = with_short_qualifiers(text, (self.target,))
        elif type(part).__name__ == "SQLExpression":
            made._expr = with_short_qualifiers(str(part._expr), (self.target,))
        return made


def _parts_of_case(node: Any) -> Iterator[Any]:
    """Conditions and values in turn, and the value of ELSE, if it has one."""
    for branch in elements(node.branches()):
        yield branch._1()
        yield branch._2()
    if node.otherwise().isDefined():
        yield node.otherwise().get()


def _own_name(node: Any, own: dict[str, str]) -> str | None:
    if _kind(node) != "ExpressionColumnNode":
        return None
    expression = node.expression()
    if expression.nodeName() != "AttributeReference":
        return None
    return own.get(expression.exprId().toString())


def _kind(node: Any) -> str:
    return str(node.getClass().getSimpleName())
