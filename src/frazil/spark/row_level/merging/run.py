"""MERGE: rows of a source change, delete and add rows of the table.

The source is evaluated once and kept. Matches are found by reading what the conditions name and
the places of rows; the other columns are read only of files with rows that change.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as S

from frazil.errors import PredicateError
from frazil.format.manifests import DataFile
from frazil.format.predicates.bind import bind
from frazil.format.predicates.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    Comparison,
    Expression,
    In,
    IsNull,
    Op,
    Reference,
    all_of,
    any_of,
)
from frazil.format.predicates.sql.implied import conjuncts_of
from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.spark.conditions import condition_of
from frazil.spark.delete_files.write import WrittenDeletes
from frazil.spark.files.write_failures import refusing_values
from frazil.spark.row_level.command import Command
from frazil.spark.row_level.figures import ChangeResult
from frazil.spark.row_level.in_place import in_place, partition_columns, without_queries
from frazil.spark.row_level.merging.clauses.checked import CheckedClauses
from frazil.spark.row_level.merging.clauses.clause import Do, When
from frazil.spark.row_level.merging.clauses.flags import first_number, written_by_clause
from frazil.spark.row_level.merging.clauses.request import MergeRequest
from frazil.spark.row_level.merging.keys.equal_columns import MatchNames, equal_columns
from frazil.spark.row_level.merging.keys.key_filter import KeyFilter, is_filter_cheaper
from frazil.spark.row_level.merging.matches.by_file import FileMatches
from frazil.spark.row_level.merging.matches.by_place import PlaceMatches
from frazil.spark.row_level.merging.matches.counts import MatchCounts
from frazil.spark.row_level.merging.matches.matching import Matching, is_steady
from frazil.spark.row_level.merging.merged_rows import MergedRows
from frazil.spark.row_level.merging.source import Source
from frazil.spark.row_level.target import Target, as_file_and_position
from frazil.spark.row_level.values.expressions import condition_column
from frazil.spark.session import costs
from frazil.spark.session.facts import prepare_session, time_zone_of, type_support
from frazil.spark.session.free_names import free_name
from frazil.spark.write.row_count import RowCount


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
    with command.discard_on_failure():
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
    command, new = matching.command, matches.inserted_rows(target)
    if counts.is_empty:
        return WrittenChanges.of_new_rows(matching, counts, target, new)
    parts = [] if new is None else [new]
    most = 0 if new is None else matching.source.count
    if not command.merges_on_read:
        rewritten = target.restricted_to(counts.files)
        parts = [*MergedRows(matches, rewritten).all_rows_after(), *parts]
        most += rewritten.plan.record_count
        added = command.write(reduce(DataFrame.unionByName, parts), rewritten, most_rows=most)
        copied = rewritten.live_row_count - counts.changed_rows
        return WrittenChanges(counts=counts, added=added, copied=copied)
    updated = target.restricted_to(counts.updated_files)
    if counts.updated_rows:
        rows = matches.updated_rows(updated)
        parts.append(MergedRows(matches, updated).updated_rows() if rows is None else rows)
    added = []
    if parts:
        most += counts.updated_rows
        added = command.write(reduce(DataFrame.unionByName, parts), updated, most_rows=most)
    plan, deleted = target.restricted_to(counts.files).plan, matches.deleted_places()
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
    tested = matching.row_test()
    if done.deletes is not None:
        changed = counts.files if inserts else counts.updated_files
        return command.commit_deltas(
            added, done.deletes, target, where, figures, changed=changed, tested=tested
        )
    if counts.is_empty and not done.rows:
        return command.commit_nothing(target, where, tested=tested)
    return command.commit_rewrite(added, counts.files, target, where, figures, tested=tested)


_MOST_VALUE_BYTES: Final = 16 << 20
"""Of such a source, if its keys are no longer than this."""

_EPOCH: Final = dt.datetime(1970, 1, 1)


def implied_by(matching: Matching) -> Expression:
    """Return what holds for every row of the table that a merge may change.

    Parts of the condition of the match about the table alone count, and equalities of a column with
    one of the source: its values lie within those of the source.
    """
    others = [clause.condition for _, clause in matching.merge.of_kind(When.BY_SOURCE)]
    return any_of([_of_matches(matching), *(_of_target(matching, each) for each in others)])


def _of_target(matching: Matching, condition: str | Column | None) -> Expression:
    """What holds for every row of the table for which a condition on it holds."""
    return condition_of(
        condition,
        matching.merge.known_schema(matching.command.base.schema),
        spark=matching.spark,
        case_sensitive=matching.command.case_sensitive,
        time_zone=time_zone_of(matching.spark),
        alias=matching.merge.target_alias,
    ).implied


def _of_matches(matching: Matching) -> Expression:
    """What holds for every row of the table that a row of the source may match."""
    on, source, command = matching.merge.on, matching.source, matching.command
    if source.count == 0:
        return AlwaysFalse()
    if not isinstance(on, str):
        return AlwaysTrue()
    names = MatchNames.of(
        matching.merge, command.base.schema, case_sensitive=command.case_sensitive
    )
    found: list[Expression] = []
    for piece in conjuncts_of(on):
        if names.equality(piece) is None and names.is_about_target(piece):
            with suppress(PredicateError):
                found.append(_of_target(matching, piece))
    found += [bind(each, names.schema, case_sensitive=True) for each in _within_source(source)]
    return all_of(found)


def _within_source(source: Source) -> Iterator[Expression]:
    """For each pair of equal columns, what the value of the table's must be."""
    if not source.keys:
        return
    types = {field.name: field.dataType for field in source.rows.schema.fields}
    few = source.count <= costs.SOUGHT_VALUES and source.matched_size.total <= _MOST_VALUE_BYTES
    for pair, values in zip(source.keys, source.key_values(all_of_them=few), strict=True):
        ref, kind = Reference(pair.target), types[pair.source]
        try:
            found = [_literal(value, kind) for value in values if value is not None]
        except OverflowError:
            # Spark knows years that Python does not.
            continue
        known: Expression = AlwaysFalse()
        if few and found:
            known = In(ref, tuple(sorted(found)))
        elif found:
            low, high = found
            known = all_of([Comparison(Op.GE, ref, low), Comparison(Op.LE, ref, high)])
        yield any_of([known, IsNull(ref)]) if pair.nulls_match else known


def _literal(value: Any, kind: S.DataType) -> Any:
    """A value of `plain_value` as a predicate has it.

    Raises:
        OverflowError: of a year that Python does not know.
    """
    match kind:
        case S.DateType():
            return _EPOCH.date() + dt.timedelta(days=value)
        case S.TimestampType():
            return (_EPOCH + dt.timedelta(microseconds=value)).replace(tzinfo=dt.UTC)
        case S.TimestampNTZType():
            return _EPOCH + dt.timedelta(microseconds=value)
        case _:
            return value


def takes_one_join(matching: Matching) -> bool:
    """Return whether a merge can be written so: its conditions mean the same at each look."""
    if matching.command.merges_on_read or matching.merge.of_kind(When.BY_SOURCE):
        return False
    merge = matching.merge
    return all(is_steady(each) for each in (merge.on, *merge.conditions(When.MATCHED)))


def rewritten_in_one_join(matching: Matching, target: Target) -> WrittenChanges | None:
    """Write the files that change anew; None if a row matches two rows of the source.

    It takes for granted that none does, and counts the joined rows on their way to the files. Where
    they are more than the files hold, nothing of it is kept.
    """
    command = matching.command
    compared = _partition_columns_taken(matching)
    matches = FileMatches.of(matching, target, compared or {})
    counts = matches.counts
    if counts.is_empty and counts.pairs:
        # Whether a row matches twice cannot be seen where nothing is written.
        return None
    new = matches.inserted_rows(target)
    if counts.is_empty:
        return WrittenChanges.of_new_rows(matching, counts, target, new)
    rewritten = target.restricted_to(counts.files)
    # Where every joined row is written, and no other, the files tell how many there are.
    deletes = any(each.do is Do.DELETE for _, each in matching.merge.of_kind(When.MATCHED))
    joined: list[RowCount] | None = None if new is None and not deletes else []
    parts = _rows_after(matching, rewritten, matches.passing, joined)
    parts += [] if new is None else [new]
    stays = new is None and not matches.move_rows and compared is not None
    placement = in_place(command, rewritten) if stays and matching.sends_source else None
    added = command.write(reduce(DataFrame.unionByName, parts), target, placement=placement)
    live = rewritten.live_row_count
    written = WrittenChanges(counts=counts, added=added, copied=live - counts.changed_rows)
    if _joined_count(joined, otherwise=written.rows) != live:
        command.port.io.delete_many(command.written)
        command.written.clear()
        return None
    return written


def _joined_count(counts: list[RowCount] | None, *, otherwise: int) -> int | None:
    """How many rows were joined; None where a task has not told it."""
    if counts is None:
        return otherwise
    for count in counts:
        count.ask()
    counts_read = [count.result() for count in counts]
    return None if None in counts_read else sum(each for each in counts_read if each is not None)


def _partition_columns_taken(matching: Matching) -> dict[str, str] | None:
    """The columns that tell a row's partition and are set to the source's, each beside that.

    None where clauses may set them otherwise, or give values that Spark may evaluate by a join.
    """
    command = matching.command
    key = str if command.case_sensitive else str.lower
    given = {key(name): name for name in matching.source.names}
    own = partition_columns(command.base)
    stored = matching.merge.stored
    if stored is not None:
        given = {name: stored.column_of(column) for name, column in given.items()}
    taken: dict[str, str] = {}
    for n, clause in matching.merge.of_kind(When.MATCHED):
        if clause.takes_all:
            taken.update((name, given[key(name)]) for name in own if key(name) in given)
        elif clause.values is not None:
            sets = matching.checked.updates[n].columns
            if not own.isdisjoint(sets) or not without_queries(clause.values):
                return None
    return taken


def _rows_after(
    matching: Matching,
    target: Target,
    passing: KeyFilter | None,
    counts: list[RowCount] | None,
) -> list[DataFrame]:
    """The rows of files as they are afterwards, in parts that have no row in common.

    Where not every task has the whole source, a join moves rows: those that surely match none are
    left out of it.

    Args:
        counts: gets the number of rows of each part, before some are deleted.
    """
    rows, few = target.rows_without_places(), matching.source.count
    if (
        passing is None
        or matching.sends_source
        or not is_filter_cheaper(rows=target.plan.record_count, keys=few)
    ):
        return [_join(matching, target, rows, counts)]
    others = passing.rejected_rows(rows)
    if counts is not None:
        counts.append(RowCount())
        others = counts[-1].counted_rows(others)
    joined = _join(matching, target, passing.passed_rows(rows), counts)
    return [others.select(*target.written_names), joined]


def _join(
    matching: Matching, target: Target, rows: DataFrame, counts: list[RowCount] | None
) -> DataFrame:
    """Rows changed by their clauses, without those that are deleted."""
    merge, source = matching.merge, matching.source
    clause = free_name(
        "_frazil_act",
        [*(field.name for field in target.written_schema.fields), *source.names, source.number],
    )
    beside = matching.sent_rows(source.rows, source.size.total).alias(merge.source_alias)
    rows = merge.as_named(rows)
    tests = [
        (n, F.lit(True) if each.condition is None else condition_column(each.condition, "it"))
        for n, each in matching.merge.of_kind(When.MATCHED)
    ]
    matched = F.col(quote_name_always([merge.source_alias, source.number])).isNotNull()
    joined = rows.join(beside, matching.checked.on, "left").withColumn(
        clause, F.when(matched, first_number(tests))
    )
    if counts is not None:
        counts.append(RowCount())
        joined = counts[-1].counted_rows(joined)
    which = F.col(quote_name_always([clause]))
    support = type_support(matching.spark)
    old = merge.values_before(target.schema, support)
    after = {
        n: made.columns_after(joined, support, old=old)
        for n, made in matching.checked.updates.items()
    }
    deletes = [n for n, each in enumerate(merge.clauses) if each.do is Do.DELETE]
    if deletes:
        joined = joined.where(which.isNull() | ~which.isin(deletes))
    alias = merge.target_alias
    return written_by_clause(joined, after, target=target, alias=alias, old=old, which=which)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenChanges:
    """What a merge wrote.

    Attributes:
        counts: the rows that change.
        added: files with rows; without `deletes` they take the place of the files that change.
        copied: rows of theirs that stay as they were.
        deletes: of the rows that change, where these are marked.
    """

    counts: MatchCounts
    added: Sequence[DataFile]
    copied: int = 0
    deletes: WrittenDeletes | None = None

    @classmethod
    def of_new_rows(
        cls, matching: Matching, counts: MatchCounts, target: Target, new: DataFrame | None
    ) -> WrittenChanges:
        """Write new rows, where no row of the table changes."""
        added: list[DataFile] = []
        if new is not None:
            added = matching.command.write(new, target, most_rows=matching.source.count)
        return cls(counts=counts, added=added)

    @property
    def rows(self) -> int:
        """How many rows were written."""
        return sum(file.record_count for file in self.added)
