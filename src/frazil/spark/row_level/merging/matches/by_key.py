"""Matches of a merge that compares one whole number, found without a join.

The scan keeps the rows of which the key is one of the source's; which row of the source that is,
the driver looks up among the keys that it collected.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl
from pyspark.sql import functions as F

from frazil.format.predicates.sql.implied import conjuncts_of
from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.format.types import IntegerType, LongType
from frazil.spark.row_level.merging.clauses.clause import When
from frazil.spark.row_level.merging.keys.collected import collected_pairs
from frazil.spark.row_level.merging.keys.key_filter import KeyFilter
from frazil.spark.row_level.merging.matches.matching import Matching
from frazil.spark.row_level.target import Target


def matches_by_key(
    matching: Matching,
    target: Target,
    compared: Mapping[str, str],
    *,
    passing: KeyFilter | None,
    tasks: int,
) -> pl.DataFrame | None:
    """Return the pairs that match; None where a join must tell them.

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
    rows = passing.passed(target.rows_with_files(read))
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
