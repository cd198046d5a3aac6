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
