"""Relations of a plan that Spark's parser made: found, and replaced by other plans.

A map of Scala is a partial function, so Spark itself replaces what is in it, sub-queries too,
without a call for each node. It does not enter the definitions of CTEs, which are walked here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from frazil.spark.plans.hidden import DeletedPlaces, EachPlace
from frazil.spark.plans.machine import Machine, elements, kind_of

RELATION: Final = "UnresolvedRelation"
_TRAVEL: Final = "RelationTimeTravel"
_ALIAS: Final = "SubqueryAlias"
_SCOPE: Final = "UnresolvedWith"
_WITH: Final = "CTE ["
_PLAIN: Final = re.compile(
    rf"(?:'{_ALIAS} (?P<alias>[^\n]*)\n[ :|+-]*)?"
    rf"'{RELATION} \[(?P<parts>[^\[\],]+(?:, [^\[\],]+)*)\], \[\], false"
)
_WRITTEN: Final = re.compile(
    rf"'{RELATION} \[([^\[\],]+(?:, [^\[\],]+)*)\], \[__required_write_privileges__="
)
_NODE: Final = re.compile(r"^[ :|+-]*'?\w*")
_UNRESOLVED: Final = re.compile(r"'([\w.`]+)")
_SPECIAL: Final = re.compile(
    rf"{_TRAVEL}|'{RELATION} \[[^\n]*?\], \[(?!\]|__required_write_privileges__=)"
)
_WORD: Final = re.compile(r"\w+")
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
        alias: right above it; None where there is none.
        uses: in how many places it is, at most.
    """

    parts: tuple[str, ...]
    node: Any
    version: str | None = None
    timestamp: str | None = None
    options: tuple[tuple[str, str], ...] = ()
    alias: str | None = None
    uses: int = 1

    def key(self, machine: Machine) -> Any:
        """Return the node with its alias."""
        return self.node if self.alias is None else machine.named_plan(self.node, (self.alias,))


def relations_in(machine: Machine, plan: Any, *, node_by_node: bool) -> list[PlannedRelation]:
    """Return the relations that a plan reads, but CTEs; those that it writes to are none.

    Args:
        node_by_node: whether names have letters by which the text of a plan cannot be read.
    """
    found: dict[Any, PlannedRelation] = {}
    for each in _in_scopes(machine, plan, frozenset(), node_by_node):
        key = (each.parts, each.alias, each.version, each.timestamp, each.options)
        known = found.get(key)
        found[key] = each if known is None else replace(known, uses=known.uses + 1)
    return list(found.values())


def written_names(text: str) -> list[tuple[str, ...]]:
    """Return the names of the tables that a plan writes to, in the text of the plan."""
    return [tuple(named.split(", ")) for named in _WRITTEN.findall(text)]


def unresolved_names(text: str) -> list[frozenset[str]]:
    """Return the parts of each name of a column in the text of a plan, in small letters."""
    return [
        frozenset(each.replace("`", "").lower().split("."))
        for line in text.splitlines()
        for each in _UNRESOLVED.findall(_NODE.sub("", line))
        if not each.startswith("Unresolved")
    ]


def read_plan(plan: Any) -> Any:
    """Return what of a plan reads: what a command holds apart from its children, or all of it."""
    place = _HOLDERS.get(kind_of(plan))
    return plan if place is None else plan.productElement(place)


Rows = Sequence[tuple[PlannedRelation, Any]]
"""Plans, with relations that they stand for."""


def replace_relations(
    machine: Machine,
    plan: Any,
    rows: Rows,
    deleted: DeletedPlaces | None = None,
) -> Any:
    """Return a plan with other plans in the places of relations.

    Args:
        rows: a relation of one part is replaced where no CTE has its name.
        deleted: where deleted rows are among them; None where no columns are marked as hidden.
    """
    if deleted is not None:
        deleted.ids.clear()
    found = _Replacing(machine, rows, deleted)
    place = _HOLDERS.get(kind_of(plan))
    if place is None:
        return found.in_scope(plan, frozenset())
    fields = [plan.productElement(i) for i in range(2)]
    fields[place] = found.in_scope(fields[place], frozenset())
    return plan.copy(*fields)


@dataclass(frozen=True, slots=True)
class _Replacing:
    """What is replaced; the arguments are those of `replace_relations`."""

    machine: Machine
    rows: Rows
    deleted: DeletedPlaces | None

    def in_scope(self, plan: Any, ctes: frozenset[str]) -> Any:
        """A plan where CTEs of some names, in small letters, are in scope.

        A query with CTEs of its own is done apart: names in it may be those of its CTEs.
        """
        if _WITH not in plan.toString():
            return self._replace_here(plan, ctes)
        if kind_of(plan) == _SCOPE:
            return self._replace_in_with(plan, ctes)
        left_out, put_in = [], []
        for number, node in enumerate(_withs(plan)):
            place = _unresolved_relation(self.machine, (_BETWEEN, str(number)))
            left_out.append((node, place))
            put_in.append((place, self._replace_in_with(node, ctes)))
        outer = plan.transformDownWithSubqueries(self.machine.mapping(left_out))
        done = self._replace_here(outer, ctes)
        return done.transformUpWithSubqueries(self.machine.mapping(put_in))

    def _replace_here(self, plan: Any, ctes: frozenset[str]) -> Any:
        """A plan without CTEs of its own."""
        here = [
            (each, made)
            for each, made in self.rows
            if len(each.parts) > 1 or each.parts[0].lower() not in ctes
        ]
        plans = [(each.key(self.machine), made) for each, made in here]
        if self.deleted is not None:
            by_node = self.machine.mapping(plans)
            return plan.transformDownWithSubqueries(EachPlace(self.machine, by_node, self.deleted))
        # Upwards, rows that are put in are not walked; those with an alias are put in first.
        aliased = [row for row, (each, _) in zip(plans, here, strict=True) if each.alias]
        plain = [row for row, (each, _) in zip(plans, here, strict=True) if not each.alias]
        for found in (aliased, plain):
            if found:
                plan = plan.transformUpWithSubqueries(self.machine.mapping(found))
        return plan

    def _replace_in_with(self, node: Any, ctes: frozenset[str]) -> Any:
        """A query with CTEs, each of which sees those before it."""
        done = []
        for cte, name, own in _scopes_of(node, ctes):
            # Spark 4.1 has a third part, of recursion.
            title, alias, *depth = (cte.productElement(i) for i in range(cte.productArity()))
            made = alias.copy(alias.identifier(), self.in_scope(alias.child(), own))
            done.append(cte.copy(title, made, *depth))
            ctes |= {name}
        child = self.in_scope(node.child(), ctes)
        return node.copy(child, self.machine.sequence(done), node.allowRecursion())


def _in_scopes(
    machine: Machine, plan: Any, ctes: frozenset[str], node_by_node: bool
) -> Iterator[PlannedRelation]:
    """The relations below a node, where CTEs of some names are in scope."""
    text = str(plan.toString())
    if _WITH in text and kind_of(plan) == _SCOPE:
        for cte, name, own in _scopes_of(plan, ctes):
            yield from _in_scopes(machine, cte.productElement(1).child(), own, node_by_node)
            ctes |= {name}
        yield from _in_scopes(machine, plan.child(), ctes, node_by_node)
        return
    read = None if node_by_node or _WITH in text or _SPECIAL.search(text) else _in_text(text)
    if read is None:
        yield from _in_nodes(machine, plan, ctes, node_by_node, None)
        return
    for parts, alias in read:
        if len(parts) > 1 or parts[0].lower() not in ctes:
            yield PlannedRelation(parts, _unresolved_relation(machine, parts), alias=alias)


def _in_text(text: str) -> list[tuple[tuple[str, ...], str | None]] | None:
    """The names of relations and their aliases in the text of a plan; None where it is unclear."""
    found = []
    for each in _PLAIN.finditer(text):
        alias = each["alias"]
        if alias is not None and not _WORD.fullmatch(alias):
            return None
        found.append((tuple(each["parts"].split(", ")), alias))
    return found


def _in_nodes(
    machine: Machine, node: Any, ctes: frozenset[str], node_by_node: bool, alias: str | None
) -> Iterator[PlannedRelation]:
    """The relations below a node, with what is right above it."""
    kind = kind_of(node)
    if kind == _SCOPE:
        yield from _in_scopes(machine, node, ctes, node_by_node)
        return
    if kind in (RELATION, _TRAVEL):
        found = _relation(node, kind, alias)
        if found is not None and (len(found.parts) > 1 or found.parts[0].lower() not in ctes):
            yield found
        return
    above = str(node.identifier().name()) if kind == _ALIAS else None
    for below in _children(node):
        yield from _in_nodes(machine, below, ctes, node_by_node, above)


def _relation(node: Any, kind: str, alias: str | None) -> PlannedRelation | None:
    """A relation that is read; None for one that is written to."""
    if kind == RELATION:
        options = _options(node)
        if options is None or node.isStreaming():
            return None
        return PlannedRelation(_parts(node), node, options=options, alias=alias)
    if kind_of(node.relation()) != RELATION:
        return None
    version, timestamp = node.version(), node.timestamp()
    return PlannedRelation(
        _parts(node.relation()),
        node,
        version=str(version.get()) if version.isDefined() else None,
        timestamp=str(timestamp.get().sql()) if timestamp.isDefined() else None,
        options=_options(node.relation()) or (),
        alias=alias,
    )


def _unresolved_relation(machine: Machine, parts: Sequence[str]) -> Any:
    """A relation of that name without options."""
    kind = machine.catalyst.analysis.UnresolvedRelation
    return kind(machine.name_parts(parts), machine.root.no_options, False)


def _scopes_of(node: Any, ctes: frozenset[str]) -> Iterator[tuple[Any, str, frozenset[str]]]:
    """The CTEs of a query, each with its name in small letters and with those that it sees."""
    for cte in elements(node.cteRelations()):
        name = str(cte.productElement(0)).lower()
        yield cte, name, ctes | {name} if node.allowRecursion() else ctes
        ctes |= {name}


def _withs(plan: Any) -> Iterator[Any]:
    """The outermost queries with CTEs."""
    if kind_of(plan) == _SCOPE:
        yield plan
        return
    for below in _children(plan):
        yield from _withs(below)


def _children(plan: Any) -> Iterator[Any]:
    for nodes in (plan.children(), plan.innerChildren()):
        yield from elements(nodes)


def _options(relation: Any) -> tuple[tuple[str, str], ...] | None:
    """The options of a read; None where the relation is written to."""
    entries = relation.options().asCaseSensitiveMap()
    found = {str(key): str(entries[key]) for key in entries}
    return None if "__required_write_privileges__" in found else tuple(sorted(found.items()))


def _parts(relation: Any) -> tuple[str, ...]:
    return tuple(relation.multipartIdentifier().mkString(_BETWEEN).split(_BETWEEN))
