"""Matches of a merge by the places of the table's rows: of any clauses, and of both modes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from frazil.errors import ValidationError
from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.spark.deletes.bitmap import Longs, Words
from frazil.spark.row_level.merging.clauses.clause import Do, When
from frazil.spark.row_level.merging.clauses.flags import (
    first_number,
    first_that_holds,
    values_by_clause,
)
from frazil.spark.row_level.merging.keys.collected import collected_pairs
from frazil.spark.row_level.merging.keys.key_filter import KeyFilter
from frazil.spark.row_level.merging.matches.counts import CLAUSE, MatchCounts
from frazil.spark.row_level.merging.matches.matching import Matching, is_steady
from frazil.spark.row_level.target import Target, words_at
from frazil.spark.row_level.values.expressions import condition_column
from frazil.spark.session import costs
from frazil.spark.session.facts import type_support
from frazil.spark.session.few_rows import tasks_of_scan
from frazil.spark.session.free_names import free_name
from frazil.spark.session.row_bytes import row_bytes


@dataclass(frozen=True, slots=True)
class PlaceMatches:
    """The pairs that match, kept by the executors.

    Attributes:
        pairs: the row's place, the source's row, and the clause, if any.
        unmatched: the place and the clause of rows that no row of the source matches and a clause
            is about; None without such a clause.
        counts: how many there are.
        collected: ``place``, ``number`` of the source's row and ``clause`` of each pair, where
            they are few and there are no other rows; else None.
        values: the column of `pairs` with the new values of rows that get some, as they are
            written; None without.
    """

    matching: Matching
    pairs: DataFrame
    unmatched: DataFrame | None
    counts: MatchCounts
    collected: pl.DataFrame | None = None
    values: str | None = None

    @classmethod
    def of(cls, matching: Matching, target: Target) -> PlaceMatches:
        """Find them.

        Raises:
            ValidationError: several rows of the source match a row of the table.
        """
        values = _name_of_values(matching, target)
        pairs = _pairs(matching, target, values)
        unmatched = _unmatched_rows(matching, target, pairs)
        collected = _collect(matching, target, pairs) if unmatched is None else None
        clauses = matching.merge.clauses
        if collected is not None:
            counts = MatchCounts.of_places(clauses, collected)
        else:
            every = pairs if unmatched is None else _union(pairs, unmatched)
            counts = MatchCounts.of(target, clauses, every)
        if counts.most_matches > 1 and not _may_match_often(matching):
            _check_one_match(matching, target, pairs)
        return cls(matching, pairs, unmatched, counts, collected, values)

    @property
    def changes(self) -> DataFrame:
        """The places of rows that a clause is about, each once a clause."""
        if self.unmatched is None:
            return self.changes_of_matched
        return _union(self.changes_of_matched, self.unmatched)

    @property
    def changes_of_matched(self) -> DataFrame:
        """Those of rows that the source matches."""
        return self.pairs.where(F.col(CLAUSE).isNotNull())

    def inserted_rows(self, target: Target) -> DataFrame | None:
        """Return the new rows, in the columns that are written; None if there are none."""
        known = None if self.collected is None else self.collected["number"].to_numpy()
        return inserted_beside_pairs(self.matching, target, self.pairs, self.counts, known)

    def updated_rows(self, target: Target) -> DataFrame | None:
        """Return the rows that get new values, as they are written; None if `pairs` lack these."""
        if self.values is None:
            return None
        updates = [*self.matching.checked.updates]
        values = F.col(quote_name_always([self.values]))
        return self.pairs.where(F.col(CLAUSE).isin(updates)).select(
            *(
                values.getField(f"c{n}").alias(field.name)
                for n, field in enumerate(target.written_schema.fields)
            )
        )

    def deleted_places(self) -> Words | None:
        """Return the places of rows that a clause is about; None where they are not collected."""
        if self.collected is None:
            return None
        places = self.collected.filter(pl.col("clause").is_not_null())["place"]
        return words_at(places.to_numpy())


def inserted_beside_pairs(
    matching: Matching,
    target: Target,
    pairs: DataFrame,
    counts: MatchCounts,
    known: Longs | None = None,
) -> DataFrame | None:
    """Return the new rows, given the pairs that match; None if there are none.

    Args:
        known: the numbers of the source's rows in the pairs, where the driver has them.
    """
    source = matching.source
    if not matching.merge.of_kind(When.NOT_MATCHED):
        return None
    numbers = pairs.select(source.number)
    if source.count <= counts.pairs <= costs.MATCHES_HERE:
        if known is None:
            known = numbers.toArrow().column(0).to_numpy()
        if len(np.unique(known)) == source.count:  # To write no rows costs jobs too.
            return None
    matched = matching.sent_rows(numbers, counts.pairs * row_bytes(1))
    return matching.new_rows(target, source.rows.join(matched, source.number, "left_anti"))


def _name_of_values(matching: Matching, target: Target) -> str | None:
    """A name for what rows become, where their values are the source's, which every task gets."""
    clauses = matching.merge.of_kind(When.MATCHED)
    updates = [clause for _, clause in clauses if clause.do is Do.UPDATE]
    is_small = matching.source.collected is not None and matching.sends_source
    if not matching.command.merges_on_read or not updates or not is_small:
        return None
    if matching.merge.of_kind(When.BY_SOURCE):
        # Rows without a match get values too.
        return None
    if matching.merge.evolves or not all(clause.takes_all for clause in updates):
        return None
    if not all(map(is_steady, matching.merge.conditions(When.MATCHED))):
        return None
    names = [field.name for field in target.written_schema.fields]
    return free_name("_frazil_values", [*names, *matching.source.names, matching.source.number])


def _collect(matching: Matching, target: Target, pairs: DataFrame) -> pl.DataFrame | None:
    """The pairs, where the source is small and they are few."""
    if matching.source.collected is None:
        return None
    named = pairs.select(
        F.col(target.place).alias("place"),
        F.col(matching.source.number).alias("number"),
        F.col(CLAUSE).alias("clause"),
    )
    return collected_pairs(named, tasks=tasks_of_scan(matching.spark, target.plan))


def _pairs(matching: Matching, target: Target, values: str | None) -> DataFrame:
    """The pairs, with the new values of their rows under a name, if it is given."""
    if values is not None:
        return _valued_pairs(matching, target, values).localCheckpoint(eager=False)
    merge = matching.merge
    fields = matching.fields(target, [merge.on, *merge.conditions(When.MATCHED)])
    passing = matching.key_filter(target)
    if not matching.command.merges_on_read:
        target = _files_that_match(matching, target, passing)
    return first_that_holds(
        matching.pairs(target.rows(fields), passing),
        [(n, clause.condition) for n, clause in matching.merge.of_kind(When.MATCHED)],
        name=CLAUSE,
        key=[target.place, matching.source.number],
    ).localCheckpoint(eager=False)


def _valued_pairs(matching: Matching, target: Target, values: str) -> DataFrame:
    merge, source, updates = matching.merge, matching.source, matching.checked.updates
    fields = matching.fields(target, [merge.on, *merge.conditions(When.MATCHED)])
    joined = matching.pairs(
        target.rows(fields, lineage=True), matching.key_filter(target), source.names
    )
    tests = [
        (n, F.lit(True) if each.condition is None else condition_column(each.condition, "it"))
        for n, each in merge.of_kind(When.MATCHED)
    ]
    written = [field.name for field in target.written_schema.fields]
    clause = free_name("_frazil_act", [*written, *source.names, source.number, values])
    joined = joined.withColumn(clause, first_number(tests))
    which = F.col(quote_name_always([clause]))
    support = type_support(matching.spark)
    old = merge.values_before(target.schema, support)
    after = {n: made.columns_after(joined, support, old=old) for n, made in updates.items()}
    columns = values_by_clause(after, target.schema.fields, which=which)
    if target.lineage:
        columns.append(F.col(quote_name_always([merge.target_alias, target.row_id])))
        columns.append(F.lit(None).cast("bigint"))
    made = F.struct(*(column.alias(f"c{n}") for n, column in enumerate(columns)))
    return joined.select(
        F.col(quote_name_always([target.place])),
        F.col(quote_name_always([source.number])),
        which.alias(CLAUSE),
        F.when(which.isin([*updates]), made).alias(values),
    )


def _files_that_match(matching: Matching, target: Target, passing: KeyFilter | None) -> Target:
    """The files with a row that matches: those that copy-on-write writes anew.

    To find them takes no places, and the places of rows of other files need not be read.
    """
    if target.plan.file_count < 2:
        return target
    fields = matching.fields(target, [matching.merge.on])
    pairs = matching.pairs(target.rows_with_files(fields), passing)
    found = pairs.select(F.col(target.file).alias("file")).distinct().toArrow()
    return target.restricted_to(found.column("file").to_pylist())


def _unmatched_rows(matching: Matching, target: Target, pairs: DataFrame) -> DataFrame | None:
    clauses = matching.merge.of_kind(When.BY_SOURCE)
    if not clauses:
        return None
    rows = target.rows(matching.fields(target, matching.merge.conditions(When.BY_SOURCE)))
    rows = rows.join(pairs.select(target.place), target.place, "left_anti")
    return (
        first_that_holds(
            matching.merge.as_named(rows),
            [(n, clause.condition) for n, clause in clauses],
            name=CLAUSE,
            key=[target.place],
        )
        .where(F.col(CLAUSE).isNotNull())
        .localCheckpoint()
    )


def _may_match_often(matching: Matching) -> bool:
    """Whether several rows of the source for a row of the table are no contradiction."""
    clauses = matching.merge.of_kind(When.MATCHED)
    if not clauses:
        return True
    only = clauses[0][1]
    return len(clauses) == 1 and only.do is Do.DELETE and only.condition is None


def _check_one_match(matching: Matching, target: Target, pairs: DataFrame) -> None:
    source = matching.source
    twice = pairs.groupBy(target.place).agg(
        F.count("*").alias("matches"), F.min(source.number).alias("first")
    )
    worst = twice.where("matches > 1").orderBy("first").limit(1).collect()
    if not worst:
        return
    row = (
        source.rows.where(F.col(source.number) == worst[0]["first"])
        .drop(source.number, *matching.merge.added_to_source)
        .collect()[0]
    )
    shown = ", ".join(f"{name}={row[n]!r}" for n, name in enumerate(row.__fields__[:4]))
    raise ValidationError(
        f"{worst[0]['matches']} rows of the source match one row of the table, so it is not "
        f"known which one counts; nothing was changed. One of them: {shown}. Leave one row of "
        "the source for each match, as with dropDuplicates"
    )


def _union(matched: DataFrame, unmatched: DataFrame) -> DataFrame:
    return matched.unionByName(unmatched, allowMissingColumns=True)
