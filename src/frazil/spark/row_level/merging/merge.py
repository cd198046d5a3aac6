"""MERGE: rows of a source change, delete and add rows of the table.

The source is evaluated once and kept. Matches are found by reading what the conditions name and
the places of rows; the other columns are read only of files that are touched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from frazil.format.manifests import DataFile
from frazil.format.predicates.expressions import Expression, any_of
from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.spark.free_names import free_names
from frazil.spark.row_level.assignments import columns_named
from frazil.spark.row_level.command import Command
from frazil.spark.row_level.figures import Changed
from frazil.spark.row_level.in_place import partition_columns
from frazil.spark.row_level.merging.clauses.checked import CheckedClauses
from frazil.spark.row_level.merging.clauses.clause import Clause, Do, When
from frazil.spark.row_level.merging.clauses.flags import first_that_holds, values_by_clause
from frazil.spark.row_level.merging.clauses.unmatched import UnmatchedValues
from frazil.spark.row_level.merging.matching import Matching
from frazil.spark.row_level.merging.one_join import rewritten_in_one_join, takes_one_join
from frazil.spark.row_level.merging.pruning import (
    equal_columns,
    implied_by_matches,
    implied_by_target,
)
from frazil.spark.row_level.merging.source import Source
from frazil.spark.row_level.merging.touched import CLAUSE, Touched
from frazil.spark.row_level.target import Target, file_of, position_of
from frazil.spark.session import prepare_session, type_support


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """A merge as it was asked for.

    Attributes:
        on: when a row of the source matches a row of the table.
        evolves: whether columns that the source lacks keep their values in clauses for all columns.
        keys: columns and fields in which no two rows of the source may be equal.
        target_name, source_name: what the two are called in `on`, conditions and values.
    """

    source: DataFrame
    on: str | Column
    clauses: Sequence[Clause]
    target_name: str
    source_name: str
    evolves: bool = False
    keys: tuple[tuple[str, ...], ...] = ()

    def run(self, command: Command) -> Changed:
        """Run it, once.

        Raises:
            PredicateError, ValidationError: a condition or a value makes no sense for the rows.
            SchemaMismatchError: a value's type does not fit its column.
            ConflictError: a concurrent commit contradicts it; nothing was changed.
        """
        spark = self.source.sparkSession
        prepare_session(spark)
        checked = CheckedClauses.of(self, command, spark)
        schema = command.base.schema
        keys = equal_columns(
            self.on,
            self.source,
            schema,
            target_name=self.target_name,
            source_name=self.source_name,
            case_sensitive=command.case_sensitive,
        )
        parts = {name.lower() for name in partition_columns(command.base)}
        given = [name.lower() for name in self.source.columns]
        single = parts & {name for name in given if given.count(name) == 1}
        compared = [name for name in self.source.columns if name.lower() in single]
        source = Source.of(self.source, [f.name for f in schema.fields], keys, compared)
        if self.keys:
            source.check_keys(self.keys)
        with command.discarding():
            matching = Matching(self, command, checked, source, spark)
            return _Merging(self, command, checked, source, spark, matching).run()


@dataclass(frozen=True, slots=True)
class _Merging:
    """One run of a merge."""

    merge: Merge
    command: Command
    checked: CheckedClauses
    source: Source
    spark: SparkSession
    matching: Matching

    def run(self) -> Changed:
        where = self._where()
        target = self.command.target(self.spark, where, [*self.source.names, self.source.number])
        if takes_one_join(self.matching):
            done = rewritten_in_one_join(self.matching, target, where)
            if done is not None:
                return done
        matches = self.matching.matches(target)
        orphans = self._orphans(target, matches)
        touched = Touched.of(target, self.merge.clauses, matches, orphans)
        if touched.most_matches > 1 and not self.matching.may_match_often:
            self.matching.check_one_match(target, matches)
        new = self.matching.inserted(target, matches, touched)
        if self.matching.clauses(When.NOT_MATCHED):
            # A match is why a row of the source is not added.
            self.command.decided_by(target, touched.matched_files)
        if touched.is_empty:
            return self.matching.commit_inserted(target, where, new)
        if self.command.merges_on_read:
            return self._merged_on_read(target, where, touched, matches, orphans, new)
        return self._rewritten(target, where, touched, matches, orphans, new)

    # -- which rows ------------------------------------------------------------------------------

    def _where(self) -> Expression:
        """What holds for every row of the table that the merge may touch."""
        schema, merge = self.command.base.schema, self.merge
        of_matches = implied_by_matches(
            merge.on,
            self.source,
            schema,
            spark=self.spark,
            target_name=merge.target_name,
            source_name=merge.source_name,
            case_sensitive=self.command.case_sensitive,
        )
        others = [
            implied_by_target(
                clause.condition,
                schema,
                spark=self.spark,
                target_name=merge.target_name,
                case_sensitive=self.command.case_sensitive,
            )
            for clause in merge.clauses
            if clause.when is When.BY_SOURCE
        ]
        return any_of([of_matches, *others])

    def _orphans(self, target: Target, matches: DataFrame) -> DataFrame | None:
        """The rows that no row of the source matches and a clause is about: place and clause."""
        clauses = self.matching.clauses(When.BY_SOURCE)
        if not clauses:
            return None
        rows = target.rows(self.matching.fields(target, When.BY_SOURCE))
        unmatched = rows.join(matches.select(target.place), target.place, "left_anti")
        return (
            first_that_holds(
                unmatched.alias(self.merge.target_name),
                [(n, clause.condition) for n, clause in clauses],
                name=CLAUSE,
                key=[target.place],
            )
            .where(F.col(CLAUSE).isNotNull())
            .localCheckpoint()
        )

    # -- what becomes of them --------------------------------------------------------------------

    def _merged_on_read(
        self,
        target: Target,
        where: Expression,
        touched: Touched,
        matches: DataFrame,
        orphans: DataFrame | None,
        new: DataFrame | None,
    ) -> Changed:
        parts = [] if new is None else [new]
        updated = target.only(touched.updated_files)
        if touched.updated:
            parts.append(self._changed_rows(updated, touched, matches, orphans, "inner"))
        added: list[DataFile] = []
        if parts:
            most = touched.updated + (0 if new is None else self.source.count)
            rows = reduce(DataFrame.unionByName, parts)
            added = self.command.write(rows, updated, most_rows=most)
        figures = touched.figures(added=sum(file.record_count for file in added), copied=None)
        if not touched.places:
            return self.command.commit_added(added, target.plan, where, figures)
        deletes = self.command.write_deletes(
            _places(touched.acted(matches, orphans), target.place),
            target.only(touched.files).plan,
            most_rows=touched.pairs,
        )
        changed = touched.updated_files if touched.updated else ()
        return self.command.commit_deltas(added, deletes, target, where, figures, changed=changed)

    def _rewritten(
        self,
        target: Target,
        where: Expression,
        touched: Touched,
        matches: DataFrame,
        orphans: DataFrame | None,
        new: DataFrame | None,
    ) -> Changed:
        rewritten = target.only(touched.files)
        rows = self._changed_rows(rewritten, touched, matches, orphans, "left")
        parts = [rows] if new is None else [rows, new]
        most = rewritten.plan.record_count + (0 if new is None else self.source.count)
        added = self.command.write(reduce(DataFrame.unionByName, parts), rewritten, most_rows=most)
        written = sum(file.record_count for file in added)
        copied = rewritten.live_row_count - touched.places
        figures = touched.figures(added=written, copied=copied)
        return self.command.commit_rewrite(added, touched.files, target, where, figures)

    def _changed_rows(
        self,
        target: Target,
        touched: Touched,
        matches: DataFrame,
        orphans: DataFrame | None,
        how: str,
    ) -> DataFrame:
        """Rows of files, changed by their clauses and without those that are deleted.

        Args:
            how: ``inner`` for the changed rows alone, ``left`` for the others too.
        """
        merge, number, place = self.merge, self.source.number, target.place
        by_source = {
            n: self.checked.updates[n]
            for n, _ in self.matching.clauses(When.BY_SOURCE)
            if n in self.checked.updates
        }
        acts = touched.acted(matches, None if by_source else orphans)
        if how == "inner":
            acts = acts.where(F.col(CLAUSE).isin(list(self.checked.updates)))
        at, clause = free_names(
            ["_frazil_at", "_frazil_act"],
            [
                *(field.name for field in target.written_schema.fields),
                *self.source.names,
                number,
                CLAUSE,
                place,
            ],
        )
        acts = acts.withColumnRenamed(place, at).withColumnRenamed(CLAUSE, clause)
        source = self.matching.sent(self.source.rows, self.source.count)
        named = self.matching.sent(acts.join(source, number, "left"), touched.places)
        rows = target.rows(lineage=True).alias(merge.target_name)
        which = F.col(quote_name_always([merge.source_name, clause]))
        apart: Mapping[int, Mapping[str, Column]] = {}
        way = how
        if by_source and orphans is not None:
            unmatched = UnmatchedValues.of(
                target.rows(lineage=True),
                orphans.select(place, CLAUSE),
                by_source,
                target=target,
                alias=merge.target_name,
                beside=(*named.columns, *self.source.names),
            )
            rows, apart = unmatched.rows, unmatched.after
            which, way = F.coalesce(which, unmatched.clause), "left"
        joined = rows.join(
            named.alias(merge.source_name),
            F.col(quote_name_always([merge.target_name, place]))
            == F.col(quote_name_always([merge.source_name, at])),
            way,
        )
        if way != how:
            joined = joined.where(which.isin(list(self.checked.updates)))
        names = [field.name for field in target.schema.fields]
        old = columns_named(merge.target_name, names)
        support = type_support(self.spark)
        after = {
            n: made.columns_after(joined, support, old=old)
            for n, made in self.checked.updates.items()
            if n not in by_source
        }
        after.update({n: {**old, **values} for n, values in apart.items()})
        if how == "left":
            deletes = [n for n, c in enumerate(merge.clauses) if c.do is Do.DELETE]
            if deletes:
                joined = joined.where(which.isNull() | ~which.isin(deletes))
        columns = values_by_clause(after, target.schema.fields, which=which, otherwise=old)
        lineage = columns_named(merge.target_name, [each.name for each in target.lineage])
        if lineage:
            stays = F.when(which.isNull(), lineage[target.last_updated])
            columns += [
                lineage[target.row_id].alias(target.row_id),
                stays.alias(target.last_updated),
            ]
        return joined.select(*columns)


def _places(acts: DataFrame, place: str) -> DataFrame:
    at = F.col(place)
    return acts.select(file_of(at).alias("file"), position_of(at).alias("position"))
