"""A query as Spark's parser understood it, with the tables and views of lakes in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame

from frazil.errors import ValidationError
from frazil.spark.plans.hidden import DeletedPlaces, with_marked_columns
from frazil.spark.plans.machine import Machine, analysed_plan, machine_of
from frazil.spark.plans.relations import PlannedRelation, replace_relations
from frazil.spark.sql.binding.bound_text import BoundText
from frazil.spark.sql.errors.failures import in_the_users_words
from frazil.spark.sql.parameters import Args


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundPlan(BoundText):
    """A query as Spark's parser understood it, with the tables and views of lakes in it.

    Attributes:
        machine: where the plan is.
        plan: the query, with the values of its parameters.
        places: the relations of each name in `relations` and `frames`.
        moved: relations that are no lake's, and those by their whole names.
        deleted_at: the places whose deleted rows are asked for, as of `DeletedPlaces`.
    """

    machine: Machine
    plan: Any
    places: Mapping[str, PlannedRelation]
    moved: Sequence[tuple[PlannedRelation, Any]] = ()
    deleted_at: frozenset[int] | None = None

    @property
    def is_bound(self) -> bool:
        """Whether Spark cannot read the text as the user wrote it."""
        return bool(self.relations or self.frames or self.calls or self.moved)

    def run(self, args: Args, rows: Mapping[str, DataFrame]) -> DataFrame:
        """Return the query over some rows in place of the tables, of those within views too."""
        with in_the_users_words({}, self.given, self.changes):
            return self._frame(self.with_rows(rows))

    def with_rows(self, rows: Mapping[str, DataFrame]) -> Any:
        """Return the plan with some rows in place of the tables, not analysed."""
        return self._with_rows(rows, DeletedPlaces(self.deleted_at))

    def with_deleted_where_named(self) -> BoundPlan:
        """Return the query with deleted rows where it names the column that tells them alone.

        Raises:
            AnalysisException: of Spark, where the mistake is in the query.
        """
        deleted = DeletedPlaces()
        plan = analysed_plan(self._frame(self._with_rows(self.no_rows(), deleted)))
        return replace(self, deleted_at=deleted.places_in(plan).at)

    def _frame(self, plan: Any) -> DataFrame:
        return self.machine.frame(self.spark, plan)

    def _with_rows(self, rows: Mapping[str, DataFrame], deleted: DeletedPlaces) -> Any:
        for frame in self.frames.values():
            self._check_session(frame)
        hidden = [name for name, each in self.relations.items() if _hidden_columns(each)]
        plans = [
            (self.places[name], self._named_plan(name, frame))
            for name, frame in self.placed_rows(rows).items()
        ]
        found = [*plans, *self.moved]
        if hidden:
            # Spark asks for what stands at each place.
            machine_of(self.spark)
        return replace_relations(
            self.machine, self.plan, found, deleted=deleted if hidden else None
        )

    def _named_plan(self, name: str, frame: DataFrame) -> Any:
        """The plan of some rows, whose columns are found by the names of the table too."""
        plan = analysed_plan(frame)
        relation, place = self.relations.get(name), self.places[name]
        taken = _hidden_columns(relation)
        if taken:
            plan = with_marked_columns(self.machine, plan, taken)
        whole = place.parts if relation is None else relation.whole_name
        named = self.machine.named_plan(plan, whole)
        return named if place.alias is None else self.machine.named_plan(named, (place.alias,))

    def _check_session(self, frame: Any) -> None:
        own: Any = self.spark
        given = frame._jdf.sparkSession()
        if str(given.sessionUUID()) != str(own._jsparkSession.sessionUUID()):
            raise ValidationError(
                "a DataFrame in the statement belongs to another session: make it with the lake's "
                "(lake.spark)"
            )


def _hidden_columns(relation: object) -> Sequence[str]:
    """The hidden columns that a relation has."""
    return getattr(relation, "metadata_columns", ())
