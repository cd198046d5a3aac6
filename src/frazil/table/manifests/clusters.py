"""Entries of many manifests as other manifests, each of which can be written by itself.

Each manifest is read once, and gives each new one a piece: its entries for it, as a manifest of
their own.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import polars as pl

from frazil.format.manifests import (
    EntryStatus,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from frazil.format.metadata import TableMetadata
from frazil.format.properties.table import MANIFEST_CODEC
from frazil.planning.load import ManifestLoader, manifest_batches
from frazil.storage import avro
from frazil.storage.avro.manifest_copy import copied_bytes, only_rows
from frazil.storage.files import FileIO
from frazil.table.manifests.files import as_existing, carried_whole, entries_in


@dataclass(frozen=True)
class ManifestClusters:
    """What new manifests are made of.

    Attributes:
        paths: of the new manifests.
        sources: manifests that give them entries.
        rows: one row an entry: `cluster` and `source`, numbers of those two, and `row`, its
            number in its manifest.
    """

    paths: Sequence[str]
    sources: Sequence[ManifestFile]
    rows: pl.DataFrame

    def by_source(self) -> pl.DataFrame:
        """Return one row for each source: `source`, and `taken`, a list of `cluster` and `rows`."""
        pieces = self.rows.group_by("source", "cluster", maintain_order=True).agg(
            pl.col("row").sort().alias("rows")
        )
        taken = pl.struct("cluster", "rows").alias("taken")
        return pieces.group_by("source", maintain_order=True).agg(taken)


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

    def pieces(
        self, source: ManifestFile, taken: Iterable[tuple[int, Sequence[int]]]
    ) -> Iterator[tuple[int, bytes]]:
        """Read a manifest and yield what it gives to each new one.

        Yields the number of a new manifest, and the bytes of its piece; `taken` are such numbers
        with the rows of their entries.
        """
        path = source.manifest_path
        data = self.io.read(path)
        [opened] = carried_whole(self.metadata, [(source, data)])
        entries: list[ManifestEntry] | None = None
        for number, rows in taken:
            some = only_rows(opened, pl.Series(rows, dtype=pl.Int64))
            piece = None if some is None else copied_bytes(path, [some], **self._definition)
            if piece is None:
                if entries is None:
                    entries = entries_in(self.metadata, opened)
                existing = [as_existing(entries[row]) for row in rows]
                piece = avro.manifest_bytes(path, existing, **self._definition)
            yield number, piece[1]

    def write(self, path: str, pieces: Sequence[bytes]) -> ManifestFile:
        """Write one new manifest of its pieces; a second try writes the same."""
        files = [(self._manifest_of(path, piece), piece) for piece in pieces]
        opened = carried_whole(self.metadata, files)
        written = copied_bytes(path, opened, **self._definition)
        if written is None:
            entries = [entry for each in opened for entry in entries_in(self.metadata, each)]
            written = avro.manifest_bytes(path, entries, **self._definition)
        manifest, data = written
        self.io.create_unique(path, data)
        return manifest

    def _manifest_of(self, path: str, piece: bytes) -> ManifestFile:
        """A piece as a list would state it; its entries say themselves all that they are."""
        return ManifestFile(
            manifest_path=path,
            manifest_length=len(piece),
            partition_spec_id=self.spec_id,
            content=self.content,
        )

    @property
    def _definition(self) -> avro.ManifestDefinition:
        return {
            "spec": self.metadata.spec_by_id(self.spec_id),
            "schema": self.metadata.schema,
            "format_version": self.metadata.format_version,
            "content": self.content,
            "snapshot_id": self.snapshot_id,
            "codec": MANIFEST_CODEC.of(self.metadata.properties),
        }


WriteClusters: TypeAlias = Callable[[ClusterWriter, ManifestClusters], Sequence[ManifestFile]]
"""Writes the new manifests somewhere, and returns them in the order of their paths."""


def write_here(writer: ClusterWriter, clusters: ManifestClusters) -> list[ManifestFile]:
    """Write the new manifests in this process."""
    pieces: dict[int, list[bytes]] = defaultdict(list)
    for number, taken in clusters.by_source().iter_rows():
        told = [(each["cluster"], each["rows"]) for each in taken]
        for cluster, piece in writer.pieces(clusters.sources[number], told):
            pieces[cluster].append(piece)
    return [writer.write(path, pieces[number]) for number, path in enumerate(clusters.paths)]


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

    Returns `cluster` (numbers without a gap), `source` (the number of the manifest) and `row`; the
    most important of the columns comes first.
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
    cluster = pl.int_range(len(ordered), dtype=pl.Int64, eager=True) * min(count, size) // size
    return ordered.select(cluster.alias("cluster"), "source", "row")
