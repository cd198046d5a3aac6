"""Files by the buckets that their partitions say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from frazil.format.metadata import TableMetadata
from frazil.format.partitions.transforms import BucketTransform
from frazil.format.predicates import BoundRef


@dataclass(frozen=True, slots=True)
class Buckets:
    """A condition that a column's bucket is one of some.

    Attributes:
        ref: the column.
        count: how many buckets there are.
        wanted: the ones that are asked for.
    """

    ref: BoundRef
    count: int
    wanted: frozenset[int]


def in_buckets(files: pl.DataFrame, metadata: TableMetadata, asked: Sequence[Buckets]) -> pl.Series:
    """Return which files of a plan can hold rows in the buckets that are asked for.

    A file is left out where its partition says another bucket, of as many as are asked for.
    """
    keep = pl.repeat(True, len(files), eager=True)
    kind = files.schema["partition"]
    fields = {each.name for each in kind.fields} if isinstance(kind, pl.Struct) else set()
    for each in asked:
        transform = BucketTransform(each.count)
        for spec in metadata.partition_specs:
            for field in spec.fields:
                name = str(field.field_id)
                is_asked = field.source_ids == (each.ref.field_id,) and field.transform == transform
                if is_asked and name in fields:
                    said = files["partition"].struct.field(name)
                    other_spec = files["spec_id"] != spec.spec_id
                    keep &= other_spec | said.is_null() | said.is_in(sorted(each.wanted))
    return keep
