"""Relations of a plan that Spark's parser made: found, and replaced by other plans.

A map of Scala is a partial function, so Spark itself replaces what is in it, sub-queries too,
without a call for each node. It does not enter the definitions of CTEs, which are walked here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from frazil.spark.catalog.machine import Machine

RELATION: Final = "UnresolvedRelation"
_TRAVEL: Final = "RelationTimeTravel"
_WITH: Final = "CTE ["
_PLAIN: Final = re.compile(rf"'{RELATION} \[([^\[\],]+(?:, [^\[\],]+)*)\], \[\], false")
_WRITTEN: Final = re.compile(
    rf"'{RELATION} \[([^\[\],]+(?:, [^\[\],]+)*)\], \[__required_write_privileges__="
)
_OPTIONS: Final = re.compile(rf"'{RELATION} \[[^\n]*?\], \[(?!\]|__required_write_privileges__=)")
_BETWEEN: Final = "\x01"
_HOLDERS: Final = {"ExplainCommand": 0, "DescribeQueryCommand": 1}
"""Commands with a plan that is none of their children, and at which place."""


@dataclass(frozen=True, slots=True)
class PlannedRelation:
    """A relation that a plan reads.

    Attributes:
        parts: of its name.
        node: of the plan, or one that equals it.
        version, timestamp: what stands after AS OF, as text of SQL.
        options: of the read, by their names.
    """

    parts: tuple[str, ...]
    node: Any
    version: str | None = None
    timestamp: str | None = None
    options: tuple[tuple[str, str], ...] = ()


def relations_in(machine: Machine, plan: Any, text: str) -> list[PlannedRelation]:
    """Return the relations that a plan reads; those that it writes to are none.

    Args:
        text: of the plan.
    """
    found: list[PlannedRelation] = []
    for named in dict.fromkeys(_PLAIN.findall(text)):
        parts = tuple(named.split(", "))
        found.append(PlannedRelation(parts, _relation(machine, parts)))
    if _TRAVEL in text or _OPTIONS.search(text):
        found += [each for node in _nodes(plan) for each in _special(node)]
    return found


def written_names(text: str) -> list[tuple[str, ...]]:
    """Return the names of the tables that a plan writes to, in the text of the plan."""
    return [tuple(named.split(", ")) for named in _WRITTEN.findall(text)]


def read_plan(plan: Any) -> Any:
    """Return what of a plan reads: what a command holds apart from its children, or all of it."""
    place = _HOLDERS.get(_kind(plan))
    return plan if place is None else plan.productElement(place)


Replacements = Sequence[tuple[Any, Any]]
"""Plans, with nodes that they stand for."""

Rows = Sequence[tuple[PlannedRelation, Any]]
"""Plans, with relations that they stand for."""


def replaced(machine: Machine, plan: Any, rows: Rows, others: Replacements = ()) -> Any:
    """Return a plan with other plans in the places of relations and nodes.

    Args:
        rows: a relation of one part is replaced where no CTE has its name.
    """
    place = _HOLDERS.get(_kind(plan))
    if place is None:
        return _in_scope(machine, plan, rows, others, frozenset())
    fields = [plan.productElement(i) for i in range(2)]
    fields[place] = _in_scope(machine, fields[place], rows, others, frozenset())
    return plan.copy(*fields)


def _in_scope(
    machine: Machine,
    plan: Any,
    rows: Rows,
    others: Replacements,
    hidden: frozenset[str],
) -> Any:
    """A plan where CTEs of some names, in small letters, are in scope.

    A query with CTEs of its own is done apart: names in it may be those of its CTEs.
    """
    found = _as_function(machine, rows, others, hidden)
    if _WITH not in plan.toString():
        return plan.transformUpWithSubqueries(found)
    if _kind(plan) == "UnresolvedWith":
        return _with(machine, plan, rows, others, hidden)
    left_out, put_in = machine.empty_map(), machine.empty_map()
    for number, node in enumerate(_withs(plan)):
        place = _relation(machine, (_BETWEEN, str(number)))
        left_out = left_out.updated(node, place)
        put_in = put_in.updated(place, _with(machine, node, rows, others, hidden))
    outer = plan.transformDownWithSubqueries(left_out).transformUpWithSubqueries(found)
    return outer.transformUpWithSubqueries(put_in)


def _with(
    machine: Machine,
    node: Any,
    rows: Rows,
    others: Replacements,
    hidden: frozenset[str],
) -> Any:
    """A query with CTEs, each of which sees those before it."""
    ctes, done = node.cteRelations(), []
    for place in range(ctes.size()):
        # Spark 4.1 has a third part, of recursion.
        cte = ctes.apply(place)
        name, alias, *depth = (cte.productElement(i) for i in range(cte.productArity()))
        own = hidden | {name.lower()} if node.allowRecursion() else hidden
        child = _in_scope(machine, alias.child(), rows, others, own)
        made = alias.copy(alias.identifier(), child)
        done.append(cte.copy(name, made, *depth))
        hidden |= {name.lower()}
    child = _in_scope(machine, node.child(), rows, others, hidden)
    return node.copy(child, machine.sequence(done), node.allowRecursion())


def _as_function(
    machine: Machine,
    rows: Rows,
    others: Replacements,
    hidden: frozenset[str],
) -> Any:
    found = machine.empty_map()
    for relation, plan in rows:
        if len(relation.parts) > 1 or relation.parts[0].lower() not in hidden:
            found = found.updated(relation.node, plan)
    for node, plan in others:
        found = found.updated(node, plan)
    return found


def _relation(machine: Machine, parts: Sequence[str]) -> Any:
    """A relation of that name without options."""
    empty = machine.jvm.org.apache.spark.sql.util.CaseInsensitiveStringMap.empty()
    return machine.catalyst.analysis.UnresolvedRelation(machine.sequence(parts), empty, False)


def _withs(plan: Any) -> Iterator[Any]:
    """The outermost queries with CTEs."""
    if _kind(plan) == "UnresolvedWith":
        yield plan
        return
    for below in _below(plan):
        yield from _withs(below)


def _nodes(plan: Any) -> Iterator[Any]:
    """Every node of a plan, those of sub-queries and CTEs too."""
    yield plan
    for below in _below(plan):
        yield from _nodes(below)


def _below(plan: Any) -> Iterator[Any]:
    for nodes in (plan.children(), plan.innerChildren()):
        for place in range(nodes.size()):
            yield nodes.apply(place)


def _special(node: Any) -> Iterator[PlannedRelation]:
    """A relation with a version or options."""
    kind = _kind(node)
    if kind == RELATION:
        options = _options(node)
        if options:
            yield PlannedRelation(_parts(node), node, options=options)
    elif kind == _TRAVEL and _kind(node.relation()) == RELATION:
        version, timestamp = node.version(), node.timestamp()
        yield PlannedRelation(
            _parts(node.relation()),
            node,
            version=str(version.get()) if version.isDefined() else None,
            timestamp=str(timestamp.get().sql()) if timestamp.isDefined() else None,
            options=_options(node.relation()),
        )


def _options(relation: Any) -> tuple[tuple[str, str], ...]:
    entries = relation.options().asCaseSensitiveMap()
    found = {str(key): str(entries[key]) for key in entries}
    return () if "__required_write_privileges__" in found else tuple(sorted(found.items()))


def _parts(relation: Any) -> tuple[str, ...]:
    return tuple(relation.multipartIdentifier().mkString(_BETWEEN).split(_BETWEEN))


def _kind(node: Any) -> str:
    return str(node.getClass().getSimpleName())
