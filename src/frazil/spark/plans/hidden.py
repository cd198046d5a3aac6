"""Hidden columns, such as ``_file``, as columns of Spark's that no star means.

Spark has such of its own (`_metadata`), and finds them by their names through projections, filters
and joins. Those of a relation are a tag of a node, which must be above every alias of it: Spark 4.1
looks through none. And each place of a table has columns of its own, since what Spark renews where
two are the same it does not renew in a tag.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pyspark.sql import DataFrame

from frazil.spark.abilities import made_by
from frazil.spark.files.projection import DELETED
from frazil.spark.plans.machine import (
    Machine,
    NodeReplacement,
    analysed_plan,
    elements,
    kind_of,
)

_IS_METADATA: Final = "__metadata_col"
"""How Spark marks a column that no star means."""

_ALIAS: Final = "SubqueryAlias"
_COLUMNS: Final = "UnresolvedSubqueryColumnAliases"
_RELATIONS: Final = frozenset({"UnresolvedRelation", "RelationTimeTravel"})


def with_marked_columns(machine: Machine, plan: Any, names: Collection[str]) -> Any:
    """Return a plan whose columns of some names are marked as hidden."""
    named = (
        (each, str(each.name()), _as_hidden(machine, each) if str(each.name()) in names else None)
        for each in elements(plan.output())
    )
    return _projection(machine, plan, named)


def with_hidden_columns(machine: Machine, plan: Any) -> Any:
    """Return a plan whose marked columns are found by their names alone."""
    shown, tagged = _shown_and_marked(plan)
    made = machine.catalyst.plans.logical.Project(machine.sequence(shown), plan)
    made.setTagValue(machine.root.hidden_tag, machine.sequence(tagged))
    return made


def marked_columns(
    machine: Machine, plan: Any, named: Iterable[tuple[Any, Any]], hidden_columns: Iterable[Any]
) -> Any:
    """Return a plan's columns by the names and ids of other ones, and hidden ones after these.

    Args:
        named: columns of the plan, each with the one that it stands for.
        hidden_columns: others of it, which get ids of their own.
    """
    made = [
        _alias(machine, column, str(other.name()), other.exprId(), other.metadata())
        for column, other in named
    ]
    made += [
        _alias(machine, column, str(column.name()), None, _as_hidden(machine, column))
        for column in hidden_columns
    ]
    return machine.catalyst.plans.logical.Project(machine.sequence(made), plan)


def hidden_above(machine: Machine, plan: Any, shown: int, before: Any) -> Any:
    """Return a plan's first columns; those after them are found by their names alone.

    Args:
        shown: how many are the first ones.
        before: a node whose tags the new one has too.
    """
    columns = list(elements(plan.output()))
    made = machine.catalyst.plans.logical.Project(machine.sequence(columns[:shown]), plan)
    made.copyTagsFrom(before)
    made.setTagValue(machine.root.hidden_tag, machine.sequence(columns[shown:]))
    made.setTagValue(machine.root.hidden_mark, True)
    return made


def rows_with_hidden(
    machine: Machine, rows: DataFrame, name: Sequence[str], names: Collection[str]
) -> Any:
    """Return the plan of rows that are found by the name of a table, some columns alone."""
    plan = analysed_plan(rows)
    if not names:
        return machine.named_plan(plan, name)
    return with_hidden_columns(
        machine, machine.named_plan(with_marked_columns(machine, plan, names), name)
    )


@dataclass(slots=True)
class DeletedPlaces:
    """Where a query asks for deleted rows: at places whose column of that name it names.

    Attributes:
        at: the places, by their order in the plan; None for all of them.
        ids: of the column at each place, which are known once a plan is made.
    """

    at: frozenset[int] | None = None
    ids: list[int | None] = field(default_factory=list)

    def places_in(self, plan: Any) -> DeletedPlaces:
        """Return the places whose column is named in an analysed plan."""
        text = whole_text(plan)
        # Where a column is made it has its own name before its id.
        at = (
            n
            for n, each in enumerate(self.ids)
            if each is not None and re.search(rf"(?<! AS ){DELETED}#{each}\b", text)
        )
        return DeletedPlaces(frozenset(at))


_ALL: Final = 1 << 30


def whole_text(plan: Any) -> str:
    """Return the text of a plan with all columns of each node."""
    told = (True, False, _ALL, False)
    return str(made_by(plan.treeString, (*told, False), told))


def _shown_and_marked(plan: Any) -> tuple[list[Any], list[Any]]:
    """The columns of a plan that are shown, and those that are marked."""
    shown: list[Any] = []
    tagged: list[Any] = []
    for each in elements(plan.output()):
        (tagged if each.metadata().contains(_IS_METADATA) else shown).append(each)
    return shown, tagged


def _projection(machine: Machine, plan: Any, columns: Iterator[tuple[Any, str, Any]]) -> Any:
    """A plan with columns of its own: of which, by what name, and with what metadata."""
    made = [_alias(machine, column, name, None, metadata) for column, name, metadata in columns]
    return machine.catalyst.plans.logical.Project(machine.sequence(made), plan)


def _alias(machine: Machine, column: Any, name: str, column_id: Any, metadata: Any) -> Any:
    """A column by a name: with an id, a new one without; and with metadata, its own without."""
    expressions, nothing = machine.catalyst.expressions, machine.sequence(())
    scala = machine.jvm.scala
    return expressions.Alias(
        column,
        name,
        expressions.NamedExpression.newExprId() if column_id is None else column_id,
        nothing,
        scala.Option.empty() if metadata is None else scala.Some(metadata),
        nothing,
    )


def _as_hidden(machine: Machine, column: Any) -> Any:
    """The metadata of a column with the mark of one that no star means."""
    builder = machine.sql.types.MetadataBuilder().withMetadata(column.metadata())
    return builder.putBoolean(_IS_METADATA, True).build()


class EachPlace(NodeReplacement):
    """Replaces relations, each with columns of its own.

    Args:
        plans: of the rows of relations, by these; columns are marked.
        deleted: where deleted rows are among them; it gets the ids of the columns.
    """

    def __init__(self, machine: Machine, plans: Any, deleted: DeletedPlaces) -> None:
        self.machine = machine
        self._deleted = deleted
        self._plans = plans

    def _replacement(self, node: Any) -> Any:
        kind = kind_of(node)
        if kind == _ALIAS:
            return self._rows(node, node.child(), str(node.identifier().name()))
        if kind == _COLUMNS or kind in _RELATIONS:
            return self._rows(node, node, None)
        return None

    def _rows(self, whole: Any, node: Any, alias: str | None) -> Any:
        """The rows of a relation below an alias, and below names for its columns."""
        names = None
        if kind_of(node) == _COLUMNS:
            names, node = [str(each) for each in elements(node.outputColumnNames())], node.child()
        found = self._plans.get(whole)
        if not found.isDefined():
            found = self._plans.get(node)
        if not found.isDefined():
            return None
        if not found.get().resolved():
            # It is no lake's, and has another name.
            return found.get()
        plan = self._own_columns(found.get(), names)
        return (
            None
            if plan is None
            else with_hidden_columns(self.machine, self._aliased_plan(plan, found.get(), alias))
        )

    def _own_columns(self, plan: Any, names: Sequence[str] | None) -> Any:
        """A plan's rows in columns of their own; None where others are named than there are."""
        shown, tagged = _shown_and_marked(plan)
        said = [str(each.name()) for each in shown] if names is None else names
        if len(said) != len(shown):
            return None
        named = [*zip(shown, said, strict=True), *((each, str(each.name())) for each in tagged)]
        place, at = len(self._deleted.ids), self._deleted.at
        column = next((each for each in tagged if str(each.name()) == DELETED), None)
        if column is not None and at is not None and place not in at:
            catalyst = self.machine.catalyst
            plan = catalyst.plans.logical.Filter(catalyst.expressions.Not(column), plan)
            named = [(each, name) for each, name in named if each is not column]
            column = None
        made = _projection(self.machine, plan, ((each, name, None) for each, name in named))
        new = (
            int(each.exprId().id())
            for each in elements(made.output())
            if str(each.name()) == DELETED and each.metadata().contains(_IS_METADATA)
        )
        self._deleted.ids.append(None if column is None else next(new))
        return made

    def _aliased_plan(self, plan: Any, before: Any, alias: str | None) -> Any:
        """A plan below an alias, or below the name that another one has."""
        if alias is not None:
            return self.machine.named_plan(plan, (alias,))
        return self.machine.catalyst.plans.logical.SubqueryAlias(before.identifier(), plan)
