"""Copy-on-write of a merge by one join: rows of files that change, beside the source, written anew.

It takes for granted that no row of the table matches two rows of the source, and counts the joined
rows on their way to the files. Where they are more than the files hold, nothing of it is kept.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.spark.row_level.in_place import in_place, partition_columns, without_queries
from frazil.spark.row_level.merging.clauses.clause import Do, When
from frazil.spark.row_level.merging.clauses.flags import first_number, written_by_clause
from frazil.spark.row_level.merging.keys.key_filter import KeyFilter, pays
from frazil.spark.row_level.merging.matches.by_file import FileMatches
from frazil.spark.row_level.merging.matches.matching import Matching, is_steady
from frazil.spark.row_level.merging.written import WrittenChanges
from frazil.spark.row_level.target import Target
from frazil.spark.row_level.values.expressions import condition_column
from frazil.spark.session.facts import type_support
from frazil.spark.session.free_names import free_name
from frazil.spark.write.row_count import RowCount


def takes_one_join(matching: Matching) -> bool:
    """Return whether a merge can be written so: its conditions mean the same at each look."""
    if matching.command.merges_on_read or matching.merge.of_kind(When.BY_SOURCE):
        return False
    merge = matching.merge
    return all(is_steady(each) for each in (merge.on, *merge.conditions(When.MATCHED)))


def rewritten_in_one_join(matching: Matching, target: Target) -> WrittenChanges | None:
    """Write the files that change anew; None if a row matches two rows of the source."""
    command = matching.command
    compared = _partition_columns_taken(matching)
    matches = FileMatches.of(matching, target, compared or {})
    counts = matches.counts
    if counts.is_empty and counts.pairs:
        # Whether a row matches twice cannot be seen where nothing is written.
        return None
    new = matches.inserted(target)
    if counts.is_empty:
        return WrittenChanges.of_new_rows(matching, counts, target, new)
    rewritten = target.only(counts.files)
    # Where every joined row is written, and no other, the files tell how many there are.
    deletes = any(each.do is Do.DELETE for _, each in matching.merge.of_kind(When.MATCHED))
    joined: list[RowCount] | None = None if new is None and not deletes else []
    parts = _rows_after(matching, rewritten, matches.passing, joined)
    parts += [] if new is None else [new]
    stays = new is None and not matches.move_rows and compared is not None
    placement = in_place(command, rewritten) if stays and matching.sends_source else None
    added = command.write(reduce(DataFrame.unionByName, parts), target, placement=placement)
    live = rewritten.live_row_count
    written = WrittenChanges(counts=counts, added=added, copied=live - counts.changed)
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
        or not pays(rows=target.plan.record_count, keys=few)
    ):
        return [_join(matching, target, rows, counts)]
    others = passing.rejected(rows)
    if counts is not None:
        counts.append(RowCount())
        others = counts[-1].of(others)
    joined = _join(matching, target, passing.passed(rows), counts)
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
    beside = matching.sent(source.rows, source.size.total).alias(merge.source_alias)
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
        joined = counts[-1].of(joined)
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
