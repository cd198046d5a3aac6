"""Manifest entries as columns, for the questions that operations ask of many of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import polars as pl

from frazil.format.manifests import Content, EntryStatus, ManifestContent, ManifestFile
from frazil.format.metadata import TableMetadata
from frazil.planning.deletes.own_files import FILE_PATH_ID, PATH_BOUNDS
from frazil.planning.load import ManifestLoader
from frazil.storage.avro.columns import value_column
from frazil.storage.avro.partition_summaries import partition_rows
from frazil.storage.files import FileIO

ABOUT = "about"


def read_entry_columns(
    io: FileIO,
    metadata: TableMetadata,
    manifest: ManifestFile,
    *,
    values: Mapping[str, Collection[int]] | None = None,
) -> pl.DataFrame:
    """A manifest's entries, one row each in the order of the file.

    What was read before is not read again. To the columns of `decode_manifests` comes
    `about`: the one data file that a position delete file or vector is about, null for others
    (rule 308).
    `values` are the statistics to decode, as maps to field ids.
    """
    [frame] = read_many_entry_columns(io, metadata, [manifest], values=values)
    return frame


def read_many_entry_columns(
    io: FileIO,
    metadata: TableMetadata,
    manifests: Sequence[ManifestFile],
    *,
    values: Mapping[str, Collection[int]] | None = None,
) -> list[pl.DataFrame]:
    """What `read_entry_columns` gives for each of some manifests, read beside each other."""
    wanted = {name: set(ids) for name, ids in (values or {}).items()}
    if any(manifest.content is ManifestContent.DELETES for manifest in manifests):
        for name, ids in PATH_BOUNDS.items():
            wanted.setdefault(name, set()).update(ids)
    frames = ManifestLoader.of(metadata, io).entries(manifests, values=wanted)
    return [_with_about(*each) for each in zip(manifests, frames, strict=True)]


def _with_about(manifest: ManifestFile, frame: pl.DataFrame) -> pl.DataFrame:
    if manifest.content is ManifestContent.DATA:
        return frame.with_columns(pl.lit(None, pl.String).alias(ABOUT))
    lower = pl.col(value_column("lower_bounds", FILE_PATH_ID))
    upper = pl.col(value_column("upper_bounds", FILE_PATH_ID))
    by_bounds = pl.when(
        (lower == upper) & (pl.col("content") == int(Content.POSITION_DELETES))
    ).then(lower.cast(pl.String, strict=False))
    return frame.with_columns(pl.coalesce("referenced_data_file", by_bounds).alias(ABOUT))


def is_live(frame: pl.DataFrame) -> pl.Series:
    """Which entries belong to the snapshot (rule 110)."""
    return frame["status"] != int(EntryStatus.DELETED)


def is_vector() -> pl.Expr:
    """Which entries are deletion vectors (rules 123, 308)."""
    return (pl.col("file_format") == "puffin") & (
        pl.col("content") == int(Content.POSITION_DELETES)
    )


def partition_tuples(
    metadata: TableMetadata, spec_id: int, frame: pl.DataFrame
) -> list[tuple[Any, ...]]:
    """The partition of each entry as internal values in the order of the spec."""
    return partition_rows(metadata.spec_by_id(spec_id), metadata.schema, frame)
