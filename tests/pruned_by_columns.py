"""Single files and partitions, asked of `frazil.planning.prune` as frames of one row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import polars as pl

from frazil.format.manifests import DataFile
from frazil.format.partitions.partitioning import UNPARTITIONED, PartitionSpec
from frazil.format.predicates import Expression
from frazil.format.schema import Schema
from frazil.planning import prune
from frazil.storage.avro.binary_values import partition_dtype


def frame_of(data_files: Sequence[DataFile], bound: Expression) -> pl.DataFrame:
    """The columns that planning would decode for these files."""
    columns = [pl.Series("record_count", [f.record_count for f in data_files], dtype=pl.Int64)]
    for name, ids in prune.needed_statistics(bound).items():
        for field_id in sorted(ids):
            maps: list[Mapping[int, Any] | None] = [getattr(f, name) for f in data_files]
            dtype = pl.Binary() if name.endswith("bounds") else pl.Int64()
            found = [None if m is None else m.get(field_id) for m in maps]
            columns.append(pl.Series(f"{name}.{field_id}", found, dtype=dtype))
    return pl.DataFrame(columns)


def may_match(bound: Expression, file: DataFile) -> bool:
    """Whether a file's metrics leave room for a row that the predicate keeps."""
    entries = frame_of([file], bound)
    return bool(prune.may_match(bound, UNPARTITIONED, Schema(()), entries).item())


def must_match(bound: Expression, file: DataFile) -> bool:
    """Whether a file's metrics show that the predicate keeps each of its rows."""
    entries = frame_of([file], bound)
    return bool(prune.must_match(bound, UNPARTITIONED, Schema(()), entries).item())


def may_keep(
    projected: Expression, spec: PartitionSpec, schema: Schema, partition: Sequence[Any]
) -> bool:
    """Whether an inclusive projection leaves a partition, of a tuple in spec order."""
    return bool(prune.keeps_partitions(projected, _entry(spec, schema, partition)).item())


def must_keep(
    projected: Expression, spec: PartitionSpec, schema: Schema, partition: Sequence[Any]
) -> bool:
    """Whether a strict projection is TRUE for a partition, of a tuple in spec order."""
    return bool(prune.must_keep_partitions(projected, _entry(spec, schema, partition)).item())


def _entry(spec: PartitionSpec, schema: Schema, partition: Sequence[Any]) -> pl.DataFrame:
    """An entry of a file of the partition; fields of no known type are left out."""
    columns = [pl.Series("record_count", [1], dtype=pl.Int64)]
    kinds = spec.partition_type(schema).fields
    for field, value in zip(kinds, partition, strict=True):
        dtype = partition_dtype(field.field_type)
        if dtype is not None:
            raw = value.bytes if isinstance(value, UUID) else value
            columns.append(pl.Series(f"partition.{field.field_id}", [raw], dtype=dtype))
    return pl.DataFrame(columns)
