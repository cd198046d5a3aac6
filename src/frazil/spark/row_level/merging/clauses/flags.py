"""Which clause a row falls under, and the values that it gets by it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.format.types import NestedField
from frazil.spark.row_level.target import Target
from frazil.spark.row_level.values.assignments import columns_named
from frazil.spark.row_level.values.expressions import SUBQUERY_REFUSED, condition_column


def first_that_holds(
    rows: DataFrame,
    conditions: Sequence[tuple[int, str | Column | None]],
    *,
    name: str,
    key: Sequence[str],
    beside: Sequence[str] = (),
) -> DataFrame:
    """Return the keys of rows with the number of the first condition that holds, or NULL.

    Args:
        rows: with the aliases that the conditions use.
        conditions: each with its number; None always holds.
        name: of the result's last column.
        key: columns that tell the rows apart and are never NULL.
        beside: other columns to return.
    """
    columns = [F.col(quote_name_always([each])) for each in (*beside, *key)]
    tests = [
        (number, F.lit(True) if each is None else condition_column(each, "a condition"))
        for number, each in conditions
    ]
    chosen = rows.select(*columns, first_number(tests).alias(name))
    try:
        chosen.schema  # noqa: B018 - asking for it is the analysis
    except AnalysisException as error:
        if not (error.getCondition() or "").startswith(SUBQUERY_REFUSED):
            raise
    else:
        return chosen
    # Spark takes such sub-queries in filters only.
    found = rows.select(*columns)
    flags: list[tuple[int, Column]] = []
    for number, test in tests:
        flag = f"{name}_{number}"
        held = rows.where(test).select(*key).withColumn(flag, F.lit(True))
        found = found.join(held, list(key), "left")
        flags.append((number, F.coalesce(F.col(flag), F.lit(False))))
    return found.select(*columns, first_number(flags).alias(name))


def first_number(tests: Sequence[tuple[int, Column]]) -> Column:
    """Return the number of the first test that is true, or NULL."""
    chosen: Column | None = None
    for number, test in tests:
        chosen = F.when(test, number) if chosen is None else chosen.when(test, number)
    return F.lit(None).cast("int") if chosen is None else chosen.cast("int")


def values_by_clause(
    after: Mapping[int, Mapping[str, Column]],
    fields: Sequence[NestedField],
    *,
    which: Column,
    otherwise: Mapping[str, Column] | None = None,
) -> list[Column]:
    """Return each column as the row's clause says.

    Args:
        after: the values of each clause, by the column's name.
        which: the number of the row's clause, or NULL.
        otherwise: the values of rows under no clause.
    """
    columns: list[Column] = []
    for field in fields:
        column: Column | None = None
        for n, values in after.items():
            value = values[field.name]
            if otherwise is not None and value is otherwise[field.name]:
                continue
            condition = which == n
            column = F.when(condition, value) if column is None else column.when(condition, value)
        if otherwise is not None:
            old = otherwise[field.name]
            column = old if column is None else column.otherwise(old)
        assert column is not None, field.name
        columns.append(column.alias(field.name))
    return columns


def written_by_clause(
    rows: DataFrame,
    after: Mapping[int, Mapping[str, Column]],
    *,
    target: Target,
    alias: str,
    old: Mapping[str, Column],
    which: Column,
) -> DataFrame:
    """Return rows of files as they are written: columns as the row's clause says, and lineage.

    Args:
        rows: of the target under its alias, each beside what its clause needs.
        after: the values of each clause, by the column's name.
        old: the values that the rows have; a clause that keeps one has it from here.
        which: the number of the row's clause, or NULL.
    """
    columns = values_by_clause(after, target.schema.fields, which=which, otherwise=old)
    lineage = columns_named(alias, [each.name for each in target.lineage])
    if lineage:
        stays = F.when(which.isNull(), lineage[target.last_updated])
        columns += [
            lineage[target.row_id].alias(target.row_id),
            stays.alias(target.last_updated),
        ]
    return rows.select(*columns)
