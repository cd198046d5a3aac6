"""Counts, minima and maxima that metadata states exactly, file by file.

A file is *answered* where every wanted value of it is exact:

- its rows all match the predicate, and its live rows are known: no deletes, or a single deletion
  vector, whose cardinality the plan tells (rule 123);
- a count of a column needs the column's NULL count and no deletes, or a column that is never NULL;
  lists, maps and structs have no NULL count;
- a minimum or maximum needs no deletes and exact bounds. Bounds may be wider than the values
  (rules 119, 120): those of text and bytes are truncated, ORC's timestamps are rounded. Equal
  bounds are exact whatever the writer does. NaN is greater than every number, as in Spark; a bound
  of zero has lost its sign;
- the value of an identity partition field is the value of every row.

Everything else is left to be scanned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Literal

import polars as pl

from frazil.format.partitions.partitioning import PartitionSpec
from frazil.format.partitions.transforms import IdentityTransform, Transform
from frazil.format.predicates.expressions import BoundRef
from frazil.format.schema import Schema
from frazil.format.types import (
    TEMPORAL_TYPES,
    BooleanType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    PrimitiveType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    VariantType,
)
from frazil.planning.prune import ranges_of
from frazil.planning.prune.ranges import VALUE_STATISTICS, column_or_nulls, constant
from frazil.planning.scan_plan import ScanPlan
from frazil.storage.avro.columns import value_column

Function = Literal["count", "min", "max"]

_FLOATING = (FloatType, DoubleType)
_EXACT_BOUNDS = (
    BooleanType,
    IntegerType,
    LongType,
    DecimalType,
    *TEMPORAL_TYPES,
    *_FLOATING,
)
_COUNTED = (PrimitiveType, VariantType)
_ROUNDED_IN_ORC = (TimestampType, TimestamptzType, TimestampNanoType, TimestamptzNanoType)


@dataclass(frozen=True, slots=True)
class Measure:
    """One value that is asked for.

    Attributes:
        function: what to compute.
        field: of which column; None counts rows.
        name: of the result's column.
    """

    function: Function
    field: NestedField | None
    name: str


@dataclass(frozen=True, slots=True)
class GroupKey:
    """What rows are grouped by: a transform of a column."""

    transform: Transform
    field: NestedField
    name: str

    @property
    def result_type(self) -> IcebergType:
        """The type of the key's values."""
        return self.transform.result_type(self.field.field_type)


@dataclass(frozen=True, slots=True)
class Answered:
    """What metadata answers of a plan.

    Attributes:
        partial: a row a group of the answered files: `key<n>` a group key, `measure<n>` a measure,
            as internal values in the form of `frazil.storage.avro.binary_values`; one row where
            there are no keys.
        answered: the ordinals of the files that `partial` holds.
        scanned: the ordinals of the others.
    """

    partial: pl.DataFrame
    answered: pl.Series
    scanned: pl.Series

    def rest_of(self, plan: ScanPlan) -> ScanPlan:
        """The plan of the files that are to be scanned."""
        return plan.restricted_to(self.scanned)


def needed_statistics_of(measures: Sequence[Measure]) -> dict[str, frozenset[int]]:
    """The statistics that the measures are answered with."""
    counted = {m.field.field_id for m in measures if m.field is not None}
    bounded = {m.field.field_id for m in measures if m.field is not None and m.function != "count"}
    return {
        name: frozenset(bounded if name.endswith("bounds") else counted)
        for name in VALUE_STATISTICS
    }


def answer(
    plan: ScanPlan,
    measures: Sequence[Measure],
    keys: Sequence[GroupKey],
    *,
    schema: Schema,
    specs: Sequence[PartitionSpec],
) -> Answered:
    """The files of a plan whose part of the result metadata states exactly, and that part.

    Args:
        plan: with the columns that `needed_statistics_of` names.
        specs: every partition spec of the table.
    """
    files = _Files(plan, schema, specs)
    columns: list[pl.Series] = []
    exact = [files.live_known & files.frame["all_rows_match"]]
    for number, key in enumerate(keys):
        value = files.partition_value(key.transform, key.field)
        exact.append(value.known)
        columns.append(_group_keys(value.values).alias(f"key{number}"))
    for number, measure in enumerate(measures):
        found = files.measure(measure)
        exact.append(found.known)
        columns.append(found.values.alias(f"measure{number}"))
    answered = reduce(and_, exact)
    ordinals = files.frame["ordinal"]
    live = answered & (files.live > 0).fill_null(False)
    rows = pl.DataFrame(columns).filter(live)
    aggregated = [_aggregate(m, f"measure{n}") for n, m in enumerate(measures)]
    names = [f"key{number}" for number in range(len(keys))]
    if names:
        partial = rows.group_by(names, maintain_order=True).agg(aggregated)
    else:
        partial = rows.select(aggregated)
    return Answered(partial, ordinals.filter(answered), ordinals.filter(~answered))


@dataclass(frozen=True, slots=True)
class _Value:
    """A value a file, and whether it is exactly that."""

    values: pl.Series
    known: pl.Series


class _Files:
    """The files of a plan with what is known of their rows."""

    def __init__(self, plan: ScanPlan, schema: Schema, specs: Sequence[PartitionSpec]) -> None:
        self.frame = plan.files
        self._schema = schema
        self._specs = specs
        deleted = _deleted_rows(plan)
        records = self.frame["record_count"]
        self.live: pl.Series = records - deleted["rows"]
        self.live_known: pl.Series = (records >= 0) & deleted["known"]
        self._untouched: pl.Series = deleted["untouched"]

    def measure(self, measure: Measure) -> _Value:
        """A measure's part in each file."""
        field = measure.field
        if field is None:
            return _Value(self.live, self.live_known)
        given = self._constant(field)
        if measure.function == "count":
            return self._count(field, given)
        return self._bound_value(measure.function, field, given)

    def _count(self, field: NestedField, given: _Value) -> _Value:
        if self._never_null(field.field_id):
            return _Value(self.live, self.live_known)
        records = self.frame["record_count"]
        nulls = self._statistic("null_value_counts", field.field_id)
        known = (self._untouched & nulls.is_between(0, records)).fill_null(False)
        if not isinstance(field.field_type, _COUNTED):
            # What a number beside a list, map or struct counts is not said.
            known = constant(self.frame, False)
        if len(self._schema.name_path(field.field_id)) > 1:
            # Some writers do not count the fields of a struct that is NULL.
            counted = self._statistic("value_counts", field.field_id) == records
            known &= counted.fill_null(False)
        counts = records - nulls
        of_constant = self.live.set(given.values.is_null(), 0)
        values = counts.zip_with(known, of_constant)
        return _Value(values, known | given.known)

    def _bound_value(self, function: Function, field: NestedField, given: _Value) -> _Value:
        kind = field.field_type
        ref = BoundRef(field.field_id, kind, self._schema.name_path(field.field_id))
        ranges = ranges_of(ref, self.frame)
        none = ~(ranges.may_be_value | ranges.may_be_nan)
        bound = ranges.lower if function == "min" else ranges.upper
        if bound is None or ranges.lower is None or ranges.upper is None:
            values = given.values
            known = given.known | (self._untouched & none)
            return _Value(values.set(~given.known, None), known)
        exact = bound.is_not_null() & ranges.may_be_value
        exact &= _is_exact(kind, self.frame) | (ranges.lower == ranges.upper).fill_null(False)
        if isinstance(kind, _FLOATING):
            exact &= (bound != 0).fill_null(False)
            nans = self._statistic("nan_value_counts", field.field_id)
            some_nan = (nans > 0).fill_null(False)
            only_nan = ~ranges.may_be_value & some_nan
            if function == "max":
                exact &= ~ranges.may_be_nan
                only_nan = some_nan
            bound = bound.set(only_nan, float("nan"))
            exact |= only_nan
        known = self._untouched & (exact | none)
        bound = bound.set(none, None)
        # A column that is a partition value throughout needs no bounds.
        values = given.values.zip_with(given.known, bound)
        return _Value(values, known | given.known)

    def _constant(self, field: NestedField) -> _Value:
        """The value of all rows of each file, where the column itself is a partition field."""
        if IdentityTransform().can_transform(field.field_type):
            return self.partition_value(IdentityTransform(), field)
        nothing = pl.Series([None] * len(self.frame), dtype=pl.Null())
        return _Value(nothing, constant(self.frame, False))

    def partition_value(self, transform: Transform, field: NestedField) -> _Value:
        """What a transform of a column is for all rows of each file, by its partition."""
        known = constant(self.frame, False)
        result = transform.result_type(field.field_type)
        values: pl.Series | None = None
        partition = self.frame["partition"]
        if isinstance(partition.dtype, pl.Struct) and isinstance(result, PrimitiveType):
            stored = {part.name for part in partition.dtype.fields}
            for spec in self._specs:
                for part in spec.fields:
                    if (
                        part.source_ids != (field.field_id,)
                        or part.transform != transform
                        or str(part.field_id) not in stored
                    ):
                        continue
                    here = self.frame["spec_id"] == spec.spec_id
                    found = _comparable(result, partition.struct.field(str(part.field_id)))
                    values = found if values is None else found.zip_with(here, values)
                    known |= here
        if values is None:
            return _Value(pl.Series([None] * len(self.frame), dtype=pl.Null()), known)
        if isinstance(result, _FLOATING) and isinstance(transform, IdentityTransform):
            # The rows of a partition of zero may hold zeros of either sign.
            known &= (values != 0).fill_null(True)
        return _Value(values, known & self.live_known)

    def _statistic(self, name: str, field_id: int) -> pl.Series:
        return column_or_nulls(self.frame, value_column(name, field_id), pl.Int64())

    def _never_null(self, field_id: int) -> bool:
        """Whether the column and every struct around it are required."""
        current: int | None = field_id
        while current is not None:
            if not self._schema.find_field(current).required:
                return False
            current = self._schema.parent_ids.get(current)
        return True


def _deleted_rows(plan: ScanPlan) -> pl.DataFrame:
    """Of each file: deleted `rows`, whether that is `known`, whether it is `untouched`."""
    deletes, index = plan.deletes, plan.delete_index
    is_vector = (deletes["file_format"] == "puffin") & (deletes["record_count"] >= 0)
    each = pl.repeat(1, len(deletes), dtype=pl.Int64, eager=True)
    of_files = pl.concat(
        [
            index.sums(deletes["delete"], deletes["record_count"]).rename({"sum": "rows"}),
            index.sums(deletes["delete"], each).select(pl.col("sum").alias("deletes")),
            index.sums(deletes["delete"], is_vector).select(pl.col("sum").alias("vectors")),
        ],
        how="horizontal",
    ).select(
        "ordinal", "rows", ((pl.col("deletes") == 1) & (pl.col("vectors") == 1)).alias("known")
    )
    joined = plan.files.select("ordinal", "record_count").join(
        of_files, on="ordinal", how="left", maintain_order="left"
    )
    return joined.select(
        pl.col("rows").fill_null(0),
        (pl.col("known").fill_null(True) & (pl.col("rows").fill_null(0) <= pl.col("record_count")))
        .fill_null(False)
        .alias("known"),
        pl.col("known").is_null().alias("untouched"),
    )


def _is_exact(kind: IcebergType, files: pl.DataFrame) -> pl.Series:
    """Whether writers state bounds of the type that are values of the file."""
    if not isinstance(kind, _EXACT_BOUNDS):
        return constant(files, False)
    if isinstance(kind, _ROUNDED_IN_ORC):
        return files["file_format"] != "orc"
    return constant(files, True)


def _aggregate(measure: Measure, name: str) -> pl.Expr:
    column = pl.col(name)
    if measure.function == "count":
        return column.sum().cast(pl.Int64)
    if measure.function == "min":
        return column.min()
    field = measure.field
    floating = field is not None and isinstance(field.field_type, _FLOATING)
    return column.nan_max() if floating else column.max()


def _comparable(kind: IcebergType, values: pl.Series) -> pl.Series:
    """Partition values in the form that bounds are decoded to."""
    if isinstance(kind, DecimalType):
        unscaled: pl.Series = values.to_physical()
        return unscaled
    return values.cast(pl.Float64) if isinstance(kind, FloatType) else values


def _group_keys(values: pl.Series) -> pl.Series:
    """Keys such that equal ones look alike: one NaN."""
    if not values.dtype.is_float():
        return values
    return values.fill_nan(float("nan"))
