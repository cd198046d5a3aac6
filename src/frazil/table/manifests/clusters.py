"""Entries of many manifests as other manifests, each of which can be written by itself.

Each manifest is read once, and gives each new one a piece: its entries for it, as a manifest of
their own.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import polars as pl

from frazil.format.manifests import (
    EntryStatus,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from frazil.format.metadata import TableMetadata
from frazil.planning.load import FILES_AT_ONCE, ManifestLoader, batches_of_files
from frazil.storage import avro
from frazil.storage.avro.manifest_copy import copied_bytes, only_rows
from frazil.storage.files import FileIO
from frazil.table.manifests.files import as_existing, carried_whole, entries_in, manifest_definition


@dataclass(frozen=True, slots=True)
class ClusterOrder:
    """The order of many manifests' live entries, which clusters of one size are cut from.

    Entries are ordered by their partitions, then by their manifests, then as they stand there.

    Attributes:
        columns: of partition fields, the most important one first.
        entries: how many there are.
        clusters: how many are cut.
    """

    columns: Sequence[str]
    entries: int
    clusters: int

    def clusters_of(self, entries: pl.DataFrame, starts: Sequence[int]) -> pl.DataFrame:
        """Return `row` and `cluster` of the live entries of a manifest, by cluster and row.

        Args:
            entries: of the manifest.
            starts: of each partition of it, in their order, the place of its first entry.
        """
        found = _by_partition(entries, self.columns)
        begins = pl.Series("start", starts, pl.Int64)
        nth = pl.int_range(pl.len(), dtype=pl.Int64).over("partition")
        place = pl.lit(begins).gather(pl.col("partition")) + nth
        cluster = (place * self.clusters // max(self.entries, 1)).alias("cluster")
        return found.select("row", cluster).sort("cluster", "row")


@dataclass(frozen=True, slots=True)
class ManifestClusters:
    """What new manifests are made of.

    Attributes:
        paths: of the new manifests.
        sources: manifests that give them entries.
        order: of all entries.
        starts: of each source, as `ClusterOrder.clusters_of` takes them: a number a partition.
    """

    paths: Sequence[str]
    sources: Sequence[ManifestFile]
    order: ClusterOrder
    starts: Sequence[Sequence[int]]


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
        self, source: ManifestFile, order: ClusterOrder, starts: Sequence[int]
    ) -> Iterator[tuple[int, bytes]]:
        """Read a manifest and yield what it gives to each new one.

        Yields the number of a new manifest, and the bytes of its piece; `order` and `starts` say
        which entries go where.
        """
        path = source.manifest_path
        data = self.io.read(path)
        [opened] = carried_whole(self.metadata, [(source, data)])
        entries: list[ManifestEntry] | None = None
        for number, rows in rows_by_cluster(order.clusters_of(opened.entries, starts)):
            some = only_rows(opened, rows)
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
        return manifest_definition(self.metadata, self.spec_id, self.content, self.snapshot_id)


WriteClusters: TypeAlias = Callable[[ClusterWriter, ManifestClusters], Sequence[ManifestFile]]
"""Writes the new manifests somewhere, and returns them in the order of their paths."""


def write_here(writer: ClusterWriter, clusters: ManifestClusters) -> list[ManifestFile]:
    """Write the new manifests in this process."""
    pieces: dict[int, list[bytes]] = defaultdict(list)
    for source, starts in zip(clusters.sources, clusters.starts, strict=True):
        for cluster, piece in writer.pieces(source, clusters.order, starts):
            pieces[cluster].append(piece)
    return [writer.write(path, pieces[number]) for number, path in enumerate(clusters.paths)]


def partitions_of(
    io: FileIO, metadata: TableMetadata, manifests: Sequence[ManifestFile], columns: Sequence[str]
) -> Iterator[pl.DataFrame]:
    """Yield each manifest's statuses and partition columns; no more than these is kept."""
    loader = ManifestLoader.of(metadata, io)
    keep = loader.has_room(manifests)
    for batch in batches_of_files(manifests):
        for frame in loader.entries(batch, keep=keep):
            yield frame.select("status", *(name for name in columns if name in frame.columns))


def cluster_order(
    frames: Iterable[pl.DataFrame], columns: Sequence[str], count: int
) -> tuple[ClusterOrder, list[list[int]]]:
    """Return the order of the live entries of manifests, and the starts of each manifest.

    One row is kept for each partition of a manifest, so that many entries of few partitions take no
    memory. `columns` begin with the most important one. There are more clusters than `count` where
    they would have more than `FILES_AT_ONCE` entries, and fewer where there are fewer entries.
    """
    counted: list[pl.DataFrame] = []
    sources = 0
    for frame in frames:
        found = _by_partition(frame, columns)
        firsts = [pl.col(name).first() for name in columns if name in found.columns]
        counts = found.group_by("partition", maintain_order=True).agg(
            pl.lit(sources, pl.Int32).alias("source"), pl.len().cast(pl.Int64), *firsts
        )
        counted.append(counts)
        sources += 1
    together = pl.concat([pl.DataFrame(schema=_COUNTED), *counted], how="diagonal_relaxed")
    keys = [name for name in columns if name in together.columns]
    ordered = together.sort(keys, nulls_last=False, maintain_order=True) if keys else together
    start = pl.col("len").cum_sum() - pl.col("len")
    by_source = (
        ordered.select("source", "partition", start.alias("start"))
        .sort("source", "partition")
        .group_by("source", maintain_order=True)
        .agg("start")
    )
    starts: list[list[int]] = [[] for _ in range(sources)]
    for source, of_source in by_source.iter_rows():
        starts[source] = of_source
    entries = int(together["len"].sum())
    clusters = min(max(count, -(-entries // FILES_AT_ONCE)), entries)
    return ClusterOrder(tuple(columns), entries, clusters), starts


def rows_by_cluster(found: pl.DataFrame) -> Iterator[tuple[int, pl.Series]]:
    """Yield the number of each cluster with the rows that a manifest gives it."""
    for (number,), members in found.group_by("cluster", maintain_order=True):
        yield int(str(number)), members["row"]


_COUNTED: Final = {"partition": pl.Int64(), "source": pl.Int32(), "len": pl.Int64()}


def _by_partition(entries: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """The live entries of a manifest in the order of their partitions, which are numbered.

    Returns:
        `row`, the place in the manifest, `partition`, a number from 0 without a gap, and those of
        the columns that the entries have.
    """
    keys = [name for name in columns if name in entries.columns]
    live = entries.select(pl.int_range(pl.len(), dtype=pl.Int64).alias("row"), "status", *keys)
    live = live.filter(pl.col("status") != int(EntryStatus.DELETED)).drop("status")
    if not keys:
        return live.with_columns(pl.lit(0, pl.Int64).alias("partition"))
    ordered = live.sort(keys, nulls_last=False, maintain_order=True)
    is_next = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift()) for name in keys)
    number = is_next.cast(pl.Int64).cum_sum()
    return ordered.with_columns((number - number.first()).alias("partition"))
