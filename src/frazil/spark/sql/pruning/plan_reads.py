"""What a plan of Spark's optimizer asks of each table that it reads.

A filter above a read says which rows are wanted. A join says that one side's rows are wanted only
where their key is among the other side's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from frazil.spark.plans.machine import elements
from frazil.spark.sql.qualifiers import without_qualifiers

_ROW_BY_ROW: Final = frozenset(
    {"Filter", "Generate", "Sort", "Repartition", "RepartitionByExpression", "RebalancePartitions"}
)
"""Nodes that pass the columns below on, and say of each row alone whether it stays."""

_BETWEEN: Final = "\x01"
_COLUMN: Final = re.compile(r"(?P<name>.*)#(?P<id>\d+)L?", re.DOTALL)
_PLAIN_COLUMN: Final = re.compile(r"\w+#(?P<id>\d+)L?")
"""The text of a column in a list of named expressions."""
_MAYBE_COLUMN: Final = re.compile(r".*#\d+L? AS .*#\d+L?|(?!.* AS ).*#\d+L?", re.DOTALL)
"""What the text of a column with another name has, and that of one of any name."""

_BOTH: Final = frozenset({"Inner", "Cross", "LeftSemi"})
_LEFT_BY_RIGHT: Final = _BOTH | {"RightOuter"}
_RIGHT_BY_LEFT: Final = _BOTH | {"LeftOuter", "LeftAnti", "ExistenceJoin"}
_LEFT_ALONE: Final = frozenset({"LeftSemi", "LeftAnti", "ExistenceJoin"})


@dataclass(frozen=True, slots=True)
class TableRead:
    """One read of a table in a plan.

    Attributes:
        number: tells the reads of a plan apart.
        place: which table of the statement is read.
        condition: what the filter above asks for, with names of columns alone; None for all rows.
    """

    number: int
    place: int
    condition: str | None


@dataclass(frozen=True, slots=True)
class JoinedKey:
    """A join: of one read only rows are wanted whose column has a value of another read's column.

    Attributes:
        read, column: whose rows are left out.
        source, source_column: where the values are; they stand there in rows that its own condition
            lets through.
    """

    read: TableRead
    column: str
    source: TableRead
    source_column: str


@dataclass(frozen=True, slots=True)
class AskedAggregate:
    """A plan that is one row of aggregates of one read.

    Attributes:
        read: whose rows are aggregated.
        measures: a function, ``count``, ``min`` or ``max``, and its column each; None for ``*``.
        names: of the columns of the row.
    """

    read: TableRead
    measures: tuple[tuple[str, str | None], ...]
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlanReads:
    """The reads of a plan, the joins between them, and what is asked where it is one row."""

    reads: tuple[TableRead, ...] = ()
    keys: tuple[JoinedKey, ...] = ()
    aggregate: AskedAggregate | None = None


@dataclass(slots=True)
class _Found:
    reads: list[TableRead] = field(default_factory=list)
    keys: list[JoinedKey] = field(default_factory=list)


_Columns = Mapping[int, tuple[TableRead, str]]
"""Columns of reads by the ids that a node's output has for them, as they were read."""


def reads_of(plan: Any, place_of: Callable[[Any], int | None]) -> PlanReads:
    """Return what an optimized plan of the virtual machine asks of its tables.

    Args:
        place_of: the place of a relation in the statement; None for one that is not asked about.
    """
    found = _Found()
    _columns_of(plan, None, place_of, found)
    aggregate = _aggregate(plan, found.reads[0]) if len(found.reads) == 1 else None
    return PlanReads(tuple(found.reads), tuple(found.keys), aggregate)


def _columns_of(
    node: Any, above: Any, place_of: Callable[[Any], int | None], found: _Found
) -> _Columns:
    """The columns of reads in a node's output; what is below it is added to `found`."""
    kind = node.nodeName()
    if kind == "LogicalRelation":
        return _read(node, above, place_of(node), found)
    over = node if kind == "Filter" else None
    below = [_columns_of(each, over, place_of, found) for each in elements(node.children())]
    for inner in elements(node.innerChildren()):
        _columns_of(inner, None, place_of, found)
    if not any(below):
        return {}
    if kind == "Join":
        return _columns_of_join(node, below[0], below[1], found)
    if kind == "Project":
        return _passed_on(node.projectList(), below[0])
    if kind == "Aggregate":
        grouped = {
            each.exprId().id() for each in elements(node.groupingExpressions()) if _is_column(each)
        }
        kept = {number: column for number, column in below[0].items() if number in grouped}
        return _passed_on(node.aggregateExpressions(), kept) if kept else {}
    return below[0] if kind in _ROW_BY_ROW else {}


def _aggregate(node: Any, read: TableRead) -> AskedAggregate | None:
    """What a plan over one read asks for, where it is counts, minima and maxima alone."""
    if node.nodeName() != "Aggregate" or node.groupingExpressions().size():
        return None
    measures, names = [], []
    for each in elements(node.aggregateExpressions()):
        measure = _measure(each.child()) if each.nodeName() == "Alias" else None
        if measure is None:
            return None
        measures.append(measure)
        names.append(str(each.name()))
    below = node.child()
    while below.nodeName() in ("Project", "Filter"):
        if below.nodeName() == "Project" and not all(
            map(_is_column, elements(below.projectList()))
        ):
            return None
        if below.nodeName() == "Filter" and below.child().nodeName() != "LogicalRelation":
            return None
        below = below.child()
    if below.nodeName() != "LogicalRelation" or not measures:
        return None
    return AskedAggregate(read, tuple(measures), tuple(names))


def _measure(expression: Any) -> tuple[str, str | None] | None:
    if expression.nodeName() != "AggregateExpression" or expression.filter().isDefined():
        return None
    function = expression.aggregateFunction()
    kind, arguments = function.nodeName().lower(), function.children()
    if kind not in ("count", "min", "max") or arguments.size() != 1:
        return None
    of = arguments.apply(0)
    if _is_column(of) and not (kind == "count" and expression.isDistinct()):
        return kind, str(of.name())
    counts_rows = kind == "count" and of.nodeName() == "Literal" and not expression.isDistinct()
    return ("count", None) if counts_rows and str(of.sql()) == "1" else None


def _read(node: Any, above: Any, place: int | None, found: _Found) -> _Columns:
    if place is None:
        return {}
    read = TableRead(len(found.reads), place, None if above is None else _condition(above))
    found.reads.append(read)
    return {number: (read, name) for number, name in _columns(node.output())}


def _columns(attributes: Any) -> list[tuple[int, str]]:
    """The id and the name of each of some columns, in one call where their texts tell them."""
    texts = str(attributes.mkString(_BETWEEN)).split(_BETWEEN)
    named = [_COLUMN.fullmatch(text) for text in texts]
    if len(texts) != attributes.size() or not all(named):
        return [(each.exprId().id(), str(each.name())) for each in elements(attributes)]
    return [(int(each["id"]), each["name"]) for each in named if each is not None]


def _passed_on(expressions: Any, below: _Columns) -> _Columns:
    """Columns that a list of named expressions passes on as they are, also under another name."""
    columns: dict[int, tuple[TableRead, str]] = {}
    texts = str(expressions.mkString(_BETWEEN)).split(_BETWEEN)
    named = texts if len(texts) == expressions.size() else [None] * expressions.size()
    for place, text in enumerate(named):
        plain = None if text is None else _PLAIN_COLUMN.fullmatch(text)
        if plain is not None:
            number = int(plain["id"])
            if number in below:
                columns[number] = below[number]
            continue
        if text is not None and not _MAYBE_COLUMN.fullmatch(text):
            continue
        # The text of a literal may look like that of a column.
        each = expressions.apply(place)
        of = each.child() if each.nodeName() == "Alias" else each
        if _is_column(of) and of.exprId().id() in below:
            columns[each.exprId().id()] = below[of.exprId().id()]
    return columns


def _columns_of_join(node: Any, left: _Columns, right: _Columns, found: _Found) -> _Columns:
    kind = node.joinType().toString().partition("(")[0]
    if node.condition().isDefined() and left and right:
        for one, other in _equal_columns(node.condition().get()):
            if one in right and other in left:
                one, other = other, one
            if one not in left or other not in right:
                continue
            if kind in _LEFT_BY_RIGHT:
                found.keys.append(JoinedKey(*left[one], *right[other]))
            if kind in _RIGHT_BY_LEFT:
                found.keys.append(JoinedKey(*right[other], *left[one]))
    return left if kind in _LEFT_ALONE else {**left, **right}


def _equal_columns(condition: Any) -> Iterator[tuple[int, int]]:
    """The ids of columns that a condition wants to be equal."""
    if condition.nodeName() == "And":
        yield from _equal_columns(condition.left())
        yield from _equal_columns(condition.right())
    elif (
        condition.nodeName() == "EqualTo"
        and _is_column(condition.left())
        and _is_column(condition.right())
    ):
        yield condition.left().exprId().id(), condition.right().exprId().id()


def _is_column(expression: Any) -> bool:
    """Whether an expression is a column."""
    return bool(expression.nodeName() == "AttributeReference")


def _condition(node: Any) -> str | None:
    """The condition of a filter, with names of columns alone; None where that is not sure."""
    condition = node.condition()
    qualifiers, bare = set(), set()
    for reference in elements(condition.references().toSeq()):
        qualifier = reference.qualifier()
        if qualifier.size():
            qualifiers.add(tuple(qualifier.mkString("\x01").split("\x01")))
        else:
            bare.add(str(reference.name()))
    if any(parts[0] in bare for parts in qualifiers):
        return None
    return without_qualifiers(condition.sql(), qualifiers)
