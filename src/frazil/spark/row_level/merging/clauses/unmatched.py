"""New values of rows that no row of the source matches, computed where only the table is known.

Beside a source, a column's name alone may mean two columns, and a name with an alias another thing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.spark.row_level.target import Target
from frazil.spark.row_level.values.assignments import Assignments, columns_named
from frazil.spark.session.facts import type_support
from frazil.spark.session.free_names import free_names


@dataclass(frozen=True, slots=True)
class UnmatchedValues:
    """Rows with the values that clauses by source give them.

    Attributes:
        rows: the target's rows under its alias, with more columns.
        clause: the number of the clause that a row falls under, or NULL.
        after: of each clause the columns that it changes, with their new values over `rows`.
    """

    rows: DataFrame
    clause: Column
    after: Mapping[int, Mapping[str, Column]]

    @classmethod
    def of(
        cls,
        rows: DataFrame,
        assigned: DataFrame,
        updates: Mapping[int, Assignments],
        *,
        target: Target,
        alias: str,
        beside: tuple[str, ...],
    ) -> UnmatchedValues:
        """Compute them.

        Args:
            rows: of the target, with their places and lineage.
            assigned: the place and the clause, in this order, of each row that falls under one.
            updates: the assignments of the clauses that change rows.
            alias: the target's name in the command.
            beside: names of columns that the rows will stand beside.
        """
        place, number = assigned.columns
        (clause,) = free_names(["_frazil_unmatched"], [*rows.columns, *beside])
        chosen = assigned.select(place, F.col(number).alias(clause))
        scope = rows.join(chosen, place, "left").alias(alias)
        columns = columns_named(alias, rows.columns)
        old = {field.name: columns[field.name] for field in target.schema.fields}
        which = F.col(quote_name_always([alias, clause]))
        taken = [*rows.columns, clause, *beside]
        added: list[Column] = []
        after: dict[int, dict[str, Column]] = {}
        for n, assignments in updates.items():
            made = assignments.columns_after(scope, type_support(target.spark), old=old)
            after[n] = {}
            for name, value in made.items():
                if value is old[name]:
                    continue
                (more,) = free_names([f"_frazil_value_{len(added)}"], taken)
                added.append(F.when(which == n, value).alias(more))
                taken.append(more)
                after[n][name] = F.col(quote_name_always([alias, more]))
        kept = [column.alias(name) for name, column in columns.items()]
        return cls(scope.select(*kept, which.alias(clause), *added).alias(alias), which, after)
