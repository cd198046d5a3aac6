"""MERGE: rows of a source change, delete and add rows of the table.

The source is evaluated once and kept. Matches are found by reading what the conditions name and
the places of rows; the other columns are read only of files with rows that change.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from frazil.format.predicates.expressions import Expression
from frazil.spark.files.write_failures import refusing_values
from frazil.spark.row_level.command import Command
from frazil.spark.row_level.figures import ChangeResult
from frazil.spark.row_level.in_place import partition_columns
from frazil.spark.row_level.merging.clauses.checked import CheckedClauses
from frazil.spark.row_level.merging.clauses.clause import When
from frazil.spark.row_level.merging.clauses.request import MergeRequest
from frazil.spark.row_level.merging.keys.equal_columns import equal_columns
from frazil.spark.row_level.merging.matches.by_place import PlaceMatches
from frazil.spark.row_level.merging.matches.matching import Matching
from frazil.spark.row_level.merging.merged_rows import MergedRows
from frazil.spark.row_level.merging.one_join import rewritten_in_one_join, takes_one_join
from frazil.spark.row_level.merging.pruning import implied_by
from frazil.spark.row_level.merging.source import Source
from frazil.spark.row_level.merging.written import WrittenChanges
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
    keys = equal_columns(merge, schema, case_sensitive=command.case_sensitive)
    parts = {name.lower() for name in partition_columns(command.base)}
    given = [name.lower() for name in merge.source.columns]
    single = parts & {name for name in given if given.count(name) == 1}
    compared = [name for name in merge.source.columns if name.lower() in single]
    named = merge.names_to_match(merge.source.columns, compared)
    beside = [field.name for field in schema.fields]
    with refusing_values():
        source = Source.of(merge.source, beside, keys, compared, named)
    if merge.stored is not None and merge.stored.keys.are_distinct:
        source.check_keys(merge.stored)
    with command.discarding():
        return _run(Matching(merge, command, checked, source, spark))


def _run(matching: Matching) -> ChangeResult:
    where = implied_by(matching)
    source = matching.source
    target = matching.command.target(matching.spark, where, [*source.names, source.number])
    done: WrittenChanges | None = None
    if takes_one_join(matching):
        done = rewritten_in_one_join(matching, target)
    if done is None:
        with refusing_values():
            matches = PlaceMatches.of(matching, target)
        done = _written_by_places(matches, target)
    return _commit(matching, target, where, done)


def _written_by_places(matches: PlaceMatches, target: Target) -> WrittenChanges:
    """Write what changes, in the table's mode."""
    matching, counts = matches.matching, matches.counts
    command, new = matching.command, matches.inserted(target)
    if counts.is_empty:
        return WrittenChanges.of_new_rows(matching, counts, target, new)
    parts = [] if new is None else [new]
    most = 0 if new is None else matching.source.count
    if not command.merges_on_read:
        rewritten = target.only(counts.files)
        parts = [*MergedRows(matches, rewritten).all_after(), *parts]
        most += rewritten.plan.record_count
        added = command.write(reduce(DataFrame.unionByName, parts), rewritten, most_rows=most)
        copied = rewritten.live_row_count - counts.changed
        return WrittenChanges(counts=counts, added=added, copied=copied)
    updated = target.only(counts.updated_files)
    if counts.updated:
        rows = matches.updated(updated)
        parts.append(MergedRows(matches, updated).updated() if rows is None else rows)
    added = []
    if parts:
        most += counts.updated
        added = command.write(reduce(DataFrame.unionByName, parts), updated, most_rows=most)
    plan, deleted = target.only(counts.files).plan, matches.deleted()
    if deleted is not None:
        deletes = command.write_deletes_at(deleted, plan)
    else:
        places = as_file_and_position(matches.changes, F.col(target.place))
        deletes = command.write_deletes(places, plan, most_rows=counts.pairs)
    return WrittenChanges(counts=counts, added=added, deletes=deletes)


def _commit(
    matching: Matching, target: Target, where: Expression, done: WrittenChanges
) -> ChangeResult:
    command, counts, added = matching.command, done.counts, done.added
    inserts = bool(matching.merge.of_kind(When.NOT_MATCHED))
    marks = done.deletes is not None
    if inserts:
        # A match is why a row of the source is not added. Where it changes it is looked at itself.
        command.decided_by(target, counts.unchanged_files if marks else counts.matched_files)
    figures = counts.figures(added=done.rows, copied=done.copied)
    tested = matching.tested()
    if done.deletes is not None:
        changed = counts.files if inserts else counts.updated_files
        return command.commit_deltas(
            added, done.deletes, target, where, figures, changed=changed, tested=tested
        )
    if not counts.is_empty:
        return command.commit_rewrite(added, counts.files, target, where, figures, tested=tested)
    if not done.rows:
        return command.commit_nothing(target, where, tested=tested)
    return command.commit_added(added, target, where, figures, tested=tested)
