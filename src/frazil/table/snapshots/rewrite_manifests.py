"""RewriteManifests: the same entries in other manifests, each of which holds few partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from frazil.errors import ValidationError
from frazil.format.manifests import ManifestContent, ManifestFile
from frazil.format.metadata import TableMetadata
from frazil.format.partitions.partitioning import PartitionSpec
from frazil.format.properties.table import MANIFEST_TARGET_SIZE
from frazil.format.snapshots import REPLACE, Snapshot
from frazil.storage.avro.manifest_copy import CarriedEntries, Carry
from frazil.storage.avro.manifest_layout import PARTITION_PREFIX
from frazil.storage.files import FileIO
from frazil.table.commit.kept import KeptBetweenTries
from frazil.table.commit.operation import Changes
from frazil.table.manifests.clusters import (
    ClusterWriter,
    ManifestClusters,
    WriteClusters,
    cluster_order,
    partitions_of,
    rows_by_cluster,
    write_here,
)
from frazil.table.snapshots.producer import (
    DEFAULT_OPTIONS,
    SnapshotOptions,
    SnapshotProducer,
    summarize,
)


def always_small(manifests: Sequence[ManifestFile]) -> bool:
    """Say that any manifests can be rewritten in this process, all at once."""
    return True


def tell_nobody(done: int, count: int) -> None:
    """Do nothing with how far it is."""


class RewriteManifests(SnapshotProducer):
    """Cluster the entries of one spec's manifests by partition, in manifests of the target size.

    Manifests that others add meanwhile stay as they are. Where nothing would be won, there is no
    snapshot.

    Args:
        spec_id: the spec whose manifests are rewritten; the current one unless given.
        sort_by: names of partition fields, the most important one first; all of the spec's, in
            their order, unless given.
        is_small: whether these manifests are rewritten here, all of them in memory.
        write: writes the new manifests of others.
        on_read: called with how many manifests are read, and of how many, where they are many.
    """

    def __init__(
        self,
        io: FileIO,
        *,
        spec_id: int | None = None,
        sort_by: Sequence[str] = (),
        is_small: Callable[[Sequence[ManifestFile]], bool] = always_small,
        write: WriteClusters = write_here,
        on_read: Callable[[int, int], None] = tell_nobody,
        options: SnapshotOptions = DEFAULT_OPTIONS,
    ) -> None:
        super().__init__(io, options)
        self._spec_id = spec_id
        self._sort_by = tuple(sort_by)
        self._is_small = is_small
        self._write_clusters = write
        self._on_read = on_read
        self._written = KeptBetweenTries[list[ManifestFile]]()
        self.rewritten: tuple[ManifestFile, ...] = ()
        self.added: tuple[ManifestFile, ...] = ()

    def changes(self, base: TableMetadata, *, committed: TableMetadata | None = None) -> Changes:
        """Return one more snapshot, or nothing where no manifest is worth a rewrite."""
        parent = self.head(base)
        if not any(self._chosen_manifests(base, parent, content) for content in ManifestContent):
            return Changes.of(base, ())
        return super().changes(base, committed=committed)

    def manifests(self, base: TableMetadata, parent: Snapshot | None) -> Sequence[ManifestFile]:
        """The new manifests and those that stay, data before deletes."""
        existing = self.files.manifests_of(parent)
        result: list[ManifestFile] = []
        rewritten: list[ManifestFile] = []
        added: list[ManifestFile] = []
        for content in (ManifestContent.DATA, ManifestContent.DELETES):
            chosen = self._chosen_manifests(base, parent, content)
            new = self._cluster_manifests(base, chosen, content) if chosen else []
            gone = {manifest.manifest_path for manifest in chosen}
            result += new
            result += (
                manifest
                for manifest in existing
                if manifest.content is content and manifest.manifest_path not in gone
            )
            rewritten += chosen
            added += new
        self.rewritten, self.added = tuple(rewritten), tuple(added)
        return result

    def summary(self, base: TableMetadata, parent: Snapshot | None) -> Mapping[str, str]:
        """Counts of manifests and entries, and the totals as they were."""
        kept = len(self.files.manifests_of(parent)) - len(self.rewritten)
        return {
            **summarize(REPLACE, metadata=base, parent=parent, added=(), removed=()),
            "manifests-created": str(len(self.added)),
            "manifests-kept": str(kept),
            "manifests-replaced": str(len(self.rewritten)),
            "entries-processed": str(
                sum(
                    ((manifest.added_files_count or 0) + (manifest.existing_files_count or 0))
                    for manifest in self.added
                )
            ),
        }

    def _chosen_manifests(
        self, base: TableMetadata, parent: Snapshot | None, content: ManifestContent
    ) -> list[ManifestFile]:
        """The manifests of one content to rewrite; a single one of a good size is left.

        One that tells of removed files is not left: their bounds and partitions go then.
        """
        spec = base.spec if self._spec_id is None else base.spec_by_id(self._spec_id)
        found = [
            manifest
            for manifest in self.files.manifests_of(parent)
            if manifest.content is content and manifest.partition_spec_id == spec.spec_id
        ]
        size = sum(manifest.manifest_length for manifest in found)
        is_good = (
            len(found) < 2
            and size <= MANIFEST_TARGET_SIZE.of(base.properties)
            and all(manifest.deleted_files_count == 0 for manifest in found)
        )
        return [] if is_good else found

    def _cluster_manifests(
        self, base: TableMetadata, chosen: Sequence[ManifestFile], content: ManifestContent
    ) -> list[ManifestFile]:
        size = sum(manifest.manifest_length for manifest in chosen)
        count = -(-size // MANIFEST_TARGET_SIZE.of(base.properties))
        return list(
            self._written.get_or_make(
                base, (content, tuple(chosen)), lambda: self._write(base, chosen, content, count)
            )
        )

    def _write(
        self,
        base: TableMetadata,
        chosen: Sequence[ManifestFile],
        content: ManifestContent,
        count: int,
    ) -> list[ManifestFile]:
        spec = base.spec_by_id(chosen[0].partition_spec_id)
        columns = partition_columns(spec, self._sort_by)
        if not self._is_small(chosen):
            return self._write_apart(base, chosen, content, columns, count)
        opened = self.files.open_manifests(base, chosen)
        return [
            self.files.carry(
                base,
                sources,
                spec_id=spec.spec_id,
                content=content,
                snapshot_id=self.snapshot_id,
            )
            for sources in _clusters(opened, columns, count)
        ]

    def _write_apart(
        self,
        base: TableMetadata,
        chosen: Sequence[ManifestFile],
        content: ManifestContent,
        columns: Sequence[str],
        count: int,
    ) -> list[ManifestFile]:
        """Only partitions are read here, then each manifest once by whoever writes the new ones."""
        frames = partitions_of(self.files.io, base, chosen, columns)
        order, starts = cluster_order(self._tell_progress(frames, len(chosen)), columns, count)
        if not order.entries:
            return []
        paths = [self.files.reserved_path(base) for _ in range(order.clusters)]
        writer = ClusterWriter.of(
            self.files.io,
            base,
            spec_id=chosen[0].partition_spec_id,
            content=content,
            snapshot_id=self.snapshot_id,
        )
        clusters = ManifestClusters(paths, chosen, order, starts)
        return list(self._write_clusters(writer, clusters))

    def _tell_progress(self, frames: Iterable[pl.DataFrame], count: int) -> Iterator[pl.DataFrame]:
        for done, frame in enumerate(frames, start=1):
            yield frame
            self._on_read(done, count)


def partition_columns(spec: PartitionSpec, names: Sequence[str]) -> list[str]:
    """Return the columns of entries that hold partition fields, by the names of the fields."""
    by_name = {field.name: f"{PARTITION_PREFIX}{field.field_id}" for field in spec.fields}
    for name in names:
        if name not in by_name:
            raise ValidationError(
                f"partition spec {spec.spec_id} has no field {name!r}; it has "
                f"{', '.join(by_name) or 'none'}"
            )
    return [by_name[name] for name in names] or list(by_name.values())


def _clusters(
    opened: Sequence[CarriedEntries], columns: Sequence[str], count: int
) -> Iterator[list[CarriedEntries]]:
    """The entries of each new manifest: neighbours by partition, about as many each."""
    order, starts = cluster_order((source.entries for source in opened), columns, count)
    taken: list[list[CarriedEntries]] = [[] for _ in range(order.clusters)]
    for source, of_source in zip(opened, starts, strict=True):
        for number, rows in rows_by_cluster(order.clusters_of(source.entries, of_source)):
            taken[number].append(_carried_rows(source, rows))
    yield from taken


def _carried_rows(source: CarriedEntries, rows: pl.Series) -> CarriedEntries:
    """Some entries of a manifest."""
    carry = np.full(len(source.entries), int(Carry.DROPPED), dtype=np.int8)
    carry[rows.to_numpy()] = int(Carry.EXISTING)
    return replace(source, carry=pl.Series(carry))
