"""The last change of each key: what a batch of changes comes to."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import or_

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.format.schema import Schema
from frazil.spark.comparable import comparable
from frazil.spark.files.row_checks import stop_with_value
from frazil.spark.session.facts import is_case_sensitive
from frazil.spark.session.free_names import free_names
from frazil.spark.upserts.change_rows import ChangeRows
from frazil.spark.upserts.keys import Keys
from frazil.spark.write.columns.align import align


def aligned_changes(changes: ChangeRows, schema: Schema, keys: Keys) -> ChangeRows:
    """Return changes with the table's columns; nothing is evaluated, and no row moves.

    Args:
        schema: of the table.

    Raises:
        SchemaMismatchError: the rows do not fit the table.
    """
    # Keys alone are known of deleted rows.
    optional = Schema(
        tuple(
            replace(field, required=field.required and field.field_id in keys.ids)
            for field in schema.fields
        ),
        schema.schema_id,
    )
    spark = changes.rows.sparkSession
    aligned = align(
        changes.rows, optional, case_sensitive=is_case_sensitive(spark), beside=changes.beside
    )
    return replace(changes, rows=aligned)


def last_changes(changes: ChangeRows, keys: Keys) -> DataFrame:
    """Return the last change of each key: the table's columns and `gone`; nothing is evaluated.

    Changes of a key that nothing orders must be equal, and count as one.

    Args:
        changes: as of `aligned_changes`.
    """
    aligned = changes.rows
    order = [F.col(quote_name_always([name])) for name in changes.order]
    if order:
        missing = reduce(or_, (column.isNull() for column in order))
        problem = F.concat(
            F.lit("a change has no place in the order, since a column of order_by is NULL, for "),
            keys.shown,
        )
        stop = stop_with_value(problem).cast("boolean")
        gone = F.col(changes.gone)
        aligned = aligned.withColumn(changes.gone, F.when(missing, stop).otherwise(gone))
    rank, alike, first = free_names(
        ["_frazil_rank", "_frazil_alike", "_frazil_first"], aligned.columns
    )
    by_key = Window.partitionBy(*keys.columns)
    last = aligned
    if order:
        latest = F.rank().over(by_key.orderBy(*(column.desc() for column in order)))
        last = aligned.withColumn(rank, latest).where(F.col(rank) == 1).drop(rank)
    fields = last.drop(*changes.order).schema.fields
    content = F.xxhash64(
        *(comparable(F.col(quote_name_always([f.name])), f.dataType) for f in fields)
    )
    last = last.drop(*changes.order).withColumn(alike, content)
    one = last.withColumns(
        {
            first: F.row_number().over(by_key.orderBy(F.col(alike))),
            rank: F.max(alike).over(by_key),
        }
    ).where(F.col(first) == 1)
    what = "order_by orders them alike" if order else "there is no order_by"
    problem = F.concat(
        F.lit("there are several changes of one key, and which one is the last cannot be told, "),
        F.lit(f"since {what}: "),
        keys.shown,
    )
    stop = stop_with_value(problem).cast("boolean")
    decided = F.when(F.col(alike) != F.col(rank), stop).otherwise(F.col(changes.gone))
    return one.withColumn(changes.gone, decided).drop(first, rank, alike)
