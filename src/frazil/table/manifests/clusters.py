"""Entries of many manifests as other manifests, each of which can be written by itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import polars as pl

from frazil.format.manifests import EntryStatus, ManifestContent, ManifestFile
from frazil.format.metadata import TableMetadata
from frazil.format.table_properties import MANIFEST_CODEC
from frazil.planning.load import ManifestLoader, manifest_batches
from frazil.storage import avro
from frazil.storage.avro.manifest_copy import CarriedEntries, copy_manifest, only_rows
from frazil.storage.files import FileIO
from frazil.table.manifests.files import ManifestFiles, as_existing, read_entries


@dataclass(frozen=True, slots=True)
class ManifestCluster:
    """The entries of one new manifest.

    Attributes:
        path: of the new manifest.
        sources: manifests, and which of their entries by the numbers of their rows.
    """

    path: str
    sources: tuple[tuple[ManifestFile, pl.Series], ...]


@dataclass(frozen=True, slots=True)
class ClusterWriter:
    """Writes clusters of one spec and content; may be sent to other processes.

    Attributes:
        metadata: the table's definition; its history is not needed.
        spec_id, content, snapshot_id: of every new manifest.
    """

    io: FileIO
    metadata: TableMetadata
    spec_id: int
    content: ManifestContent
    snapshot_id: int

    @classmethod
    def of(
        cls,
        io: FileIO,
        metadata: TableMetadata,
        *,
        spec_id: int,
        content: ManifestContent,
        snapshot_id: int,
    ) -> ClusterWriter:
        """Return the writer for a table, without what it does not need of its metadata."""
        definition = dataclasses.replace(
            metadata,
            snapshots=(),
            snapshot_log=(),
            metadata_log=(),
            refs={},
            current_snapshot_id=None,
            statistics=(),
            partition_statistics=(),
        )
        return cls(io, definition, spec_id, content, snapshot_id)

    def write(self, cluster: ManifestCluster) -> ManifestFile:
        """Write one new manifest; a second try writes the same.

        Raises:
            InvalidManifestError, MissingFileError: a manifest cannot be read.
        """
        spec = self.metadata.spec_by_id(self.spec_id)
        definition = {
            "spec": spec,
            "schema": self.metadata.schema,
            "format_version": self.metadata.format_version,
            "content": self.content,
            "snapshot_id": self.snapshot_id,
            "codec": MANIFEST_CODEC.of(self.metadata.properties),
        }
        records = self._records(cluster)
        if records is not None:
            copied = copy_manifest(self.io, cluster.path, records, **definition)  # type: ignore[arg-type]
            if copied is not None:
                return copied
        entries = [
            as_existing(every[row])
            for manifest, rows in cluster.sources
            for every in [read_entries(self.io, self.metadata, manifest)]
            for row in rows
        ]
        return avro.write_manifest(self.io, cluster.path, entries, **definition)  # type: ignore[arg-type]

    def _records(self, cluster: ManifestCluster) -> list[CarriedEntries] | None:
        """The records of a cluster; a few manifests at a time are in memory as a whole."""
        files = ManifestFiles(self.io)
        manifests = [manifest for manifest, _ in cluster.sources]
        found: list[CarriedEntries] = []
        for batch in manifest_batches(manifests, range(len(manifests))):
            opened = files.opened(self.metadata, [manifests[index] for index in batch])
            for index, source in zip(batch, opened, strict=True):
                some = only_rows(source, cluster.sources[index][1])
                if some is None:
                    return None
                found.append(some)
        return found


WriteClusters: TypeAlias = Callable[
    [ClusterWriter, Sequence[ManifestCluster]], Sequence[ManifestFile]
]
"""Writes the new manifests somewhere, and returns them in the order of the clusters."""


def partitions_of(
    io: FileIO, metadata: TableMetadata, manifests: Sequence[ManifestFile], columns: Sequence[str]
) -> Iterator[pl.DataFrame]:
    """Yield each manifest's statuses and partition columns; no more than these is kept."""
    loader = ManifestLoader.of(metadata, io)
    for batch in manifest_batches(manifests, range(len(manifests))):
        for frame in loader.entries([manifests[index] for index in batch]):
            yield frame.select("status", *(name for name in columns if name in frame.columns))


def live_rows(frames: Iterator[pl.DataFrame], columns: Sequence[str], count: int) -> pl.DataFrame:
    """The live entries of manifests in the order of their partitions, in clusters of one size.

    Args:
        frames: of each manifest, with `status` and partition columns.
        columns: of partition fields, the most important one first.
        count: of clusters.

    Returns:
        `cluster`, `source` (the number of the manifest) and `row`.
    """
    numbered = [
        frame.select(
            pl.lit(number, pl.Int32).alias("source"),
            pl.row_index("row"),
            "status",
            *(column for column in columns if column in frame.columns),
        )
        for number, frame in enumerate(frames)
    ]
    together = pl.concat(numbered, how="diagonal_relaxed")
    live = together.filter(pl.col("status") != int(EntryStatus.DELETED))
    keys = [column for column in columns if column in live.columns]
    ordered = live.sort(keys, nulls_last=False, maintain_order=True) if keys else live
    size = max(1, len(ordered))
    cluster = pl.int_range(len(ordered), dtype=pl.Int64, eager=True) * count // size
    return ordered.select(cluster.alias("cluster"), "source", "row")
