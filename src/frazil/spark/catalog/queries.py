"""A lake's tables in a plan of Spark's: which they are, and the rows in their places."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from frazil.errors import NoSuchNamespaceError, NoSuchTableError, ValidationError
from frazil.format.predicates import AlwaysTrue
from frazil.spark.attached.dataframes.batch_reads import rows_of_choice
from frazil.spark.attached.dataframes.java_options import (
    Given,
    asked_version,
    changes_choice,
    read_choice,
)
from frazil.spark.attached.names import AttachedContext, SessionNames, context_to_read
from frazil.spark.catalog.place import SessionPlace
from frazil.spark.plans.hidden import rows_with_hidden
from frazil.spark.plans.machine import analysed_plan
from frazil.spark.plans.relations import PlannedRelation
from frazil.spark.sql.binding.bind import bound_plan, plan_with_hidden, use_of, with_hidden
from frazil.spark.sql.binding.bound_plan import BoundPlan
from frazil.spark.sql.binding.bound_text import QueriedView
from frazil.spark.sql.binding.relations import QueriedTable
from frazil.spark.sql.context import CHANGES, NamedTable, NamedView, TableVersion
from frazil.spark.sql.query import row_or_rows
from frazil.spark.words import begins_query, words_of

ROWS: Final = "FRAZIL ROWS "
"""How a text begins that only our parser reads: the name of a table follows, as JSON."""


def plan_with_rows(place: SessionPlace, plan: Any, text: str, *, whole: bool) -> Any:
    """Return a plan with the rows of lakes' tables that it can need; the plan where it reads none.

    A statement that is no query reads all files, since it is run once.

    Args:
        text: that the plan was made of.
        whole: names without a lake are those of the session now.

    Raises:
        FrazilError: a table cannot be read.
    """
    words, names = words_of(text), place.names_now()

    def bind(hidden: Sequence[str]) -> BoundPlan:
        def find(relation: PlannedRelation) -> Any:
            is_meant = whole or relation.parts[0] in names.lakes
            found = read_of(names, place.spark, relation) if is_meant else None
            return None if found is None else with_hidden(found, hidden)

        return bound_plan(place.spark, place.machine, plan, text, words, find)

    bound = plan_with_hidden(bind, words, place.spark)
    if not bound.relations:
        return plan
    try:
        rows = row_or_rows(bound) if begins_query(words) else bound.all_rows()
    except PySparkException:
        # The mistake is told of the user's own words, by Spark.
        rows = bound.all_rows()
    if isinstance(rows, dict):
        return bound.with_rows(rows)
    return analysed_plan(rows)


def plan_of_read(
    place: SessionPlace,
    parts: tuple[str, ...],
    named: NamedTable,
    given: Given,
    hidden: Sequence[str],
) -> Any:
    """Return the plan of the rows that a reader asks for.

    Args:
        parts: the table's name, as the reader says it.
        given: the reader's options.
        hidden: hidden columns that may be named.

    Raises:
        ConfigurationError: an option is unknown or malformed.
        NoSuchSnapshotError, NoSuchRefError: there is no such version.
        ValidationError: the options do not go together.
    """
    names = place.names_now()
    context = context_to_read(names, place.spark, parts)
    assert context is not None
    name = context.whole_name(parts)
    if (
        named.metadata_table is not None
        or read_choice(given, named.table.metadata).start is not None
    ):
        return place.machine.named_plan(analysed_plan(rows_of_choice(named, given)), name)
    version = asked_version(named, TableVersion(), given)
    found = use_of(context, PlannedRelation(parts, None), replace(named, version=version))
    found = with_hidden(found, hidden)
    assert isinstance(found, QueriedTable)
    return rows_with_hidden(place.machine, found.rows_anew(), name, found.metadata_columns)


def read_of(
    names: SessionNames, spark: Any, relation: PlannedRelation
) -> QueriedTable | QueriedView | None:
    """Return what a relation reads of a lake; None where it reads nothing of one."""
    context = context_to_read(names, spark, relation.parts)
    if context is None:
        return None
    try:
        named = context.find(relation.parts)
    except (NoSuchTableError, NoSuchNamespaceError):
        return None
    if named is not None and relation.options:
        named = context.with_options(named, dict(relation.options))
    return None if named is None else use_of(context, relation, named)


@dataclass(frozen=True, slots=True)
class NamedRows:
    """A table of a lake with all that says which rows are meant, as a text says it.

    Attributes:
        parts: of the name, the lake's first.
        version: the one that is read.
        options: between which snapshots changes are read.
    """

    parts: tuple[str, ...]
    version: TableVersion = field(default_factory=TableVersion)
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The text, which is that of a view."""
        said = {"name": self.parts, "options": self.options}
        return ROWS + json.dumps({**said, **self.version.arguments})

    @classmethod
    def of(cls, text: str) -> NamedRows:
        """Return what a text says."""
        said = json.loads(text[len(ROWS) :])
        parts, options = tuple(said.pop("name")), said.pop("options")
        return cls(parts, TableVersion(**said), options)

    def frame(self, names: SessionNames, spark: Any) -> DataFrame:
        """Return the rows of all files."""
        found = self.queried_relation(names, spark)
        if isinstance(found, QueriedView):
            return found.rows(found.bound.all_rows())
        return found.rows(AlwaysTrue())

    def queried_relation(self, names: SessionNames, spark: Any) -> QueriedTable | QueriedView:
        """Return what is read.

        Raises:
            NoSuchTableError: there is no such table.
        """
        context, named = self._find(names, spark)
        if isinstance(named, NamedTable) and self.version.arguments:
            named = replace(named, version=self.version)
        if isinstance(named, NamedTable) and self.options:
            named = replace(named, options=self.options)
        return use_of(context, PlannedRelation(self.parts, None), named)

    def at_version(
        self, names: SessionNames, spark: Any, asked: TableVersion | str, given: Given
    ) -> NamedRows:
        """Return the rows of a version, which a reader's options may say too.

        Raises:
            NoSuchTableError: there is no such table.
            ConfigurationError: an option is malformed.
            ValidationError: two of them, or one and the name, say which version; or it is a view.
        """
        if asked == TableVersion() and not given.values:
            return self
        named = self._find(names, spark)[1]
        if isinstance(named, NamedView):
            raise ValidationError(f"{'.'.join(self.parts)} is a view, which has no versions")
        if named.metadata_table == CHANGES and given.values:
            return replace(self, options=changes_choice(given))
        return replace(self, version=asked_version(named, asked, given))

    def _find(
        self, names: SessionNames, spark: Any
    ) -> tuple[AttachedContext, NamedTable | NamedView]:
        context = context_to_read(names, spark, self.parts)
        named = None if context is None else context.find(self.parts)
        if context is None or named is None:
            raise NoSuchTableError(f"there is no table {'.'.join(self.parts)}")
        return context, named
