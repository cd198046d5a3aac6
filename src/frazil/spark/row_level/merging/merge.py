"""MERGE: rows of a source change, delete and add rows of the table.

The source is evaluated once and kept. Matches are found by reading what the conditions name and
the places of rows; the other columns are read only of files that are touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from frazil.format.manifests import DataFile
from frazil.format.predicates.expressions import Expression, any_of
from frazil.format.schema import Schema
from frazil.spark.files.write_failures import refusing_values
from frazil.spark.row_level.assignments import columns_named
from frazil.spark.row_level.command import Command
from frazil.spark.row_level.figures import ChangeResult
from frazil.spark.row_level.in_place import partition_columns
from frazil.spark.row_level.merging.acted_rows import ActedRows
from frazil.spark.row_level.merging.clauses.checked import CheckedClauses
from frazil.spark.row_level.merging.clauses.clause import Clause, When
from frazil.spark.row_level.merging.clauses.flags import first_that_holds
from frazil.spark.row_level.merging.matching import Matching, named_columns
from frazil.spark.row_level.merging.named_keys import NamedKeys, StoredKeys
from frazil.spark.row_level.merging.one_join import rewritten_in_one_join, takes_one_join
from frazil.spark.row_level.merging.pruning import (
    equal_columns,
    implied_by_matches,
    implied_by_target,
)
from frazil.spark.row_level.merging.source import Source
from frazil.spark.row_level.merging.touched import CLAUSE, Touched
from frazil.spark.row_level.target import Target, as_file_and_position
from frazil.spark.session.facts import prepare_session
from frazil.spark.types import SparkTypeSupport, type_to_spark


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """A merge as it was asked for.

    Attributes:
        on: when a row of the source matches a row of the table.
        evolves: whether columns that the source lacks keep their values in clauses for all columns.
        keys: what is equal in every match, in place of `on`.
        stored: the keys as they stand beside the source's rows, once a run has put them there.
        target_name, source_name: what the two are called in `on`, conditions and values.
        added: columns that the merge itself gives the table. No text means them: names are read as
            if the table had them not, and in its rows they are NULL.
    """

    source: DataFrame
    on: str | Column = ""
    clauses: Sequence[Clause]
    target_name: str
    source_name: str
    evolves: bool = False
    keys: NamedKeys | None = None
    stored: StoredKeys | None = None
    added: frozenset[str] = frozenset()

    def as_named(self, rows: DataFrame) -> DataFrame:
        """Return rows of the table under its name, in the columns that texts may mean."""
        return rows.drop(*self.added).alias(self.target_name)

    def known(self, schema: Schema) -> Schema:
        """Return the table's schema without the columns that are added."""
        if not self.added:
            return schema
        fields = tuple(field for field in schema.fields if field.name not in self.added)
        return Schema(fields, schema.schema_id)

    def values_before(self, schema: Schema, support: SparkTypeSupport) -> dict[str, Column]:
        """Return the columns of rows `as_named`, as they are, by the table's names."""
        columns = columns_named(self.target_name, [field.name for field in schema.fields])
        for field in schema.fields:
            if field.name in self.added:
                kind = type_to_spark(field.field_type, support=support)
                columns[field.name] = F.lit(None).cast(kind)
        return columns

    @property
    def added_to_source(self) -> tuple[str, ...]:
        """The columns of the source that are not the user's."""
        return () if self.stored is None else tuple(self.stored.added.values())

    def run(self, command: Command) -> ChangeResult:
        """Run it, once.

        Raises:
            PredicateError, ValidationError: a condition or a value makes no sense for the rows.
            SchemaMismatchError: a value's type does not fit its column.
            ConflictError: a concurrent commit contradicts it; nothing was changed.
        """
        prepare_session(self.source.sparkSession)
        merge = self if self.keys is None else self._by_stored_keys(self.keys, command)
        return merge._run(command)

    def _by_stored_keys(self, keys: NamedKeys, command: Command) -> Merge:
        """Match by the source's keys as the table's columns store them."""
        stored = keys.beside(self.source, command.base.schema)
        on = stored.matching(self.target_name, self.source_name)
        return replace(self, source=stored.rows, on=on, stored=stored)

    def _run(self, command: Command) -> ChangeResult:
        spark = self.source.sparkSession
        checked = CheckedClauses.of(self, command, spark)
        schema = command.base.schema
        keys = equal_columns(
            self.on,
            self.source,
            self.known(schema),
            target_name=self.target_name,
            source_name=self.source_name,
            case_sensitive=command.case_sensitive,
        )
        parts = {name.lower() for name in partition_columns(command.base)}
        given = [name.lower() for name in self.source.columns]
        single = parts & {name for name in given if given.count(name) == 1}
        compared = [name for name in self.source.columns if name.lower() in single]
        matched = [
            each.condition
            for each in self.clauses
            if each.when is When.MATCHED and each.condition is not None
        ]
        named = named_columns([self.on, *matched], self.source.columns, also=compared)
        beside = [field.name for field in schema.fields]
        with refusing_values():
            source = Source.of(self.source, beside, keys, compared, named)
        if self.stored is not None and self.stored.keys.are_distinct:
            source.check_keys(self.stored)
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

    def run(self) -> ChangeResult:
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
        merge = self.merge
        schema = merge.known(self.command.base.schema)
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
                self.merge.as_named(unmatched),
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
    ) -> ChangeResult:
        parts = [] if new is None else [new]
        updated = target.only(touched.updated_files)
        if touched.updated:
            parts.append(ActedRows(self.matching, updated, touched, matches, orphans).changed())
        added: list[DataFile] = []
        if parts:
            most = touched.updated + (0 if new is None else self.source.count)
            rows = reduce(DataFrame.unionByName, parts)
            added = self.command.write(rows, updated, most_rows=most)
        figures = touched.figures(added=sum(file.record_count for file in added), copied=None)
        if not touched.places:
            return self.command.commit_added(added, target.plan, where, figures)
        deletes = self.command.write_deletes(
            as_file_and_position(touched.acted(matches, orphans), F.col(target.place)),
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
    ) -> ChangeResult:
        rewritten = target.only(touched.files)
        parts = ActedRows(self.matching, rewritten, touched, matches, orphans).all_after()
        parts += [] if new is None else [new]
        most = rewritten.plan.record_count + (0 if new is None else self.source.count)
        added = self.command.write(reduce(DataFrame.unionByName, parts), rewritten, most_rows=most)
        written = sum(file.record_count for file in added)
        copied = rewritten.live_row_count - touched.places
        figures = touched.figures(added=written, copied=copied)
        return self.command.commit_rewrite(added, touched.files, target, where, figures)
