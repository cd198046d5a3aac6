"""Which task writes which row, and in which order: distribution mode and sort order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.format.schema import Schema
from frazil.format.sorting import NullOrder, SortDirection, SortField, SortOrder
from frazil.spark.abilities import repartition_by_id
from frazil.spark.session import costs
from frazil.spark.session.facts import shuffle_partitions
from frazil.spark.write.columns.partition_columns import column_of, transform_column


def distribute(
    df: DataFrame,
    *,
    mode: str,
    keys: Mapping[str, Column],
    sources: Sequence[Column],
    ordering: Sequence[Column],
) -> DataFrame:
    """Rows with their partition keys, placed for writing; `in_order` sorts them.

    Args:
        df: aligned rows.
        mode: ``none`` moves no row; ``hash`` brings the rows of a partition together, in as many
            tasks as their bytes ask for; ``range`` orders the whole write.
        keys: the partition keys to add, by name.
        sources: the columns that tell the partition as well as the keys do, if there are such.
        ordering: the sort order within files, from `order_columns`.
    """
    placed = [F.col(key) for key in keys]
    if mode == "hash" and sources:
        # Keys that are made after the shuffle are not moved by it.
        df = _hash_of_keys(df, sources).withColumns(dict(keys))
    else:
        df = df.withColumns(dict(keys)) if keys else df
        if mode == "range" and (placed or ordering):
            df = df.repartitionByRange(*placed, *ordering)
        elif mode == "hash" and placed:
            df = _hash_of_keys(df, placed)
    return df


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Which task writes which row, where that is known better than a table's properties say it.

    Attributes:
        tasks: how many tasks write; nothing where rows stay.
        moves: ``stay`` leaves each row to the task that reads it; ``none`` joins neighbouring tasks
            and moves no row; ``hash`` brings the rows of a partition together; ``range`` orders
            the whole write; ``task`` goes by the column of `added` that `task` names.
        added: columns that the order needs and that are not written, made of the table's.
        ordering: how rows are sorted within files, in place of the table's order; None leaves it.
        task: the name of the column with the number of each row's task.
        pieces: so many neighbouring tasks write one file together: each some of its row groups,
            which are joined afterwards. 1 unless the files lie on a local disk.
    """

    tasks: int = 0
    moves: Literal["stay", "none", "hash", "range", "task"] = "none"
    added: Mapping[str, Column] = field(default_factory=dict)
    ordering: tuple[Column, ...] | None = None
    task: str = ""
    pieces: int = 1

    def place(
        self, df: DataFrame, *, keys: Mapping[str, Column], ordering: Sequence[Column]
    ) -> DataFrame:
        """Return rows with their partition keys and what is added, where they are to be written.

        Args:
            df: aligned rows.
            keys: the partition keys to add, by name.
            ordering: how rows will be sorted.
        """
        df = df.withColumns(dict(keys)) if keys else df
        # One after the other: an added column may be made of another.
        for name, column in self.added.items():
            df = df.withColumn(name, column)
        first = [F.col(key) for key in keys]
        match self.moves:
            case "stay":
                return df
            case "hash" if keys:
                return df.repartition(self.tasks, *first)
            case "range":
                return df.repartitionByRange(self.tasks, *first, *ordering)
            case "task":
                return repartition_by_id(df, self.tasks, self.task)
            case _:
                return df.coalesce(self.tasks)


def in_order(df: DataFrame, *, keys: Iterable[str], ordering: Sequence[Column]) -> DataFrame:
    """The rows of each task sorted by partition, then as a table asks, if it does.

    No row goes to another task.
    """
    return df.sortWithinPartitions(*map(F.col, keys), *ordering) if ordering else df


def _hash_of_keys(df: DataFrame, keys: Sequence[Column]) -> DataFrame:
    spark = df.sparkSession
    if str(spark.conf.get("spark.sql.adaptive.enabled", "true")).lower() != "true":
        return df.repartition(*keys)
    return df.hint("rebalance", max(shuffle_partitions(spark), costs.SHUFFLE_PARTS), *keys)


def order_columns(schema: Schema, order: SortOrder) -> list[Column]:
    """A sort order as Spark's (rules 93, 95).

    Raises:
        UnsupportedError: an unknown transform.
    """
    return [_order_of(schema, field) for field in order.fields]


def _order_of(schema: Schema, field: SortField) -> Column:
    source_type = schema.find_type(field.source_id)
    column, name = column_of(schema, field.source_id), schema.find_column_name(field.source_id)
    value = transform_column(field.transform, source_type, column, name=str(name))
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
