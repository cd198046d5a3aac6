"""What a manifest's files hold of each partition field, and the types to write them with."""

from __future__ import annotations

import math
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import polars as pl

from frazil.errors import ValidationError
from frazil.format.manifests import FieldSummary
from frazil.format.partitions.partitioning import PartitionSpec
from frazil.format.schema import Schema
from frazil.format.types import (
    BinaryType,
    BooleanType,
    DecimalType,
    DoubleType,
    IcebergType,
    LongType,
    NestedField,
    StringType,
    StructType,
    UnknownType,
    UUIDType,
)
from frazil.format.values import to_bytes
from frazil.storage.avro.manifest_layout import PARTITION_PREFIX

_MOST_DIGITS = 38
# A bool is an int, too.
_TYPES: Mapping[type, IcebergType] = {
    type(None): UnknownType(),
    bool: BooleanType(),
    int: LongType(),
    float: DoubleType(),
    str: StringType(),
    bytes: BinaryType(),
    uuid.UUID: UUIDType(),
}


def written_partition_type(
    spec: PartitionSpec, schema: Schema, partitions: Sequence[Sequence[Any]]
) -> StructType:
    """The struct that the partition tuples are written as.

    A field whose source column was dropped has no type any more; its values keep one of their own,
    so that deletes still find their files.
    """
    declared = spec.partition_type(schema)
    for values in partitions:
        if len(values) != len(declared.fields):
            raise ValidationError(
                f"a partition of {len(values)} values does not fit the spec {spec.spec_id} of "
                f"{len(declared.fields)} fields"
            )
    fields = []
    for position, each in enumerate(declared.fields):
        kind = each.field_type
        if isinstance(kind, UnknownType):
            kind = _type_of_values(values[position] for values in partitions)
        fields.append(NestedField(each.field_id, each.name, kind))
    return StructType(tuple(fields))


def partition_rows(
    spec: PartitionSpec, schema: Schema, entries: pl.DataFrame, *, uuids: Collection[str] = ()
) -> list[tuple[Any, ...]]:
    """The partition of each entry as internal values in the order of the spec.

    `uuids`: columns that hold UUIDs though the schema does not say so any more.
    """
    columns: list[list[Any]] = []
    for field in spec.partition_type(schema).fields:
        name = f"{PARTITION_PREFIX}{field.field_id}"
        values = entries[name].to_list() if name in entries.columns else [None] * len(entries)
        if isinstance(field.field_type, UUIDType) or name in uuids:
            values = [uuid.UUID(bytes=v) if isinstance(v, bytes) else v for v in values]
        columns.append(values)
    return list(zip(*columns, strict=True)) if columns else [()] * len(entries)


def distinct_partitions(
    spec: PartitionSpec, schema: Schema, entries: pl.DataFrame
) -> list[tuple[Any, ...]]:
    """The partitions that entries are of: each once, or more often where they hold floats."""
    names = [name for name in entries.columns if name.startswith(PARTITION_PREFIX)]
    if not names:
        return partition_rows(spec, schema, entries.head(1))
    # Polars takes 0.0 and -0.0 for one.
    if not any(entries.schema[name].is_float() for name in names):
        entries = entries.unique(names, maintain_order=True)
    return partition_rows(spec, schema, entries)


@dataclass(slots=True)
class FieldSummaryBuilder:
    """Collects one partition field's values (SPEC rules 163, 164)."""

    value_type: IcebergType
    contains_null: bool = False
    contains_nan: bool = False
    lowest: Any = None
    highest: Any = None

    def add(self, value: Any) -> None:
        """Take one file's value into account."""
        if value is None:
            self.contains_null = True
        elif isinstance(value, float) and math.isnan(value):
            self.contains_nan = True
        else:
            key = _order_key(value)
            if self.lowest is None or key < _order_key(self.lowest):
                self.lowest = value
            if self.highest is None or key > _order_key(self.highest):
                self.highest = value

    def summary(self) -> FieldSummary:
        """The field's summary, bounds as single-value bytes."""
        lower, upper = (
            None if end is None else to_bytes(self.value_type, end)
            for end in (self.lowest, self.highest)
        )
        return FieldSummary(
            contains_null=self.contains_null,
            contains_nan=self.contains_nan,
            lower_bound=lower,
            upper_bound=upper,
        )


def _order_key(value: Any) -> Any:
    # -0.0 comes before +0.0 (SPEC rules 120, 163), which plain comparison takes for equal.
    return (value, math.copysign(1.0, value)) if isinstance(value, float) else value


def _type_of_values(values: Iterable[Any]) -> IcebergType:
    first = next((value for value in values if value is not None), None)
    if isinstance(first, Decimal):
        return DecimalType(_MOST_DIGITS, -int(first.as_tuple().exponent))
    for kind, iceberg_type in _TYPES.items():
        if isinstance(first, kind):
            return iceberg_type
    raise ValidationError(f"{first!r} is not a partition value")
