"""How a strategy arranges the rows of a group: which task writes which, and in what order."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import polars as pl
from pyspark.sql import Column
from pyspark.sql import functions as F

from frazil.errors import ValidationError
from frazil.format import types as I
from frazil.format.arguments import one_or_several
from frazil.format.metadata import TableMetadata
from frazil.format.schema import Schema
from frazil.format.sorting import SortField, SortOrder, order_for, reuse_order
from frazil.spark.maintenance.compaction.arranging.curves import (
    Curve,
    CurveOfRows,
    Doubles,
    bits_of,
)
from frazil.spark.maintenance.compaction.arranging.sampling import (
    TEXTS,
    as_double,
    sampled,
    task_by_first_key,
)
from frazil.spark.maintenance.compaction.groups import FileGroup
from frazil.spark.maintenance.compaction.options import CompactionOptions
from frazil.spark.row_level.target import Target
from frazil.spark.session.free_names import free_names
from frazil.spark.write.columns.partition_columns import column_of
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
        samples = sampled(target, group, self.fields, _sampled_value)
        readings = [
            _reading(field, sample, min(self.text_bytes, _TEXT_BYTES))
            for field, sample in zip(self.fields, samples, strict=True)
        ]
        fitted = CurveOfRows.fitted(
            self.curve, [each.sample for each in readings], tasks, place_bytes=self.place_bytes
        )
        table = fitted.table(target.spark)
        values = [
            each.read(column_of(schema, field.field_id))
            for each, field in zip(readings, self.fields, strict=True)
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
    keys = _split(sort_order) if isinstance(sort_order, str) else list(sort_order)
    wanted = order_for(metadata.schema, keys, case_sensitive=case_sensitive)
    if wanted.is_unsorted:
        raise ValidationError("the sort order has no keys: give at least one")
    held = reuse_order(metadata.sort_orders, wanted)
    return held if held.order_id in metadata.sort_orders_by_id else wanted.with_id(-1)


def _split(text: str) -> list[str]:
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


@dataclass(frozen=True, slots=True)
class _Reading:
    """A column's values as doubles: of the sample, and how to get them of every row."""

    sample: Doubles
    read: Callable[[Column], Column]


def _reading(field: I.NestedField, sample: pl.Series, text_bytes: int) -> _Reading:
    if not isinstance(field.field_type, TEXTS):
        values = sample.cast(pl.Float64).fill_null(float("nan")).to_numpy()
        return _Reading(values, lambda column: as_double(field.field_type, column))
    texts: list[bytes | None] = sample.cast(pl.Binary).to_list()
    known = [text for text in texts if text is not None]
    skipped = _shared_start(min(known), max(known)) if known else 0

    def number(text: bytes) -> float:
        part = text[skipped : skipped + text_bytes].ljust(text_bytes, b"\0")
        return float(int.from_bytes(part, "big"))

    values = np.array([float("nan") if text is None else number(text) for text in texts], float)
    return _Reading(values, lambda column: _bytes_as_double(column, skipped, text_bytes))


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
