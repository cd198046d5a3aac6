"""MERGE: rows of a source change, delete and add rows of the table.

The source is evaluated once and kept. Matches are found by reading what the conditions name and
the places of rows; the other columns are read only of files that are touched.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from frazil.format.manifests import DataFile
from frazil.format.predicates.expressions import Expression, any_of
from frazil.spark.files.write_failures import refusing_values
from frazil.spark.row_level.command import Command
from frazil.spark.row_level.figures import ChangeResult
from frazil.spark.row_level.in_place import partition_columns
from frazil.spark.row_level.merging.acted_rows import ActedRows
from frazil.spark.row_level.merging.clauses.checked import CheckedClauses
from frazil.spark.row_level.merging.clauses.clause import When
from frazil.spark.row_level.merging.clauses.flags import first_that_holds
from frazil.spark.row_level.merging.clauses.request import MergeRequest
from frazil.spark.row_level.merging.keys.equal_columns import equal_columns
from frazil.spark.row_level.merging.matching import Matching, named_columns
from frazil.spark.row_level.merging.one_join import rewritten_in_one_join, takes_one_join
from frazil.spark.row_level.merging.pruning import implied_by_matches, implied_by_target
from frazil.spark.row_level.merging.source import Source
from frazil.spark.row_level.merging.touched import CLAUSE, Touched
from frazil.spark.row_level.target import Target, as_file_and_position
from frazil.spark.session.facts import prepare_session


def run_merge(asked: MergeRequest, command: Command) -> ChangeResult:
    """Run a merge, once.

    Raises:
        PredicateError, ValidationError: a condition or a value makes no sense for the rows.
        SchemaMismatchError: a value's type does not fit its column.
        ConflictError: a concurrent commit contradicts it; nothing was changed.
    """
    prepare_session(asked.source.sparkSession)
    merge = asked.by_stored_keys(command.base.schema)
    spark = merge.source.sparkSession
    checked = CheckedClauses.of(merge, command, spark)
    schema = command.base.schema
    keys = equal_columns(
        merge.on,
        merge.source,
        merge.known(schema),
        target_alias=merge.target_alias,
        source_alias=merge.source_alias,
        case_sensitive=command.case_sensitive,
    )
    parts = {name.lower() for name in partition_columns(command.base)}
    given = [name.lower() for name in merge.source.columns]
    single = parts & {name for name in given if given.count(name) == 1}
    compared = [name for name in merge.source.columns if name.lower() in single]
    matched = [
        each.condition
        for each in merge.clauses
        if each.when is When.MATCHED and each.condition is not None
    ]
    named = named_columns([merge.on, *matched], merge.source.columns, also=compared)
    beside = [field.name for field in schema.fields]
    with refusing_values():
        source = Source.of(merge.source, beside, keys, compared, named)
    if merge.stored is not None and merge.stored.keys.are_distinct:
        source.check_keys(merge.stored)
    with command.discarding():
        matching = Matching(merge, command, checked, source, spark)
        return _Merging(merge, command, checked, source, spark, matching).run()


@dataclass(frozen=True, slots=True)
class _Merging:
    """One run of a merge."""

    merge: MergeRequest
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
            target_alias=merge.target_alias,
            source_alias=merge.source_alias,
            case_sensitive=self.command.case_sensitive,
        )
        others = [
            implied_by_target(
                clause.condition,
                schema,
                spark=self.spark,
                target_alias=merge.target_alias,
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
