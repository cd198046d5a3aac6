"""The entries of a snapshot as one frame."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import polars as pl

from frazil.format.manifests import ManifestFile
from frazil.format.metadata import TableMetadata
from frazil.format.schema import Schema
from frazil.format.snapshots import Snapshot
from frazil.planning.cache import ManifestCache
from frazil.planning.frames import concat_entries, selected
from frazil.planning.load import ManifestLoader
from frazil.storage.avro.columns import ENTRY_DTYPES, map_dtype
from frazil.storage.avro.manifest_layout import STATISTICS
from frazil.storage.files import FileIO


def entries(
    metadata: TableMetadata,
    snapshot: Snapshot | None,
    io: FileIO,
    *,
    manifests: Sequence[ManifestFile] | None = None,
    schema: Schema | None = None,
    statistics: Collection[str] = STATISTICS,
    cache: ManifestCache | None = None,
) -> pl.DataFrame:
    """Every entry of a snapshot's manifests, deleted ones too, in the order of its list.

    Args:
        metadata: the table.
        snapshot: whose manifests; None has none.
        io: the table's files.
        manifests: read these in place of the snapshot's.
        schema: the schema that partition types are derived from; the current one unless given.
        statistics: the statistics maps to decode, each a list of structs of key and value.
        cache: where decoded manifests are kept; with the files unless given.

    Returns:
        The columns of `frazil.storage.avro.columns.ENTRY_DTYPES`, `spec_id`, `partition` (a struct
        by partition field id over all specs, null in tables without partitions), the maps,
        `manifest_path` and `manifest_content` (0 data, 1 deletes).

    Raises:
        InvalidManifestError, MissingFileError, StorageError: a manifest cannot be read.
    """
    loader = ManifestLoader.of(metadata, io, schema, cache=cache)
    if manifests is None:
        manifests = () if snapshot is None else loader.manifests(snapshot)
    frames = loader.entries(manifests, statistics=statistics)
    parts = [
        frame.with_columns(
            pl.lit(manifest.manifest_path).alias("manifest_path"),
            pl.lit(int(manifest.content), pl.Int32).alias("manifest_content"),
        )
        for manifest, frame in zip(manifests, frames, strict=True)
    ]
    none = pl.DataFrame(
        schema={
            **ENTRY_DTYPES,
            "spec_id": pl.Int32(),
            **{name: map_dtype(name) for name in statistics},
            "manifest_path": pl.String(),
            "manifest_content": pl.Int32(),
        }
    )
    found = concat_entries(parts) if parts else none
    columns = [*ENTRY_DTYPES, "spec_id", "partition", *statistics]
    return selected(found, [*columns, "manifest_path", "manifest_content"])
