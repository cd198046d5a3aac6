"""What the texts of a merge's clauses are read over: no rows, of the table and of the source."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame

from frazil.spark.row_level.merging.clauses.clause import Clause, When
from frazil.spark.row_level.merging.clauses.request import MergeRequest
from frazil.spark.row_level.values.expressions import check_condition, condition_column


@dataclass(frozen=True, slots=True)
class Scopes:
    """The table's columns, the source's, and both, under the names that the merge gives them.

    Attributes:
        rows: the table's.
        source: the source's.
        both: the two beside each other.
    """

    rows: DataFrame
    source: DataFrame
    both: DataFrame

    @classmethod
    def of(cls, merge: MergeRequest, rows: DataFrame, source: DataFrame) -> Scopes:
        """Give the two sides their names.

        Args:
            rows: no rows of the table.
            source: no rows of the source.
        """
        named, given = rows.alias(merge.target_alias), source.alias(merge.source_alias)
        return cls(named, given, named.join(given))

    def of_clause(self, clause: Clause) -> DataFrame:
        """Return what a clause's condition and values may name."""
        scopes = {
            When.MATCHED: self.both,
            When.NOT_MATCHED: self.source,
            When.BY_SOURCE: self.rows,
        }
        return scopes[clause.when]

    def checked_on(self, merge: MergeRequest) -> Column:
        """Return the condition of the match.

        Raises:
            PredicateError: it cannot be used.
        """
        on = condition_column(merge.on, "on")
        check_condition(self.both, on, str(merge.on), "the condition of the match")
        return on

    def check_condition(self, clause: Clause) -> None:
        """Check a clause's condition, if it has one.

        Raises:
            PredicateError: it cannot be used.
        """
        if clause.condition is None:
            return
        condition = condition_column(clause.condition, "a clause's condition")
        said = f"in a clause for rows {clause.when}, the condition"
        check_condition(self.of_clause(clause), condition, str(clause.condition), said)
