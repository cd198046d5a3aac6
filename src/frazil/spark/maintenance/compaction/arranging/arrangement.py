"""How a strategy arranges the rows of a group: which task writes which, and in what order."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import add
from typing import Any, Final, Literal

import numpy as np
import polars as pl
from pyspark.sql import Column
from pyspark.sql import functions as F

from frazil.errors import ValidationError
from frazil.format import types as I
from frazil.format.arguments import one_or_several
from frazil.format.metadata import TableMetadata
from frazil.format.schema import Schema
from frazil.format.sorting import (
    NullOrder,
    SortDirection,
    SortField,
    SortOrder,
    order_for,
    reuse_order,
)
from frazil.spark.maintenance.compaction.arranging.curves import (
    Curve,
    CurveOfRows,
    Doubles,
    bits_of,
)
from frazil.spark.maintenance.compaction.groups import FileGroup
from frazil.spark.maintenance.compaction.options import CompactionOptions
from frazil.spark.row_level.merging.keys.equal_columns import plain_value
from frazil.spark.row_level.target import Target
from frazil.spark.session import costs
from frazil.spark.session.free_names import free_names
from frazil.spark.types import type_to_spark
from frazil.spark.write.columns.align import align
from frazil.spark.write.columns.partition_columns import column_of, transform_column
from frazil.spark.write.distribute import Placement, order_columns

Strategy = Literal["binpack", "sort", "zorder", "hilbert"]
STRATEGIES: Final = ("binpack", "sort", "zorder", "hilbert")

_CURVE_TEXT: Final = re.compile(r"\s*(zorder|hilbert)\s*\((.*)\)\s*", re.IGNORECASE | re.DOTALL)
_TEXT_BYTES: Final = 6
"""So many bytes of text are a number that a double holds exactly."""


@dataclass(frozen=True, slots=True)
class BinPack:
    """Files of good sizes; rows stay in order, or come into the table's order within a file."""

    def write_options(self) -> Mapping[str, str]:
        """Return the options of the write."""
        return {}

    def placement(self, target: Target, group: FileGroup, tasks: int) -> Placement:
        """Return which task writes which row."""
        moves: Literal["none", "hash"] = "none" if group.is_of_output_spec else "hash"
        return Placement(tasks=tasks, moves=moves)


@dataclass(frozen=True, slots=True)
class SortBy:
    """Rows sorted over all files of a group.

    Attributes:
        order: what they are sorted by.
        schema: of the table.
    """

    order: SortOrder
    schema: Schema

    def write_options(self) -> Mapping[str, str]:
        """Return the options of the write: which order the files state."""
        if self.order.order_id < 0:
            return {"use-table-distribution-and-ordering": "false"}
        return {"output-sort-order-id": str(self.order.order_id)}

    def placement(self, target: Target, group: FileGroup, tasks: int) -> Placement:
        """Return which task writes which row."""
        ordering = tuple(order_columns(self.schema, self.order))
        if tasks == 1:
            return Placement(tasks=1, ordering=ordering)
        found = None
        if group.is_of_output_spec:
            found = task_by_first_key(target, group, self.order, tasks)
        if found is None:
            return Placement(tasks=tasks, moves="range", ordering=ordering)
        [task] = free_names(
            ["_frazil_task"], [field.name for field in target.written_schema.fields]
        )
        return Placement(
            tasks=tasks, moves="task", added={task: found}, ordering=ordering, task=task
        )


@dataclass(frozen=True, slots=True)
class AlongCurve:
    """Rows sorted along a curve through several columns.

    Attributes:
        curve: which one.
        fields: the columns.
        text_bytes: so many bytes of text count.
        place_bytes: so many bytes of a row's place count.
    """

    curve: Curve
    fields: tuple[I.NestedField, ...]
    text_bytes: int
    place_bytes: int

    def write_options(self) -> Mapping[str, str]:
        """Return the options of the write: no order of the specification says what it is."""
        return {"use-table-distribution-and-ordering": "false"}

    def placement(self, target: Target, group: FileGroup, tasks: int) -> Placement:
        """Return which task writes which row, fitted to a sample of the group."""
        schema = target.schema
        place, task = free_names(
            ["_frazil_place_on_curve", "_frazil_task"],
            [field.name for field in target.written_schema.fields],
        )
        samples = sample_of(target, group, self.fields, _sampled_value)
        readings = [
            _reading_of(field, sample, min(self.text_bytes, _TEXT_BYTES))
            for field, sample in zip(self.fields, samples, strict=True)
        ]
        fitted = CurveOfRows.fit(
            self.curve, [values for values, _ in readings], tasks, place_bytes=self.place_bytes
        )
        table = fitted.table(target.spark)
        values = [
            read(column_of(schema, field.field_id))
            for (_, read), field in zip(readings, self.fields, strict=True)
        ]
        added = {place: fitted.place(table, values)}
        by_place = (F.col(place).asc(),)
        if not group.is_of_output_spec:
            return Placement(tasks=tasks, moves="hash", added=added, ordering=by_place)
        if tasks == 1:
            return Placement(tasks=1, added=added, ordering=by_place)
        added[task] = fitted.task(table, F.col(place))
        return Placement(tasks=tasks, moves="task", added=added, ordering=by_place, task=task)


Arrangement = BinPack | SortBy | AlongCurve


def arrangement_of(
    metadata: TableMetadata,
    strategy: str,
    sort_order: str | Sequence[str | SortField] | None,
    columns: str | Sequence[str] | None,
    options: CompactionOptions,
    *,
    case_sensitive: bool,
) -> Arrangement:
    """Return what a strategy is for a table.

    Args:
        strategy: one of `STRATEGIES`.
        sort_order: keys of ``sort``, as ``"ts desc nulls last"`` or several of them; the table's
            order unless given. As in Java's procedure it may be ``"zorder(a, b)"`` too, or
            ``"hilbert(a, b)"``.
        columns: of a curve.
        case_sensitive: how names are matched.

    Raises:
        ValidationError: no such strategy or column, keys where none are taken, or a table without
            an order and none given.
    """
    if strategy not in STRATEGIES:
        raise ValidationError(
            f"there is no strategy {strategy!r}; there are {', '.join(STRATEGIES)}"
        )
    if isinstance(sort_order, str):
        curve = _CURVE_TEXT.fullmatch(sort_order)
        if curve is not None:
            if strategy == "binpack" or columns is not None:
                raise ValidationError(
                    f"the sort order {sort_order!r} is for the strategy sort, without columns"
                )
            strategy, sort_order = curve[1].lower(), None
            columns = [name.strip() for name in curve[2].split(",")]
    match strategy:
        case "binpack":
            if sort_order is not None or columns is not None:
                raise ValidationError(
                    "binpack leaves rows in their order: use the strategy sort for a sort order, "
                    "zorder or hilbert for columns"
                )
            return BinPack()
        case "sort":
            if columns is not None:
                raise ValidationError("columns are those of a curve: give sort_order for sort")
            return SortBy(_order(metadata, sort_order, case_sensitive), metadata.schema)
        case _:
            if sort_order is not None or not columns:
                raise ValidationError(
                    f"{strategy} goes through columns: name them, as columns=['a', 'b']"
                )
            fields = _curve_fields(metadata.schema, columns, case_sensitive)
            kind: Curve = "hilbert" if strategy == "hilbert" else "zorder"
            return AlongCurve(kind, fields, options.text_bytes, options.place_bytes)


def _order(
    metadata: TableMetadata,
    sort_order: str | Sequence[str | SortField] | None,
    case_sensitive: bool,
) -> SortOrder:
    """The order to sort by; one that the table has not has the id -1."""
    if sort_order is None:
        if metadata.sort_order.is_unsorted:
            raise ValidationError(
                "the table has no sort order: give sort_order, or set one with replace_sort_order"
            )
        return metadata.sort_order
    keys = _keys_of(sort_order) if isinstance(sort_order, str) else list(sort_order)
    wanted = order_for(metadata.schema, keys, case_sensitive=case_sensitive)
    if wanted.is_unsorted:
        raise ValidationError("the sort order has no keys: give at least one")
    held = reuse_order(metadata.sort_orders, wanted)
    return held if held.order_id in metadata.sort_orders_by_id else wanted.with_id(-1)


def _keys_of(text: str) -> list[str]:
    """The keys of a text, at the commas outside of brackets."""
    return [key.strip() for key in re.split(r",(?![^()]*\))", text)]


def _curve_fields(
    schema: Schema, columns: str | Sequence[str], case_sensitive: bool
) -> tuple[I.NestedField, ...]:
    names = [str(name) for name in one_or_several(columns, argument="columns")]
    bits_of(len(names))
    fields = tuple(schema.find_field(name, case_sensitive=case_sensitive) for name in names)
    for field, name in zip(fields, names, strict=True):
        if not field.field_type.is_primitive or isinstance(field.field_type, _WITHOUT_ORDER):
            raise ValidationError(
                f"a curve cannot go through {name}, which is {field.field_type}: its values have "
                "no order"
            )
        if schema.is_inside_collection(field.field_id):
            raise ValidationError(f"a curve cannot go through {name}, which is in a list or a map")
    if len({field.field_id for field in fields}) < len(fields):
        raise ValidationError(f"a column is named twice: {', '.join(names)}")
    return fields


_WITHOUT_ORDER: Final = (I.GeometryType, I.GeographyType, I.VariantType, I.UnknownType)


def _reading_of(
    field: I.NestedField, sample: pl.Series, text_bytes: int
) -> tuple[Doubles, Callable[[Column], Column]]:
    """A column's values as doubles: of the sample, and how to get them of every row."""
    if not isinstance(field.field_type, TEXTS):
        values = sample.cast(pl.Float64).fill_null(float("nan")).to_numpy()
        return values, lambda column: as_double(field.field_type, column)
    texts: list[bytes | None] = sample.cast(pl.Binary).to_list()
    known = [text for text in texts if text is not None]
    skipped = _shared_start(min(known), max(known)) if known else 0

    def number(text: bytes) -> float:
        part = text[skipped : skipped + text_bytes].ljust(text_bytes, b"\0")
        return float(int.from_bytes(part, "big"))

    values = np.array([float("nan") if text is None else number(text) for text in texts], float)
    return values, lambda column: _bytes_as_double(column, skipped, text_bytes)


def _shared_start(one: bytes, other: bytes) -> int:
    """How many bytes two texts begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _bytes_as_double(value: Column, skipped: int, count: int) -> Column:
    part = F.substring(value.cast("binary"), skipped + 1, count)
    return F.conv(F.rpad(F.hex(part), 2 * count, "0"), 16, 10).cast("double")


def _sampled_value(field: I.NestedField, value: Column) -> Column:
    if isinstance(field.field_type, TEXTS):
        return F.substring(value.cast("binary"), 1, 64)
    return as_double(field.field_type, value)


TEXTS: Final = (I.StringType, I.UUIDType, I.FixedType, I.BinaryType)
"""Types whose values are compared byte by byte."""

_COMPARED: Final = (
    I.IntegerType, I.LongType, I.FloatType, I.DoubleType, I.DecimalType, I.DateType,
    I.TimestampType, I.TimestamptzType, I.StringType, I.BinaryType, I.FixedType,
)  # fmt: skip

_MOST_OF_MEAN: Final = 1.5
"""No task may have so many times the rows of the others."""


def sample_of(
    target: Target,
    group: FileGroup,
    fields: Sequence[I.NestedField],
    value: Callable[[I.NestedField, Column], Column],
) -> list[pl.Series]:
    """Return what is made of the columns in some rows of files all over the group.

    Spark's own ranges cost a pass over all columns of all rows; a sample of one column a moment.
    """
    tops = [target.schema.name_path(field.field_id)[0] for field in fields]
    columns = [field for field in target.schema.fields if field.name in tops]
    ordinals = group.ordinals[:: max(1, len(group.ordinals) // costs.SAMPLED_FILES)]
    some = target.restricted_to(ordinals)
    ends = some.plan.files["record_count"].cum_sum()
    some = some.where_files((ends <= costs.SAMPLED_ROWS) | (pl.Series(range(len(ends))) == 0))
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

    def compared_column(field: I.NestedField, column: Column) -> Column:
        value = transform_column(key.transform, field.field_type, column)
        if isinstance(result_type, TEXTS):
            return value.cast("binary")
        return as_double(result_type, value)

    [sample] = sample_of(target, group, [field], compared_column)
    is_descending = key.direction is SortDirection.DESC
    nulls_last = key.null_order is NullOrder.NULLS_LAST
    known = sample.drop_nulls().sort(descending=is_descending)
    nulls = len(sample) - len(known)
    bounds = _bounds(known, nulls, is_descending=is_descending, nulls_last=nulls_last, tasks=tasks)
    if bounds is None:
        return None
    value = compared_column(field, column_of(target.schema, field.field_id))

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
    return plain_value(value, type_to_spark(field_type)).cast("double")
