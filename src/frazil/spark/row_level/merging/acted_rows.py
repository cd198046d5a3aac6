"""What becomes of the rows of touched files, given which clause each of their rows falls under."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.spark.deletes.bitmap import Words
from frazil.spark.row_level.assignments import Assignments
from frazil.spark.row_level.merging.clauses.clause import Do, When
from frazil.spark.row_level.merging.clauses.flags import written_by_clause
from frazil.spark.row_level.merging.clauses.unmatched import UnmatchedValues
from frazil.spark.row_level.merging.keys.key_filter import pays
from frazil.spark.row_level.merging.matching import Matching, shuffled
from frazil.spark.row_level.merging.touched import CLAUSE, Touched
from frazil.spark.row_level.target import Target, words_of_places
from frazil.spark.session.facts import type_support
from frazil.spark.session.free_names import free_names

How = Literal["inner", "left"]


@dataclass(frozen=True, slots=True)
class ActedRows:
    """Rows of files that clauses are about.

    Attributes:
        target: the files.
        touched: the rows, counted.
        matches: rows of the table with rows of the source, and the clause of each.
        orphans: rows without one that a clause is about, if any.
    """

    matching: Matching
    target: Target
    touched: Touched
    matches: DataFrame
    orphans: DataFrame | None

    def changed(self) -> DataFrame:
        """Return the rows that are changed, with their new values.

        Where not every task has all acts, the other rows are left out before the join moves them.
        """
        acts = self._acts("inner")
        if acts.is_sent or (places := self._places()) is None:
            return self._after(self.target.rows(lineage=True), acts, "inner")
        return self._after(self.target.rows_at(places), acts, "inner")

    def all_after(self) -> list[DataFrame]:
        """Return all rows as they are afterwards, without those that are deleted.

        Where the acts are few, every task has them and looks each row up. Where they are many, the
        rows that nothing happens to are read apart from the others: a join would move them.
        """
        acts = self._acts("left")
        may_part = pays(rows=self.target.plan.record_count, keys=self.touched.places)
        if acts.is_sent or not may_part or (places := self._places()) is None:
            return [self._after(self.target.rows(lineage=True), acts, "left")]
        parts = [self.target.rows_but(places)]
        if self.touched.updated:
            changed = self._acts("inner")
            parts.append(self._after(self.target.rows_at(places), changed, "inner"))
        return parts

    def _places(self) -> Mapping[int, Words] | None:
        acted = self.touched.acted(self.matches, self.orphans)
        return words_of_places(self.target, acted, most_rows=self.touched.pairs)

    @property
    def _by_source(self) -> dict[int, Assignments]:
        """What the clauses for rows without a match set."""
        updates = self.matching.checked.updates
        clauses = self.matching.clauses(When.BY_SOURCE)
        return {n: updates[n] for n, _ in clauses if n in updates}

    def _acts(self, how: How) -> _Acts:
        """The places of rows with their clauses, each beside its row of the source."""
        matching, source = self.matching, self.matching.source
        acts = self.touched.acted(self.matches, None if self._by_source else self.orphans)
        if how == "inner":
            acts = acts.where(F.col(CLAUSE).isin(list(matching.checked.updates)))
        place = self.target.place
        at, clause = free_names(
            ["_frazil_at", "_frazil_act"],
            [
                *(field.name for field in self.target.written_schema.fields),
                *source.names,
                source.number,
                CLAUSE,
                place,
            ],
        )
        acts = acts.withColumnRenamed(place, at).withColumnRenamed(CLAUSE, clause)
        beside = matching.sent(source.rows, source.size.total)
        named = acts.join(beside, source.number, "left")
        is_sent = matching.sends_pairs(named, self.touched.places)
        return _Acts(F.broadcast(named) if is_sent else shuffled(named), at, clause, is_sent)

    def _after(self, rows: DataFrame, acts: _Acts, how: How) -> DataFrame:
        """Rows of files, changed by their clauses and without those that are deleted.

        Args:
            rows: with their places and lineage.
            how: ``inner`` for the changed rows alone, ``left`` for the others too.
        """
        matching, target = self.matching, self.target
        merge, checked, by_source = matching.merge, matching.checked, self._by_source
        scope = merge.as_named(rows)
        which = F.col(quote_name_always([merge.source_alias, acts.clause]))
        apart: Mapping[int, Mapping[str, Column]] = {}
        way = how
        if by_source and self.orphans is not None:
            unmatched = UnmatchedValues.of(
                rows,
                self.orphans.select(target.place, CLAUSE),
                by_source,
                target=target,
                alias=merge.target_alias,
                beside=(*acts.rows.columns, *matching.source.names),
            )
            scope, apart = merge.as_named(unmatched.rows), unmatched.after
            which, way = F.coalesce(which, unmatched.clause), "left"
        joined = scope.join(
            acts.rows.alias(merge.source_alias),
            F.col(quote_name_always([merge.target_alias, target.place]))
            == F.col(quote_name_always([merge.source_alias, acts.at])),
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
class _Acts:
    """Places beside rows of the source.

    Attributes:
        at, clause: the columns of the place and of the clause's number.
        is_sent: whether they go to every task, so that rows of the table need not be moved.
    """

    rows: DataFrame
    at: str
    clause: str
    is_sent: bool
