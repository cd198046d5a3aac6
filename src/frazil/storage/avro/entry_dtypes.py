"""The columns of manifest entries: their names and types."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import polars as pl

from frazil.storage.avro.manifest_layout import PARTITION_PREFIX

BOUNDS = frozenset({"lower_bounds", "upper_bounds"})
ENTRY_DTYPES: Mapping[str, pl.DataType] = {
    "status": pl.Int32(),
    "snapshot_id": pl.Int64(),
    "sequence_number": pl.Int64(),
    "file_sequence_number": pl.Int64(),
    "content": pl.Int32(),
    "file_path": pl.String(),
    "file_format": pl.String(),
    "record_count": pl.Int64(),
    "file_size_in_bytes": pl.Int64(),
    "key_metadata": pl.Binary(),
    "split_offsets": pl.List(pl.Int64()),
    "equality_ids": pl.List(pl.Int32()),
    "sort_order_id": pl.Int32(),
    "first_row_id": pl.Int64(),
    "referenced_data_file": pl.String(),
    "content_offset": pl.Int64(),
    "content_size_in_bytes": pl.Int64(),
}
REQUIRED = ("status", "file_path", "file_format", "record_count", "file_size_in_bytes")
COUNTS = ("record_count", "file_size_in_bytes")
LARGEST_COUNT = 2**48
"""More rows and bytes than a file can have; sums over all files of a table stay within 64 bits."""
FASTAVRO_FAILURES = (ValueError, TypeError, KeyError, IndexError, EOFError, StopIteration)


def map_dtype(name: str) -> pl.DataType:
    """The column type of a statistics map: a list of (key, value) structs."""
    value = pl.Binary() if name in BOUNDS else pl.Int64()
    return pl.List(pl.Struct({"key": pl.Int32(), "value": value}))


def value_column(statistic: str, field_id: int) -> str:
    """The name of the column that holds one field's value of a statistics map."""
    return f"{statistic}.{field_id}"


def partition_struct(columns: Collection[str]) -> pl.Expr:
    """The `partition` column: a struct whose fields are named by the partition field ids.

    A frame without partition columns has a null there.
    """
    fields = [name for name in columns if name.startswith(PARTITION_PREFIX)]
    if not fields:
        return pl.lit(None).alias("partition")
    packed = pl.struct(pl.col(name).alias(name.removeprefix(PARTITION_PREFIX)) for name in fields)
    return packed.alias("partition")
