"""What becomes of the rows of files, given which clause each of them falls under."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.spark.deletes.bitmap import Words
from frazil.spark.row_level.merging.clauses.clause import Do, When
from frazil.spark.row_level.merging.clauses.flags import written_by_clause
from frazil.spark.row_level.merging.keys.key_filter import is_filter_cheaper
from frazil.spark.row_level.merging.matches.by_place import PlaceMatches
from frazil.spark.row_level.merging.matches.counts import CLAUSE
from frazil.spark.row_level.merging.matches.matching import without_broadcast
from frazil.spark.row_level.target import Target, words_of_places
from frazil.spark.row_level.values.assignments import Assignments, columns_named
from frazil.spark.session.facts import type_support
from frazil.spark.session.free_names import free_names

How = Literal["inner", "left"]


@dataclass(frozen=True, slots=True)
class MergedRows:
    """Rows of files that clauses are about.

    Attributes:
        target: the files.
    """

    matches: PlaceMatches
    target: Target

    def updated_rows(self) -> DataFrame:
        """Return the rows that get new values, with these.

        Where not every task has all of them, the other rows are left out before a join moves them.
        """
        assigned = self._assign("inner")
        if assigned.is_sent or (places := self._places()) is None:
            return self._rows_after(self.target.rows(lineage=True), assigned, "inner")
        return self._rows_after(self.target.rows_at(places), assigned, "inner")

    def all_rows_after(self) -> list[DataFrame]:
        """Return all rows as they are afterwards, without those that are deleted.

        Where the changes are few, every task has them and looks each row up. Where they are many,
        the rows that nothing happens to are read apart from the others: a join would move them.
        """
        assigned = self._assign("left")
        may_part = is_filter_cheaper(
            rows=self.target.plan.record_count, keys=self.matches.counts.changed_rows
        )
        if assigned.is_sent or not may_part or (places := self._places()) is None:
            return [self._rows_after(self.target.rows(lineage=True), assigned, "left")]
        parts = [self.target.rows_but(places)]
        if self.matches.counts.updated_rows:
            changed = self._assign("inner")
            parts.append(self._rows_after(self.target.rows_at(places), changed, "inner"))
        return parts

    def _places(self) -> Mapping[int, Words] | None:
        matches = self.matches
        return words_of_places(self.target, matches.changes, most_rows=matches.counts.pairs)

    @property
    def _by_source(self) -> dict[int, Assignments]:
        """What the clauses for rows without a match set."""
        updates = self.matches.matching.checked.updates
        clauses = self.matches.matching.merge.of_kind(When.BY_SOURCE)
        return {n: updates[n] for n, _ in clauses if n in updates}

    def _assign(self, how: How) -> _Assigned:
        """The places of rows with their clauses, each beside its row of the source."""
        matching, source = self.matches.matching, self.matches.matching.source
        assigned = self.matches.changes_of_matched if self._by_source else self.matches.changes
        if how == "inner":
            assigned = assigned.where(F.col(CLAUSE).isin(list(matching.checked.updates)))
        place = self.target.place
        at, clause = free_names(
            ["_frazil_at", "_frazil_assigned"],
            [
                *(field.name for field in self.target.written_schema.fields),
                *source.names,
                source.number,
                CLAUSE,
                place,
            ],
        )
        assigned = assigned.withColumnRenamed(place, at).withColumnRenamed(CLAUSE, clause)
        beside = matching.sent_rows(source.rows, source.size.total)
        named = assigned.join(beside, source.number, "left")
        is_sent = matching.sends_pairs(named, self.matches.counts.changed_rows)
        return _Assigned(
            F.broadcast(named) if is_sent else without_broadcast(named), at, clause, is_sent
        )

    def _rows_after(self, rows: DataFrame, assigned: _Assigned, how: How) -> DataFrame:
        """Rows of files, changed by their clauses and without those that are deleted.

        Args:
            rows: with their places and lineage.
            how: ``inner`` for the changed rows alone, ``left`` for the others too.
        """
        matching, target = self.matches.matching, self.target
        merge, checked, by_source = matching.merge, matching.checked, self._by_source
        scope = merge.as_named(rows)
        which = F.col(quote_name_always([merge.source_alias, assigned.clause]))
        apart: Mapping[int, Mapping[str, Column]] = {}
        way = how
        if by_source and self.matches.unmatched is not None:
            unmatched = UnmatchedValues.of(
                rows,
                self.matches.unmatched.select(target.place, CLAUSE),
                by_source,
                target=target,
                alias=merge.target_alias,
                beside=(*assigned.rows.columns, *matching.source.names),
            )
            scope, apart = merge.as_named(unmatched.rows), unmatched.after
            which, way = F.coalesce(which, unmatched.clause), "left"
        joined = scope.join(
            assigned.rows.alias(merge.source_alias),
            F.col(quote_name_always([merge.target_alias, target.place]))
            == F.col(quote_name_always([merge.source_alias, assigned.at])),
            way,
        )
        if way != how:
            joined = joined.where(which.isin(list(checked.updates)))
        support = type_support(matching.spark)
        old = merge.values_before(target.schema, support)
        after = {
            n: made.columns_after(joined, support, old=old)
            for n, made in checked.updates.items()
            if n not in by_source
        }
        after.update({n: {**old, **values} for n, values in apart.items()})
        if how == "left":
            deletes = [n for n, c in enumerate(merge.clauses) if c.do is Do.DELETE]
            if deletes:
                joined = joined.where(which.isNull() | ~which.isin(deletes))
        alias = merge.target_alias
        return written_by_clause(joined, after, target=target, alias=alias, old=old, which=which)


@dataclass(frozen=True, slots=True)
class _Assigned:
    """Places beside rows of the source.

    Attributes:
        at, clause: the columns of the place and of the clause's number.
        is_sent: whether they go to every task, so that rows of the table need not be moved.
    """

    rows: DataFrame
    at: str
    clause: str
    is_sent: bool


@dataclass(frozen=True, slots=True)
class UnmatchedValues:
    """Rows with the values that clauses by source give them, computed without the source.

    Beside a source, a column's name alone may mean two columns, and a name with an alias another
    thing.

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
