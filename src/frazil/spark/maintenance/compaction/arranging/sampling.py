"""What a sample of a group's rows tells: values of columns, and which task sorts which row.

Spark's own ranges cost a pass over all columns of all rows; a sample of one column costs a moment.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import pairwise
from operator import add
from typing import Any, Final

import polars as pl
from pyspark.sql import Column
from pyspark.sql import functions as F

from frazil.format import types as I
from frazil.format.schema import Schema
from frazil.format.sorting import NullOrder, SortDirection, SortOrder
from frazil.spark.maintenance.compaction.groups import FileGroup
from frazil.spark.row_level.target import Target
from frazil.spark.session import costs
from frazil.spark.write.columns.align import align, micros_without_zone
from frazil.spark.write.columns.partition_columns import column_of, transform_column

TEXTS: Final = (I.StringType, I.UUIDType, I.FixedType, I.BinaryType)
"""Types whose values are compared byte by byte."""

_COMPARED: Final = (
    I.IntegerType, I.LongType, I.FloatType, I.DoubleType, I.DecimalType, I.DateType,
    I.TimestampType, I.TimestamptzType, I.StringType, I.BinaryType, I.FixedType,
)  # fmt: skip

_MOST_OF_MEAN: Final = 1.5
"""No task may have so many times the rows of the others."""


def sampled(
    target: Target,
    group: FileGroup,
    fields: Sequence[I.NestedField],
    value: Callable[[I.NestedField, Column], Column],
) -> list[pl.Series]:
    """Return what is made of the columns in some rows of files all over the group."""
    tops = [target.schema.name_path(field.field_id)[0] for field in fields]
    columns = [field for field in target.schema.fields if field.name in tops]
    ordinals = group.ordinals[:: max(1, len(group.ordinals) // costs.SAMPLED_FILES)]
    some = target.only(ordinals)
    ends = some.plan.files["record_count"].cum_sum()
    some = some.where((ends <= costs.SAMPLED_ROWS) | (pl.Series(range(len(ends))) == 0))
    share = min(1.0, costs.SAMPLE / max(1, some.plan.record_count))
    read = some.rows(columns).drop(some.place)
    rows = read if share >= 1.0 else read.sample(fraction=share, seed=7)
    aligned = align(rows, Schema(tuple(columns)), case_sensitive=True)
    chosen = aligned.select(
        *(
            value(field, column_of(target.schema, field.field_id)).alias(f"c{number}")
            for number, field in enumerate(fields)
        )
    ).limit(2 * costs.SAMPLE)
    frame = pl.DataFrame(pl.from_arrow(chosen.toArrow()))
    return [frame[name] for name in frame.columns]


def task_by_first_key(
    target: Target, group: FileGroup, order: SortOrder, tasks: int
) -> Column | None:
    """Return the number of the task that writes a row, in the order of the first key.

    Rows of one value of the key are of one task, so files follow each other by the other keys too.
    None where the key has too few values for tasks of about as many rows, or tasks are many.
    """
    key = order.fields[0]
    field = target.schema.find_field(key.source_id)
    result_type = key.transform.result_type(field.field_type)
    if tasks > costs.COMPARED_TASKS or not isinstance(result_type, _COMPARED):
        return None

    def compared(field: I.NestedField, column: Column) -> Column:
        value = transform_column(key.transform, field.field_type, column)
        if isinstance(result_type, TEXTS):
            return value.cast("binary")
        return as_double(result_type, value)

    [sample] = sampled(target, group, [field], compared)
    is_descending = key.direction is SortDirection.DESC
    nulls_last = key.null_order is NullOrder.NULLS_LAST
    known = sample.drop_nulls().sort(descending=is_descending)
    nulls = len(sample) - len(known)
    bounds = _bounds(known, nulls, is_descending=is_descending, nulls_last=nulls_last, tasks=tasks)
    if bounds is None:
        return None
    value = compared(field, column_of(target.schema, field.field_id))

    def is_behind(bound: Any) -> Column:
        edge = F.lit(bound)
        return (value < edge if is_descending else value > edge).cast("int")

    place = reduce(add, map(is_behind, bounds))
    return F.coalesce(place, F.lit(len(bounds) if nulls_last else 0))


def _bounds(
    known: pl.Series, nulls: int, *, is_descending: bool, nulls_last: bool, tasks: int
) -> list[Any] | None:
    """The last value of each task but the last one; None where they cut rows too unevenly."""
    count = len(known) + nulls
    before = 0 if nulls_last else nulls
    places = [number * count // tasks - before for number in range(1, tasks)]
    if count < tasks or not all(0 < place <= len(known) for place in places):
        return None
    bounds = [known[[place - 1]] for place in places]
    # A value may go on behind the place where it was cut.
    through = [before + int((known >= b if is_descending else known <= b).sum()) for b in bounds]
    most = max(end - start for start, end in pairwise([0, *through, count]))
    return [b.item() for b in bounds] if most * tasks <= _MOST_OF_MEAN * count else None


def as_double(field_type: I.IcebergType, value: Column) -> Column:
    """Return a value as a number that sorts as it does."""
    match field_type:
        case I.DateType():
            return F.unix_date(value).cast("double")
        case I.TimestampType():
            return micros_without_zone(value).cast("double")
        case I.TimestamptzType():
            return F.unix_micros(value).cast("double")
        case _:
            return value.cast("double")
