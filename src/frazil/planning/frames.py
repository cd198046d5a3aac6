"""Frames of manifest entries: put together, narrowed to live files, packed for readers."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Sequence
from functools import lru_cache

import numpy as np
import polars as pl
from polars import selectors as cs
from polars.datatypes import DataTypeClass

from frazil.errors import UnsupportedError
from frazil.format.manifests import EntryStatus
from frazil.storage.avro.columns import ENTRY_DTYPES, partition_struct
from frazil.storage.avro.manifest_layout import PARTITION_PREFIX

_CHUNKS = 32
_LARGE_CHUNK = 50_000
_OFTEN_SINGLE = (
    "file_format",
    "spec_id",
    "sequence_number",
    "file_sequence_number",
    "snapshot_id",
    "first_row_id",
    "split_offsets",
    "sort_order_id",
    "key_metadata",
)
_BYTES_PER_COLUMN = 400
_BYTES_PER_VIEW = 16


def no_entries() -> pl.DataFrame:
    """A frame of entries without rows."""
    return pl.DataFrame(schema={**ENTRY_DTYPES, "spec_id": pl.Int32()})


def live_entries(entries: pl.DataFrame) -> pl.DataFrame:
    """The entries whose files belong to the snapshot (rule 110)."""
    deleted = entries["status"] == int(EntryStatus.DELETED)
    return entries.filter(~deleted) if deleted.any() else entries


def concat_entries(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Entries of several manifests; columns that one lacks are null there.

    Raises:
        UnsupportedError: partition fields of one id whose types have nothing in common.
    """
    if len(frames) == 1:
        return frames[0]
    # Many small chunks make every later operation slow; a few, or large ones, are not worth a copy.
    rechunk = len(frames) > _CHUNKS and sum(map(len, frames)) < len(frames) * _LARGE_CHUNK
    with contextlib.suppress(pl.exceptions.PolarsError):
        return pl.concat(frames, rechunk=rechunk)
    try:
        return pl.concat(frames, how="diagonal_relaxed", rechunk=rechunk)
    except pl.exceptions.SchemaError as error:
        raise UnsupportedError(
            "two partition specs use one field id for fields of types that do not agree, so their "
            f"files cannot be planned together: {error}"
        ) from error


def with_single_values(entries: pl.DataFrame) -> pl.DataFrame:
    """The entries, with columns of one value in all rows held as that value alone.

    A file's format, numbers and keys are mostly the same in a whole table. Polars keeps a literal
    once however many rows there are, also where frames of equal literals are put together, and
    makes a column of it where a column is asked for.
    """
    names = [name for name in _OFTEN_SINGLE if name in entries.columns]
    return entries.with_columns(held_once(entries[name]) for name in names)


def held_once(column: pl.Series) -> pl.Expr | pl.Series:
    """The column, as a literal where all of its rows are equal."""
    if column.is_empty():
        return column
    if column.null_count() == len(column):
        return pl.lit(None, column.dtype).alias(column.name)
    if _holds_one_value(column):
        return pl.lit(column.head(1)).first().alias(column.name)
    return column


def _holds_one_value(column: pl.Series) -> bool:
    """Whether all rows are equal, and none is null."""
    if column.null_count():
        return False
    if isinstance(column.dtype, pl.List):
        return bool((column.list.len() == 1).all()) and _holds_one_value(column.explode())
    return bool((column == column[0]).all())


def with_own_text(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame without the memory of other rows: a filter alone keeps the text of all."""
    old = pl.CompatLevel.oldest()
    return frame.with_columns(
        pl.Series(column.name, pl.from_arrow(column.to_arrow(compat_level=old)), column.dtype)
        for column in frame.select(cs.string() | cs.binary() | cs.struct())
    )


def select_columns(entries: pl.DataFrame, columns: Collection[str]) -> pl.DataFrame:
    """These columns of entries; the partition columns packed into the struct `partition`."""
    return pack_partitions(entries).select(columns)


def pack_partitions(entries: pl.DataFrame) -> pl.DataFrame:
    """Entries with the struct `partition` in place of the partition columns."""
    names = [name for name in entries.columns if name.startswith(PARTITION_PREFIX)]
    return entries.with_columns(partition_struct(names)).drop(names)


def unpack_partitions(files: pl.DataFrame) -> pl.DataFrame:
    """A plan's files with the fields of `partition` as the columns that they were packed from."""
    return files.with_columns(
        files["partition"].struct.field(name).alias(f"{PARTITION_PREFIX}{name}")
        for name in partition_names(files)
    )


def partition_names(files: pl.DataFrame) -> list[str]:
    """The fields of a plan's `partition`: ids of partition fields; none without partitions."""
    kind = files.schema["partition"]
    return [field.name for field in kind.fields] if isinstance(kind, pl.Struct) else []


def memory_of(frame: pl.DataFrame) -> int:
    """Return the bytes that a frame takes in memory, about; from above rather than below.

    Polars counts the values alone. To them come the views of texts and bytes, what each column and
    each one within it costs, and an eighth for buffers that grew while they were decoded.
    """
    columns = views = 0
    for name, dtype in frame.schema.items():
        nodes, each, in_list = _costs_of(dtype)
        columns += nodes
        if (each or in_list) and not _is_held_once(frame, name):
            views += each * len(frame)
            if in_list:
                views += in_list * int(frame[name].list.len().sum())
    whole = int(frame.estimated_size()) + views * _BYTES_PER_VIEW
    return whole + whole // 8 + columns * _BYTES_PER_COLUMN


def _is_held_once(frame: pl.DataFrame, name: str) -> bool:
    """Whether a column is a literal: of others each row takes a bit at least."""
    bits = len(frame) // 8
    # No literal has less than a byte, so that of few rows nothing is asked: that is a query.
    return bits > 1 and 0 < frame.select(name).estimated_size() < bits


def column_of(frame: pl.DataFrame, name: str) -> pl.Series:
    """A column of a frame, which holds a literal as such afterwards, too."""
    return frame.select(name).to_series()


@lru_cache(maxsize=256)
def _costs_of(dtype: pl.DataType) -> tuple[int, int, int]:
    """Columns in a column of the type; views in each of its values; views in a list's elements."""
    if isinstance(dtype, pl.List):
        nodes, views, _ = _costs_of(_instance(dtype.inner))
        return (1 + nodes, 0, views)
    if isinstance(dtype, pl.Struct):
        costs = [_costs_of(_instance(field.dtype)) for field in dtype.fields]
        return (1 + sum(nodes for nodes, _, _ in costs), sum(views for _, views, _ in costs), 0)
    return (1, int(dtype in (pl.String(), pl.Binary())), 0)


def _instance(dtype: pl.DataType | DataTypeClass) -> pl.DataType:
    return dtype if isinstance(dtype, pl.DataType) else dtype()


def partition_keys(values: pl.Series) -> pl.Series:
    """Return one partition field's values as keys, as `partition_key` does with one tuple.

    Keys are equal where the values are one partition: floats by their bits, with one NaN.
    """
    if not values.dtype.is_float():
        return values
    wide = values.cast(pl.Float64)
    bits = wide.fill_null(0.0).fill_nan(float("nan")).to_numpy().view(np.int64)
    return pl.Series(values.name, bits).set(values.is_null(), None)


def partition_numbers(files: pl.DataFrame) -> pl.Series:
    """Return a number for each spec and partition of files, data files or deletes.

    Args:
        files: with the columns `spec_id` and `partition` of a plan.
    """
    keys = [files["spec_id"]]
    if isinstance(files.schema["partition"], pl.Struct):
        parts = files["partition"].struct.unnest()
        keys += [partition_keys(parts[name]).alias(f"partition.{name}") for name in parts.columns]
    return pl.DataFrame(keys).select(pl.struct(pl.all()).rank("dense")).to_series()
