"""Marks in a plan that tell which rows of a table stand there, and hidden columns by these.

A DataFrame's plan has no hidden columns: of those that Spark would know by a tag of a node, it
renews none where a DataFrame is joined with itself. So they come into a plan that Spark has read
but for their names, in which each side has columns of its own, and no tag is left in the result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from frazil.spark.plans.hidden import hidden_above, marked_columns
from frazil.spark.plans.machine import Machine, NodeReplacement, elements, kind_of

_ALIAS: Final = "SubqueryAlias"

MarkedRows = tuple[str, Any, int]
"""What a mark tells, the plan of its rows with hidden columns after the table's own, and how many
are its own."""


def mark(machine: Machine, plan: Any, text: str) -> None:
    """Let a plan tell which rows it is of."""
    plan.setTagValue(machine.root.table_mark, text)


def marks_in(machine: Machine, plan: Any) -> Iterator[str]:
    """Yield what the marks in a plan tell, each as often as it is there."""
    for node in _above_tables(machine, plan):
        found = node.getTagValue(machine.root.table_mark)
        if found.isDefined():
            yield str(found.get())


def with_hidden_columns(machine: Machine, plan: Any, rows: Sequence[MarkedRows]) -> Any:
    """Return a plan in which hidden columns are found by their names above each marked node.

    Args:
        plan: not analysed to its end, with columns of its own at each place of a table.
        rows: of the places, each with columns of their own.

    Returns:
        The plan, to be analysed and then given to `forget_hidden`.
    """
    return plan.transformUpWithSubqueries(_MarkedPlaces(machine, rows))


def forget_hidden(machine: Machine, plan: Any) -> None:
    """Have an analysed plan's hidden columns found no more: what is made of it may renew them."""
    for node in _above_tables(machine, plan):
        if node.getTagValue(machine.root.hidden_mark).isDefined():
            node.unsetTagValue(machine.root.hidden_tag)
            node.unsetTagValue(machine.root.hidden_mark)


def _above_tables(machine: Machine, node: Any) -> Iterator[Any]:
    """The nodes of a plan, but those below a mark."""
    yield node
    if node.getTagValue(machine.root.table_mark).isDefined():
        return
    for nodes in (node.children(), node.subqueries()):
        for each in elements(nodes):
            yield from _above_tables(machine, each)


class _MarkedPlaces(NodeReplacement):
    """Puts hidden columns into marked nodes, and above the aliases of these."""

    def __init__(self, machine: Machine, rows: Sequence[MarkedRows]) -> None:
        self.machine = machine
        self._rows = list(rows)

    def _replacement(self, node: Any) -> Any:
        found = node.getTagValue(self.machine.root.table_mark)
        if found.isDefined():
            return self._marked_plan(node, str(found.get()))
        return self._aliased_plan(node) if kind_of(node) == _ALIAS else None

    def _marked_plan(self, node: Any, text: str) -> Any:
        at = next((n for n, each in enumerate(self._rows) if each[0] == text), None)
        if at is None:
            return None
        _, plan, own = self._rows.pop(at)
        columns, old = list(elements(plan.output())), list(elements(node.output()))
        names = [str(each.name()) for each in columns]
        if names[:own] != [str(each.name()) for each in old[:own]]:
            return None
        # What was put in before is used above, by its id.
        again = dict(zip(names[own:], columns[own:], strict=True))
        if any(str(each.name()) not in again for each in old[own:]):
            return None
        kept = [*columns[:own], *(again[str(each.name())] for each in old[own:])]
        named = zip(kept, old, strict=True)
        made = marked_columns(self.machine, plan, named, columns[own:])
        if kind_of(node) == _ALIAS:
            made = node.copy(node.identifier(), made)
        made.copyTagsFrom(node)
        made.setTagValue(self.machine.root.table_mark, text)
        return self._plan_above(made, node, len(old))

    def _aliased_plan(self, node: Any) -> Any:
        """An alias below the node that tells hidden columns: Spark 4.1 looks through none."""
        below = node.child()
        if not below.getTagValue(self.machine.root.hidden_mark).isDefined():
            return None
        made = node.copy(node.identifier(), below.child())
        made.copyTagsFrom(node)
        return self._plan_above(made, node, below.output().size())

    def _plan_above(self, plan: Any, before: Any, shown: int) -> Any:
        """A plan's first columns, with all it tells of itself but which table it is of."""
        made = hidden_above(self.machine, plan, shown, before)
        made.unsetTagValue(self.machine.root.table_mark)
        return made
