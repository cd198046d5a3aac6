"""Frames of manifest entries: put together, narrowed to live files, packed for readers."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Sequence

import polars as pl

from frazil.errors import UnsupportedError
from frazil.format.manifests import EntryStatus
from frazil.storage.avro.columns import ENTRY_DTYPES, partition_struct
from frazil.storage.avro.manifest_layout import PARTITION_PREFIX

_CHUNKS = 32
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
    # Many small chunks make every later operation slow; a few large ones are not worth a copy.
    rechunk = len(frames) > _CHUNKS
    with contextlib.suppress(pl.exceptions.PolarsError):
        return pl.concat(frames, rechunk=rechunk)
    try:
        return pl.concat(frames, how="diagonal_relaxed", rechunk=rechunk)
    except pl.exceptions.SchemaError as error:
        raise UnsupportedError(
            "two partition specs use one field id for fields of types that do not agree, so their "
            f"files cannot be planned together: {error}"
        ) from error


def selected(entries: pl.DataFrame, columns: Collection[str]) -> pl.DataFrame:
    """These columns of entries; the partition columns packed into the struct `partition`."""
    packed = partition_struct([c for c in entries.columns if c.startswith(PARTITION_PREFIX)])
    return entries.with_columns(packed).select(columns)


def memory_of(frame: pl.DataFrame) -> int:
    """Return the bytes that a frame takes in memory, about; from above rather than below.

    Polars counts the values alone. To them come the views of texts and bytes, what each column and
    each one within it costs, and an eighth for buffers that grew while they were decoded.
    """
    values = int(frame.estimated_size())
    columns = views = 0
    for name, dtype in frame.schema.items():
        columns += _columns_in(dtype)
        if dtype in _VIEWED:
            views += len(frame)
        elif isinstance(dtype, pl.List) and (inside := _views_in(dtype)):
            views += inside * int(frame[name].list.len().sum())
    whole = values + views * _BYTES_PER_VIEW
    return whole + whole // 8 + columns * _BYTES_PER_COLUMN


_VIEWED = (pl.String(), pl.Binary())


def _columns_in(dtype: pl.DataType) -> int:
    if isinstance(dtype, pl.List):
        return 1 + _columns_in(_inner(dtype))
    if isinstance(dtype, pl.Struct):
        return 1 + sum(_columns_in(_type_of(field)) for field in dtype.fields)
    return 1


def _views_in(dtype: pl.DataType) -> int:
    """How many texts or bytes one element of a list holds, lists within it aside."""
    inner = _inner(dtype) if isinstance(dtype, pl.List) else dtype
    if isinstance(inner, pl.Struct):
        return sum(_type_of(field) in _VIEWED for field in inner.fields)
    return int(inner in _VIEWED)


def _inner(dtype: pl.List) -> pl.DataType:
    return dtype.inner if isinstance(dtype.inner, pl.DataType) else dtype.inner()


def _type_of(field: pl.Field) -> pl.DataType:
    return field.dtype if isinstance(field.dtype, pl.DataType) else field.dtype()
