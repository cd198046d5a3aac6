"""How a merge finds which rows of the source match which rows of the table, and which are new."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from frazil.format import types as I
from frazil.format.predicates.sql.implied import words_in_text
from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.format.types import NestedField
from frazil.spark.row_level.command import Command
from frazil.spark.row_level.delete import CLOCKS
from frazil.spark.row_level.in_place import without_queries
from frazil.spark.row_level.merging.clauses.checked import CheckedClauses
from frazil.spark.row_level.merging.clauses.clause import When
from frazil.spark.row_level.merging.clauses.flags import first_that_holds, values_by_clause
from frazil.spark.row_level.merging.clauses.request import MergeRequest, names_in
from frazil.spark.row_level.merging.keys.key_filter import KeyFilter
from frazil.spark.row_level.merging.matches.counts import CLAUSE
from frazil.spark.row_level.merging.source import Source
from frazil.spark.row_level.rivals.compared_rows import RowTest
from frazil.spark.row_level.rivals.key_test import KeyTest
from frazil.spark.row_level.target import Target
from frazil.spark.session import costs
from frazil.spark.session.facts import type_support
from frazil.spark.session.free_names import free_name
from frazil.spark.session.row_bytes import bytes_beyond, most_result_bytes, row_bytes

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

    def fields(self, target: Target, conditions: Sequence[str | Column]) -> list[NestedField]:
        """Return the columns of the table that conditions may name."""
        fields = self.merge.known_schema(target.schema).fields
        named = names_in(conditions, [field.name for field in fields])
        return [field for field in fields if named is None or field.name in named]

    def sent_rows(self, rows: DataFrame, size: int) -> DataFrame:
        """Rows of few bytes go to every task, so that the table's rows need not be shuffled."""
        return F.broadcast(rows) if self.is_sent(size) else without_broadcast(rows)

    def is_sent(self, size: int) -> bool:
        """Whether rows of so many bytes go to every task."""
        if size > costs.MATCHED_BYTES:
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

    def key_filter(self, target: Target) -> KeyFilter | None:
        """Return which rows of the table may match, where to look that up pays."""
        return KeyFilter.of(self.source, rows=target.plan.record_count)

    def pairs(
        self, rows: DataFrame, passing: KeyFilter | None, also: Collection[str] = ()
    ) -> DataFrame:
        """Return rows of the table beside the rows of the source that match them.

        Args:
            passing: which rows may match.
            also: columns of the source to return beside those that find matches.
        """
        names = self.merge.names_to_match(self.source.names, also)
        named = self.source.rows
        if names is not None:
            columns = (*names, self.source.number)
            named = named.select(*(F.col(quote_name_always([name])) for name in columns))
        source = self.sent_rows(named, self.source.matched_size.total).alias(
            self.merge.source_alias
        )
        rows = rows if passing is None else passing.passed_rows(rows)
        return rows.alias(self.merge.target_alias).join(source, self.checked.on)

    def row_test(self) -> RowTest | None:
        """Return how rows that others add are tested; None where a later look may say otherwise."""
        clauses = self.merge.clauses
        conditions = [self.merge.on, *(c.condition for c in clauses if c.condition is not None)]
        if self.merge.of_kind(When.BY_SOURCE) or not all(is_steady(each) for each in conditions):
            return None
        if not all(without_queries(each.values) for each in clauses if each.values is not None):
            return None
        beside = (*self.source.names, self.source.number)
        return RowTest(self._count_matched, beside, self._key_test())

    def _key_test(self) -> KeyTest | None:
        """What tells files without a match, where a key of whole numbers was collected."""
        if self.source.collected is None:
            return None
        for key, values in zip(self.source.keys, self.source.collected.values, strict=True):
            if isinstance(key.field.field_type, I.IntegerType | I.LongType):
                known = pc.unique(values.drop_null()).cast(pa.int64())
                return KeyTest(key.field, known, key.nulls_match and values.null_count > 0)
        return None

    def _count_matched(self, target: Target) -> dict[int, int]:
        """The rows of each file that the source matches."""
        rows = target.rows_with_files(self.fields(target, [self.merge.on]))
        pairs = self.pairs(rows, None)
        counted = pairs.groupBy(F.col(quote_name_always([target.file])).alias("file")).agg(
            F.count("*").alias("rows")
        )
        return {row["file"]: row["rows"] for row in counted.collect()}

    def new_rows(self, target: Target, left: DataFrame) -> DataFrame:
        """What the clauses make of rows of the source without a match."""
        clauses = self.merge.of_kind(When.NOT_MATCHED)
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


def is_steady(condition: str | Column) -> bool:
    """Return whether another look at other rows asks the same of a condition."""
    if not isinstance(condition, str):
        return False
    words = words_in_text(condition)
    return words is not None and not words.has_query and not words.name_any_of(CLOCKS)


def without_broadcast(rows: DataFrame) -> DataFrame:
    """Return rows that Spark is not to send to every task, though their types may look small."""
    return rows.hint("merge")
