"""Deletion vectors that replace others, compared by their positions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import polars as pl
from pyroaring import BitMap64

from frazil.planning.changes import TakenRows
from frazil.planning.scan_plan import ScanPlan
from frazil.storage.files import FileIO
from frazil.storage.vectors import read_deletion_vector

MOST_VECTORS: Final = 64
MOST_BYTES: Final = 16 * 1024 * 1024
"""Up to so many vectors, and bytes of them, are compared here instead of by a read of the files."""


def without_contained(taken: TakenRows, io: FileIO) -> TakenRows:
    """The rows taken without files of which nothing can be: whose vector is part of the base's.

    A new vector of a data file holds the old one's positions (rule 217), so that it gives no row
    back; that is seen from the vectors alone. Where they are many or large all files stay.

    Raises:
        InvalidDataFileError, MissingFileError, StorageError: a vector cannot be read.
    """
    vectors, base = _vectors(taken.plan), _vectors(taken.base)
    both = vectors.join(base, on="ordinal", suffix="_base")
    sizes = pl.sum_horizontal("content_size_in_bytes", "content_size_in_bytes_base")
    size = int(both.select(sizes.sum()).item())
    if both.is_empty() or len(both) > MOST_VECTORS or size > MOST_BYTES:
        return taken
    contained = [
        row["ordinal"]
        for row in both.iter_rows(named=True)
        if _positions(io, row, "").issubset(_positions(io, row, "_base"))
    ]
    keep = ~taken.plan.files["ordinal"].is_in(contained)
    return TakenRows(taken.plan.where_files(keep), taken.base.where_files(keep))


def _vectors(plan: ScanPlan) -> pl.DataFrame:
    """The vectors of files to which nothing else applies, a row a file."""
    index = plan.delete_index
    each = pl.repeat(1, len(plan.deletes), dtype=pl.Int64, eager=True)
    counts = index.sums(plan.deletes["delete"], each)
    alone = index.on(counts.filter(pl.col("sum") == 1)["ordinal"]).expanded()
    columns = ["file_path", "record_count", "content_offset", "content_size_in_bytes"]
    vectors = plan.deletes.filter(pl.col("file_format") == "puffin").select("delete", *columns)
    return alone.join(vectors, on="delete").drop("delete")


def _positions(io: FileIO, vector: Mapping[str, Any], suffix: str) -> BitMap64:
    return read_deletion_vector(
        io,
        vector[f"file_path{suffix}"],
        offset=vector[f"content_offset{suffix}"],
        length=vector[f"content_size_in_bytes{suffix}"],
        cardinality=vector[f"record_count{suffix}"],
    )
