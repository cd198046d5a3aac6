"""Units cut into batches by the stream's limits."""

from __future__ import annotations

from typing import Final

import polars as pl

from frazil.spark.stream.source.options import StreamOptions

UNIT_SCHEMA: Final = pl.Schema(
    {"path": pl.String, "size": pl.Int64, "rows": pl.Int64, "unit": pl.Int64}
)
"""A row a file; files of one unit have one number and lie together."""


def cut_batches(units: pl.DataFrame, options: StreamOptions) -> list[pl.DataFrame]:
    """The files of each batch, in order; none of no files.

    A batch takes whole units while no limit is passed, and at least one: limits of bytes and rows
    are soft where one unit alone is larger, as the Java runtime's are.

    Args:
        units: of `UNIT_SCHEMA`.
    """
    if units.is_empty():
        return []
    if not options.is_limited:
        return [units]
    sums = units.group_by("unit", maintain_order=True).agg(
        pl.len().alias("files"), pl.col("size").sum(), pl.col("rows").sum()
    )
    starts = _starts(sums, options)
    lengths = pl.Series([*starts, len(units)]).diff().drop_nulls()
    return [units.slice(start, n) for start, n in zip(starts, lengths, strict=True)]


def _starts(sums: pl.DataFrame, options: StreamOptions) -> list[int]:
    """The place of each batch's first file."""
    limits = (
        options.max_files or _NO_LIMIT,
        options.max_bytes or _NO_LIMIT,
        options.max_rows or _NO_LIMIT,
    )
    starts = [0]
    held = (0, 0, 0)
    place = 0
    for files, size, rows in sums.select("files", "size", "rows").iter_rows():
        unit = (int(files), int(size), int(rows))
        more = (held[0] + unit[0], held[1] + unit[1], held[2] + unit[2])
        if place > starts[-1] and any(n > limit for n, limit in zip(more, limits, strict=True)):
            starts.append(place)
            more = unit
        held = more
        place += unit[0]
    return starts


_NO_LIMIT: Final = 2**63
