"""MERGE as a user writes it, clause by clause."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from pyspark.sql import Column

from frazil.spark.port import SparkPort
from frazil.spark.row_level.figures import ChangeResult
from frazil.spark.row_level.merging.clauses.clause import Clause, Do, When
from frazil.spark.row_level.merging.merge import Merge

Condition = str | Column
Values = Mapping[str, Any]


@dataclass(slots=True)
class MergeBuilder:
    """A merge that is being written down; `execute` runs it.

        (
            trips.merge(corrections, on="target.id = source.id")
            .when_matched_delete(condition="source.gone")
            .when_matched_update_all()
            .when_not_matched_insert_all()
            .execute()
        )

    Of the clauses of one kind the first whose condition holds counts for a row. Conditions are SQL
    text or Columns. Values are given by column, or by field as ``"s.x"``: SQL text, a Column, or a
    Python value that is no text. delta-spark's names in camel case mean the same.
    """

    _port: SparkPort
    _merge: Merge

    def __post_init__(self) -> None:
        keys = self._merge.keys(self._port)
        if keys is not None:
            self._merge = replace(self._merge, on=keys)

    def when_matched_update(self, set: Values, *, condition: Condition | None = None) -> Self:
        """Change rows of the table that a row of the source matches.

        Args:
            set: the new values, from both rows.
            condition: on both rows.
        """
        return self._add(When.MATCHED, Do.UPDATE, condition, set)

    def when_matched_update_all(self, *, condition: Condition | None = None) -> Self:
        """Give every column of matched rows the value of the source's column of its name."""
        return self._add(When.MATCHED, Do.UPDATE, condition)

    def when_matched_delete(self, *, condition: Condition | None = None) -> Self:
        """Delete rows of the table that a row of the source matches."""
        return self._add(When.MATCHED, Do.DELETE, condition)

    def when_not_matched_insert(
        self, values: Values, *, condition: Condition | None = None
    ) -> Self:
        """Add a row for rows of the source that match no row of the table.

        Args:
            values: by column, from the source's row; columns that are left out get their default.
            condition: on the source's row.
        """
        return self._add(When.NOT_MATCHED, Do.INSERT, condition, values)

    def when_not_matched_insert_all(self, *, condition: Condition | None = None) -> Self:
        """Add rows of the source that match no row of the table, columns by name."""
        return self._add(When.NOT_MATCHED, Do.INSERT, condition)

    def when_not_matched_by_source_update(
        self, set: Values, *, condition: Condition | None = None
    ) -> Self:
        """Change rows of the table that no row of the source matches.

        Args:
            set: the new values, from the table's row.
            condition: on the table's row.
        """
        return self._add(When.BY_SOURCE, Do.UPDATE, condition, set)

    def when_not_matched_by_source_delete(self, *, condition: Condition | None = None) -> Self:
        """Delete rows of the table that no row of the source matches."""
        return self._add(When.BY_SOURCE, Do.DELETE, condition)

    def with_schema_evolution(self) -> Self:
        """Add columns of the source that the table lacks, in the same commit."""
        self._merge = replace(self._merge, evolves=True)
        return self

    def execute(self) -> ChangeResult:
        """Run the merge and return its figures.

        Raises:
            ValidationError: a clause makes no sense, or several rows of the source match a row.
            PredicateError: a condition cannot be used.
            SchemaMismatchError: a value's type does not fit its column.
            ConflictError: a concurrent commit contradicts it; nothing was changed.
        """
        return self._merge.run(self._port)

    def _add(
        self,
        when: When,
        do: Do,
        condition: Condition | None,
        values: Values | None = None,
    ) -> Self:
        clause = Clause(when=when, do=do, condition=condition, values=values)
        self._merge = replace(self._merge, clauses=(*self._merge.clauses, clause))
        return self

    # -- delta-spark's names ---------------------------------------------------------------------

    def whenMatchedUpdate(
        self, condition: Condition | None = None, set: Values | None = None
    ) -> Self:
        """As `when_matched_update`."""
        return self.when_matched_update({} if set is None else set, condition=condition)

    def whenMatchedUpdateAll(self, condition: Condition | None = None) -> Self:
        """As `when_matched_update_all`."""
        return self.when_matched_update_all(condition=condition)

    def whenMatchedDelete(self, condition: Condition | None = None) -> Self:
        """As `when_matched_delete`."""
        return self.when_matched_delete(condition=condition)

    def whenNotMatchedInsert(
        self, condition: Condition | None = None, values: Values | None = None
    ) -> Self:
        """As `when_not_matched_insert`."""
        return self.when_not_matched_insert({} if values is None else values, condition=condition)

    def whenNotMatchedInsertAll(self, condition: Condition | None = None) -> Self:
        """As `when_not_matched_insert_all`."""
        return self.when_not_matched_insert_all(condition=condition)

    def whenNotMatchedBySourceUpdate(
        self, condition: Condition | None = None, set: Values | None = None
    ) -> Self:
        """As `when_not_matched_by_source_update`."""
        return self.when_not_matched_by_source_update(
            {} if set is None else set, condition=condition
        )

    def whenNotMatchedBySourceDelete(self, condition: Condition | None = None) -> Self:
        """As `when_not_matched_by_source_delete`."""
        return self.when_not_matched_by_source_delete(condition=condition)

    def withSchemaEvolution(self) -> Self:
        """As `with_schema_evolution`."""
        return self.with_schema_evolution()
