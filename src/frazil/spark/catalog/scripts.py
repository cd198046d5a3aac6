"""Changes of a lake within a script of SQL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from frazil.spark.catalog.commands import command, kind_of, words_or_none
from frazil.spark.catalog.place import SessionPlace
from frazil.spark.plans.machine import Machine
from frazil.spark.sql.statements.listing import StatementKind


def changes_in_script(machine: Machine, place: SessionPlace, plan: Any) -> list[tuple[Any, Any]]:
    """Return the statements of a script that change a lake, with commands in their places."""
    names = place.names_now()
    found = []
    for statement in _statements(plan):
        text = _text(statement)
        if text is None or not names.may_be_in(text):
            continue
        if kind_of(names, text, words_or_none(text)) in (StatementKind.CHANGE, StatementKind.CALL):
            changed = command(machine, place.run, text)
            found.append((statement, _in_its_place(machine, statement, changed)))
    return found


def _in_its_place(machine: Machine, statement: Any, plan: Any) -> Any:
    """A statement of a script with another plan, which says the same of where it stands."""
    origin = machine.catalyst.trees.CurrentOrigin
    before = origin.get()
    origin.set(statement.origin())
    try:
        return statement.copy(plan)
    finally:
        origin.set(before)


def _statements(plan: Any) -> Iterator[Any]:
    if plan.getClass().getSimpleName() == "SingleStatement":
        yield plan
        return
    children = plan.children()
    for place in range(children.size()):
        yield from _statements(children.apply(place))


def _text(statement: Any) -> str | None:
    """What of the script a statement is."""
    origin = statement.origin()
    text, start, stop = origin.sqlText(), origin.startIndex(), origin.stopIndex()
    if not (text.isDefined() and start.isDefined() and stop.isDefined()):
        return None
    return str(text.get())[start.get() : stop.get() + 1]
