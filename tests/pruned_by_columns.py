"""Single files and manifests, asked of `frazil.planning.prune` as frames of one row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from frazil.format.manifests import DataFile
from frazil.format.partitions.partitioning import UNPARTITIONED
from frazil.format.predicates import Expression
from frazil.format.schema import Schema
from frazil.planning import prune


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
