"""Matches of a merge by the files of the table's rows, for copy-on-write.

To find them takes no places, which cost a look at each row. They say nothing of a row that matches
two rows of the source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from frazil.format.predicates.sql.implied import conjuncts_of
from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.format.types import IntegerType, LongType
from frazil.spark.row_level.merging.clauses.clause import When
from frazil.spark.row_level.merging.clauses.flags import first_that_holds
from frazil.spark.row_level.merging.keys.collected import collected_pairs, most_pairs_of_task
from frazil.spark.row_level.merging.keys.key_filter import KeyFilter
from frazil.spark.row_level.merging.matches.by_place import inserted_beside_pairs
from frazil.spark.row_level.merging.matches.counts import CLAUSE, MatchCounts, files_of_matches
from frazil.spark.row_level.merging.matches.matching import Matching
from frazil.spark.row_level.target import Target
from frazil.spark.session.few_rows import Longs, tasks_of_scan
from frazil.spark.session.free_names import free_name


@dataclass(frozen=True, slots=True)
class FileMatches:
    """The pairs that match.

    Attributes:
        counts: how many there are.
        move_rows: whether one may move its row to another partition.
        pairs: where they are many, kept by the executors; else None.
        matched: where they are few, the numbers of the source's rows that match, each once.
        passing: which rows of the target may match, where that was looked up.
    """

    matching: Matching
    counts: MatchCounts
    move_rows: bool
    pairs: DataFrame | None
    matched: Longs
    passing: KeyFilter | None

    @classmethod
    def of(cls, matching: Matching, target: Target, compared: Mapping[str, str]) -> FileMatches:
        """Find them.

        Args:
            compared: the table's columns that tell whether a row moves, and the source's beside.
        """
        source, tasks = matching.source, tasks_of_scan(target.spark, target.plan)
        # Where no row of the source matches two of the table, there are no more pairs than that.
        few = source.collected is not None and source.count <= most_pairs_of_task(tasks)
        passing = matching.key_filter(target)
        found = None
        if few:
            found = matches_by_key(matching, target, compared, passing=passing, tasks=tasks)
        kept: DataFrame | None = None
        if found is None:
            pairs = _pairs(matching, target, compared, passing)
            found = collected_pairs(pairs, tasks=tasks) if few else None
        if found is not None:
            found.columns = ["file", "number", "moved", "clause"]
            groups = found.group_by("file", "clause")
            rows = groups.agg(pl.len().cast(pl.Int64).alias("rows"), pl.col("moved").max())
        else:
            kept = pairs.localCheckpoint(eager=False)
            moves = F.max(quote_name_always([pairs.columns[2]])).alias("moved")
            counted = (
                kept.groupBy(F.col(target.file).alias("file"), F.col(CLAUSE).alias("clause"))
                .agg(F.count("*").alias("rows"), moves)
                .toArrow()
            )
            rows = pl.DataFrame(pl.from_arrow(counted))
        counts = MatchCounts(
            clauses=tuple(matching.merge.clauses),
            rows=rows.drop("moved").drop_nulls("clause"),
            **files_of_matches(rows),
            pairs=int(rows["rows"].sum()),
            most_matches=1,
        )
        numbers = np.zeros(0, dtype=np.int64)
        if found is not None:
            numbers = found["number"].unique().sort().to_numpy()
        return cls(matching, counts, bool(rows["moved"].any()), kept, numbers, passing)

    def inserted_rows(self, target: Target) -> DataFrame | None:
        """Return the new rows, in the columns that are written; None if there are none."""
        if self.pairs is not None:
            return inserted_beside_pairs(self.matching, target, self.pairs, self.counts)
        every = self.matching.source.collected
        if not self.matching.merge.of_kind(When.NOT_MATCHED) or every is None:
            return None
        left = np.setdiff1d(every.numbers, self.matched, assume_unique=True)
        if not len(left):
            return None
        rows, number = self.matching.source.rows, self.matching.source.number
        if len(left) < len(every.numbers):
            how = "left_semi" if len(left) <= len(self.matched) else "left_anti"
            fewer = left if how == "left_semi" else self.matched
            known = rows.sparkSession.createDataFrame(pa.table({number: fewer}))
            rows = rows.join(F.broadcast(known), number, how)
        return self.matching.new_rows(target, rows)


def _pairs(
    matching: Matching, target: Target, compared: Mapping[str, str], passing: KeyFilter | None
) -> DataFrame:
    """The pairs that match: the row's file, the source's row, and the clause, if any.

    The third column says whether the two rows differ in one of the columns that are compared.
    """
    merge, source = matching.merge, matching.source
    conditions = [merge.on, *merge.conditions(When.MATCHED)]
    wanted = {field.name for field in matching.fields(target, conditions)}
    fields = [f for f in target.schema.fields if f.name in wanted.union(compared)]
    pairs = matching.pairs(target.rows_with_files(fields), passing, compared.values())
    name = free_name("_frazil_moved", [*target.schema.column_names, *source.rows.columns])
    moved = F.lit(False)
    for own, given in compared.items():
        new = F.col(quote_name_always([merge.source_alias, given]))
        moved |= ~F.col(quote_name_always([merge.target_alias, own])).eqNullSafe(new)
    return first_that_holds(
        pairs.withColumn(name, moved),
        [(n, clause.condition) for n, clause in matching.merge.of_kind(When.MATCHED)],
        name=CLAUSE,
        key=[target.file, source.number, name],
    )


def matches_by_key(
    matching: Matching,
    target: Target,
    compared: Mapping[str, str],
    *,
    passing: KeyFilter | None,
    tasks: int,
) -> pl.DataFrame | None:
    """Return the pairs that match; None where a join must tell them.

    The scan keeps the rows of which the key, one whole number, is one of the source's; which row of
    the source that is, the driver looks up among the keys that it collected.

    Args:
        compared: the table's columns, and the source's beside each: a pair that differs in one is
            `moved`.
        passing: which rows of the target may match.
        tasks: how many read the target, about.

    Returns:
        `file`, `number` of the source's row, `moved` and `clause` of each pair.
    """
    source, every = matching.source, matching.source.collected
    clauses = matching.merge.of_kind(When.MATCHED)
    if passing is None or not passing.is_exact:
        return None
    if every is None or not every.are_distinct or len(source.keys) != 1:
        return None
    # A clause without a condition holds for every match.
    if len(clauses) > 1 or any(clause.condition is not None for _, clause in clauses):
        return None
    on, (key,) = matching.merge.on, source.keys
    if not isinstance(on, str) or len(conjuncts_of(on)) > 1:
        return None
    others = {own: given for own, given in compared.items() if (own,) != key.target}
    fields = {field.name: field for field in target.schema.fields}
    whole = all(isinstance(fields[own].field_type, IntegerType | LongType) for own in others)
    if len(others) > 1 or not whole or not set(others.values()) <= every.beside.keys():
        return None
    if key.target[0] in compared and compared[key.target[0]] != key.source:
        return None
    read = [field for name, field in fields.items() if (name,) == key.target or name in others]
    rows = passing.passed_rows(target.rows_with_files(read))
    pairs = rows.select(
        F.col(quote_name_always([target.file])).alias("file"),
        F.col(quote_name_always(key.target)).cast("bigint").alias("key"),
        *(F.col(quote_name_always([own])).cast("bigint").alias("own") for own in others),
    )
    found = collected_pairs(pairs, tasks=tasks)
    if found is None:
        return None
    columns = {"key": every.values[0]}
    for name in others.values():
        columns["given"] = every.beside[name]
    known = pl.DataFrame({name: pl.from_arrow(column) for name, column in columns.items()})
    rows_of_source = known.with_columns(
        pl.col("key").cast(pl.Int64), pl.Series("number", every.numbers)
    )
    joined = found.join(rows_of_source.drop_nulls("key"), on="key", how="inner")
    differs = pl.col("own").ne_missing(pl.col("given")) if others else pl.lit(False)
    clause = clauses[0][0] if clauses else None
    return joined.select(
        "file",
        "number",
        differs.alias("moved"),
        pl.lit(clause, dtype=pl.Int32).alias("clause"),
    )
