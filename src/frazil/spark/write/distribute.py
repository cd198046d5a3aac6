"""Which task writes which row, and in which order: distribution mode and sort order."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.format.schema import Schema
from frazil.format.sorting import NullOrder, SortDirection, SortField, SortOrder
from frazil.spark.write.partition_columns import column_of, transform_column


def distribute(
    df: DataFrame, *, mode: str, keys: Sequence[str], ordering: Sequence[Column]
) -> DataFrame:
    """Rows placed and sorted for writing.

    Args:
        df: aligned rows with their partition keys.
        mode: ``none`` moves no row; ``hash`` brings the rows of a partition together, in as many
            tasks as their bytes ask for; ``range`` orders the whole write.
        keys: the names of the partition keys.
        ordering: the sort order within files, from `order_columns`.
    """
    placed = [F.col(key) for key in keys]
    if mode == "range" and (placed or ordering):
        df = df.repartitionByRange(*placed, *ordering)
    elif mode == "hash" and placed:
        df = df.hint("rebalance", *placed)
    return df.sortWithinPartitions(*placed, *ordering) if ordering else df


def order_columns(schema: Schema, order: SortOrder) -> list[Column]:
    """A sort order as Spark's (rules 93, 95).

    Raises:
        UnsupportedError: an unknown transform.
    """
    return [_ordered(schema, field) for field in order.fields]


def _ordered(schema: Schema, field: SortField) -> Column:
    source_type = schema.find_type(field.source_id)
    value = transform_column(field.transform, source_type, column_of(schema, field.source_id))
    if field.direction is SortDirection.ASC:
        return (
            value.asc_nulls_first()
            if field.null_order is NullOrder.NULLS_FIRST
            else value.asc_nulls_last()
        )
    return (
        value.desc_nulls_first()
        if field.null_order is NullOrder.NULLS_FIRST
        else value.desc_nulls_last()
    )
