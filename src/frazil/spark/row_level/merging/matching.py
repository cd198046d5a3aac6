"""How a merge finds which rows of the source match which rows of the table, and which are new."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from frazil.errors import ValidationError
from frazil.format.predicates.expressions import Expression
from frazil.format.predicates.sql.implied import words_of
from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.format.types import NestedField
from frazil.spark.row_level.command import Command
from frazil.spark.row_level.figures import ChangeResult
from frazil.spark.row_level.merging.clauses.checked import CheckedClauses
from frazil.spark.row_level.merging.clauses.clause import Clause, Do, When
from frazil.spark.row_level.merging.clauses.flags import first_that_holds, values_by_clause
from frazil.spark.row_level.merging.clauses.request import MergeRequest
from frazil.spark.row_level.merging.keys.key_filter import KeyFilter
from frazil.spark.row_level.merging.pruning import named_fields
from frazil.spark.row_level.merging.source import Source
from frazil.spark.row_level.merging.touched import CLAUSE, Touched
from frazil.spark.row_level.target import Target
from frazil.spark.session.facts import type_support
from frazil.spark.session.few_rows import Longs
from frazil.spark.session.free_names import free_name
from frazil.spark.session.row_bytes import bytes_beyond, most_result_bytes, row_bytes

BROADCAST_BYTES: Final = 64 << 20
"""Matched rows of up to so many bytes are sent to every task; more are shuffled."""

MOST_PAIRS: Final = 2_000_000
"""Of up to so many matches the driver looks which rows of the source have one: 16 MB."""

_RESULTS_AT_LEAST: Final = 2
"""The driver must be able to take so many times what it sends to every task."""


@dataclass(frozen=True, slots=True)
class Matching:
    """The rows of a source beside the rows of a table."""

    merge: MergeRequest
    command: Command
    checked: CheckedClauses
    source: Source
    spark: SparkSession

    def clauses(self, when: When) -> list[tuple[int, Clause]]:
        return [(n, each) for n, each in enumerate(self.merge.clauses) if each.when is when]

    def fields(self, target: Target, when: When, *conditions: str | Column) -> list[NestedField]:
        """The columns of the table that conditions need."""
        given = [c.condition for _, c in self.clauses(when) if c.condition is not None]
        return named_fields([*conditions, *given], self.merge.known(target.schema))

    def sent(self, rows: DataFrame, size: int) -> DataFrame:
        """Rows of few bytes go to every task, so that the table's rows need not be shuffled."""
        return F.broadcast(rows) if self.is_sent(size) else shuffled(rows)

    def is_sent(self, size: int) -> bool:
        """Whether rows of so many bytes go to every task."""
        if size > BROADCAST_BYTES:
            return False
        return size <= most_result_bytes(self.spark) // _RESULTS_AT_LEAST

    @property
    def sends_source(self) -> bool:
        """Whether all of the source goes to every task."""
        return self.is_sent(self.source.size.total)

    def sends_pairs(self, pairs: DataFrame, count: int) -> bool:
        """Whether rows beside whole rows of the source go to every task.

        Args:
            pairs: them; they are measured where a large row of the source may come often.
            count: how many there are.
        """
        size, most = self.source.size, row_bytes(len(pairs.columns))
        width = most - row_bytes(len(self.source.names) + 1)
        if not self.is_sent(count * most):
            return False
        if self.is_sent(count * (width + size.largest)):
            return True
        beyond = bytes_beyond(
            [(F.col(quote_name_always([f.name])), f.dataType) for f in pairs.schema.fields]
        )
        if beyond is None:
            return True
        (measured,) = pairs.agg(F.sum(beyond)).collect()[0]
        return self.is_sent(count * most + (measured or 0))

    def matches(self, target: Target) -> DataFrame:
        """The pairs that match: the row's place, the source's row, and the clause, if any."""
        merge, number = self.merge, self.source.number
        clauses = self.clauses(When.MATCHED)
        fields = self.fields(target, When.MATCHED, merge.on)
        passing = self.key_filter(target)
        if not self.command.merges_on_read:
            target = self.files_that_match(target, passing)
        rows = _passed(target.rows(fields), passing).alias(merge.target_alias)
        source = self.sent(self._named_of_source(merge.on), self.source.matched_size.total)
        pairs = rows.join(source.alias(merge.source_alias), self.checked.on)
        return first_that_holds(
            pairs,
            [(n, clause.condition) for n, clause in clauses],
            name=CLAUSE,
            key=[target.place, number],
        ).localCheckpoint(eager=False)

    def pairs_by_file(
        self, target: Target, compared: Mapping[str, str], passing: KeyFilter | None
    ) -> DataFrame:
        """The pairs that match: the row's file, the source's row, and the clause, if any.

        To find them takes no places, which cost a look at each row. The third column says whether
        the two rows differ in one of the columns that are compared.

        Args:
            compared: the table's columns, and the source's beside each.
            passing: which rows of the target may match.
        """
        merge, number = self.merge, self.source.number
        clauses = self.clauses(When.MATCHED)
        wanted = {field.name for field in self.fields(target, When.MATCHED, merge.on)}
        fields = [f for f in target.schema.fields if f.name in wanted.union(compared)]
        rows = _passed(target.rows_with_files(fields), passing)
        named = self._named_of_source(merge.on, also=compared.values())
        source = self.sent(named, self.source.matched_size.total)
        pairs = rows.alias(merge.target_alias).join(
            source.alias(merge.source_alias), self.checked.on
        )
        name = free_name("_frazil_moved", [*target.schema.column_names, *self.source.rows.columns])
        moved = F.lit(False)
        for own, given in compared.items():
            new = F.col(quote_name_always([merge.source_alias, given]))
            moved |= ~F.col(quote_name_always([merge.target_alias, own])).eqNullSafe(new)
        return first_that_holds(
            pairs.withColumn(name, moved),
            [(n, clause.condition) for n, clause in clauses],
            name=CLAUSE,
            key=[target.file, number, name],
        )

    def key_filter(self, target: Target) -> KeyFilter | None:
        return KeyFilter.of(self.source, rows=target.plan.record_count)

    def files_that_match(self, target: Target, passing: KeyFilter | None) -> Target:
        """The files with a row that matches: those that copy-on-write writes anew.

        To find them takes no places, and the places of rows of other files need not be read.
        """
        if target.plan.file_count < 2:
            return target
        on = self.merge.on
        fields = named_fields([on], self.merge.known(target.schema))
        rows = _passed(target.rows_with_files(fields), passing)
        source = self.sent(self._named_of_source(on), self.source.matched_size.total)
        pairs = rows.alias(self.merge.target_alias).join(
            source.alias(self.merge.source_alias), self.checked.on
        )
        found = pairs.select(F.col(target.file).alias("file")).distinct().toArrow()
        return target.only(found.column("file").to_pylist())

    def _named_of_source(self, *conditions: str | Column, also: Collection[str] = ()) -> DataFrame:
        """The source's columns that the matching needs, and its number."""
        matched = [c.condition for _, c in self.clauses(When.MATCHED) if c.condition is not None]
        columns = named_columns([*conditions, *matched], self.source.names, also=also)
        if columns is None:
            return self.source.rows
        return self.source.rows.select(
            *(F.col(quote_name_always([name])) for name in (*columns, self.source.number))
        )

    @property
    def may_match_often(self) -> bool:
        """Whether several rows of the source for a row of the table are no contradiction."""
        clauses = self.clauses(When.MATCHED)
        if not clauses:
            return True
        only = clauses[0][1]
        return len(clauses) == 1 and only.do is Do.DELETE and only.condition is None

    def check_one_match(self, target: Target, matches: DataFrame) -> None:
        twice = matches.groupBy(target.place).agg(
            F.count("*").alias("matches"), F.min(self.source.number).alias("first")
        )
        worst = twice.where("matches > 1").orderBy("first").limit(1).collect()
        if not worst:
            return
        row = (
            self.source.rows.where(F.col(self.source.number) == worst[0]["first"])
            .drop(self.source.number, *self.merge.added_to_source)
            .collect()[0]
        )
        shown = ", ".join(f"{name}={row[n]!r}" for n, name in enumerate(row.__fields__[:4]))
        raise ValidationError(
            f"{worst[0]['matches']} rows of the source match one row of the table, so it is not "
            f"known which one counts; nothing was changed. One of them: {shown}. Leave one row of "
            "the source for each match, as with dropDuplicates"
        )

    def inserted(self, target: Target, matches: DataFrame, touched: Touched) -> DataFrame | None:
        """The new rows, in the columns that are written; None without a clause for them."""
        if not self.clauses(When.NOT_MATCHED) or self._match_all(matches, touched):
            return None
        matched = self.sent(matches.select(self.source.number), touched.pairs * row_bytes(1))
        left = self.source.rows.join(matched, self.source.number, "left_anti")
        return self._new_rows(target, left)

    def inserted_beside(self, target: Target, matched: Longs) -> DataFrame | None:
        """As `inserted`, where the rows of the source that match are known by their numbers."""
        every = self.source.collected
        if not self.clauses(When.NOT_MATCHED) or every is None:
            return None
        left = np.setdiff1d(every.numbers, matched, assume_unique=True)
        if not len(left):
            return None
        rows, number = self.source.rows, self.source.number
        if len(left) < len(every.numbers):
            how = "left_semi" if len(left) <= len(matched) else "left_anti"
            fewer = left if how == "left_semi" else matched
            known = rows.sparkSession.createDataFrame(pa.table({number: fewer}))
            rows = rows.join(F.broadcast(known), number, how)
        return self._new_rows(target, rows)

    def _new_rows(self, target: Target, left: DataFrame) -> DataFrame:
        """What the clauses make of rows of the source without a match."""
        clauses = self.clauses(When.NOT_MATCHED)
        clause = free_name(CLAUSE, self.source.rows.columns)
        chosen = first_that_holds(
            left.alias(self.merge.source_alias),
            [(n, clause.condition) for n, clause in clauses],
            name=clause,
            key=[self.source.number],
            beside=self.source.names,
        )
        rows = chosen.where(F.col(clause).isNotNull()).alias(self.merge.source_alias)
        empty = [F.lit(None).cast("bigint").alias(each.name) for each in target.lineage]
        support = type_support(self.spark)
        after = {
            n: self.checked.inserts[n].columns_after(rows, support, old=None) for n, _ in clauses
        }
        columns = values_by_clause(after, target.schema.fields, which=F.col(clause))
        return rows.select(*columns, *empty)

    def _match_all(self, matches: DataFrame, touched: Touched) -> bool:
        """Whether every row of the source is known to match: to write no rows costs jobs too."""
        if not self.source.count <= touched.pairs <= MOST_PAIRS:
            return False
        numbers = matches.select(self.source.number).toArrow().column(0).to_numpy()
        return len(np.unique(numbers)) == self.source.count

    def commit_inserted(
        self, target: Target, where: Expression, new: DataFrame | None
    ) -> ChangeResult:
        added = [] if new is None else self.command.write(new, target, most_rows=self.source.count)
        inserted = sum(file.record_count for file in added)
        if not inserted:
            return self.command.commit_nothing(target.plan)
        return self.command.commit_added(added, target.plan, where, {"rows_inserted": inserted})


def _passed(rows: DataFrame, passing: KeyFilter | None) -> DataFrame:
    return rows if passing is None else passing.passed(rows)


def shuffled(rows: DataFrame) -> DataFrame:
    """Return rows that Spark is not to send to every task, though their types may look small."""
    return rows.hint("merge")


def named_columns(
    conditions: Sequence[str | Column], names: Sequence[str], *, also: Collection[str] = ()
) -> list[str] | None:
    """Return the columns of a source that conditions may name; None where that cannot be told.

    Args:
        names: of the source's columns.
        also: other columns to return.
    """
    wanted = set(also)
    for each in conditions:
        words = words_of(each) if isinstance(each, str) else None
        if words is None or words.has_star:
            return None
        wanted.update(name for name in names if words.name_any_of([name]))
    return [name for name in names if name in wanted]
