"""Frames between Polars and what Spark sends to and takes from Python workers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
import pyarrow as pa


def polars_of(data: Any, columns: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """Return a batch or table of Arrow as a frame with these columns."""
    frame = pl.DataFrame(pl.from_arrow(data))
    return frame.select(pl.col(name).cast(dtype) for name, dtype in columns.items())


def arrow_of(frame: pl.DataFrame) -> pa.Table:
    """Return a frame as a table of Arrow with the plain strings that Spark takes."""
    table = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
    plain = [
        pa.field(field.name, pa.string() if pa.types.is_large_string(field.type) else field.type)
        for field in table.schema
    ]
    return table.cast(pa.schema(plain))


def columns_of(kinds: Mapping[str, pl.DataType]) -> pa.Schema:
    """Return the columns of `arrow_of` a frame with these."""
    return arrow_of(pl.DataFrame(schema=kinds)).schema
