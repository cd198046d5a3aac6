"""The clauses of a merge after Spark's analysis of all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from frazil.errors import ValidationError
from frazil.format.predicates.expressions import AlwaysFalse
from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.format.types import NestedField
from frazil.spark.row_level.command import Command
from frazil.spark.row_level.merging.clauses.clause import Do
from frazil.spark.row_level.merging.clauses.request import MergeRequest
from frazil.spark.row_level.merging.clauses.scopes import Scopes
from frazil.spark.row_level.values.assignments import Assignments
from frazil.spark.session.facts import type_support


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedClauses:
    """The clauses with their assignments, after Spark's analysis of all of them."""

    on: Column
    updates: Mapping[int, Assignments]
    inserts: Mapping[int, Assignments]

    @classmethod
    def of(cls, merge: MergeRequest, command: Command, spark: SparkSession) -> CheckedClauses:
        """Check everything before a row is read."""
        schema = command.base.schema
        target = command.target(spark, AlwaysFalse())
        scopes = Scopes.of(merge, merge.as_named(target.no_rows()), merge.source.limit(0))
        on = scopes.checked_on(merge)
        support = type_support(spark)
        updates: dict[int, Assignments] = {}
        inserts: dict[int, Assignments] = {}
        for place, clause in enumerate(merge.clauses):
            scope = scopes.of_clause(clause)
            scopes.check_condition(clause)
            if clause.do is Do.DELETE:
                continue
            values = clause.values
            if values is None:
                values = _all_of_source(schema.fields, merge, command.case_sensitive)
            made = Assignments.of(
                values,
                schema,
                alias=merge.target_alias,
                case_sensitive=command.case_sensitive,
                nested=clause.do is Do.UPDATE,
                keeps_fields=merge.evolves and clause.takes_all,
                are_columns=clause.takes_all,
            )
            old = merge.values_before(schema, support) if clause.do is Do.UPDATE else None
            after = made.columns_after(scope, support, old=old)
            if not clause.takes_all:
                # Of columns alone everything is known from their types.
                scope.select(*after.values()).schema  # noqa: B018
            (updates if clause.do is Do.UPDATE else inserts)[place] = made
        return cls(on=on, updates=updates, inserts=inserts)


def _all_of_source(
    fields: Sequence[NestedField], merge: MergeRequest, case_sensitive: bool
) -> dict[str, Column]:
    """Every column of the table from the source's column of its name."""
    key = str if case_sensitive else str.lower
    given = {key(name): name for name in merge.source.columns}
    missing = [field.name for field in fields if key(field.name) not in given]
    if merge.evolves and len(missing) < len(fields):
        fields = [field for field in fields if key(field.name) in given]
    elif missing:
        raise ValidationError(
            f"the source has no column {missing[0]!r}, which a clause for all columns takes from "
            f"it; it has {', '.join(map(repr, merge.source.columns))}"
        )
    return {
        quote_name_always([field.name]): F.col(
            quote_name_always([merge.source_alias, given[key(field.name)]])
        )
        for field in fields
    }
