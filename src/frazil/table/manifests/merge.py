"""ManifestMerger: fewer, larger manifests, so that planning opens fewer files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

import polars as pl

from frazil.format.manifests import EntryStatus, ManifestFile
from frazil.format.metadata import TableMetadata
from frazil.format.properties.table import (
    MANIFEST_MERGE,
    MANIFEST_MIN_COUNT,
    MANIFEST_TARGET_SIZE,
)
from frazil.storage.avro.manifest_copy import CarriedEntries, Carry
from frazil.table.commit.kept import KeptBetweenTries
from frazil.table.manifests.files import ManifestFiles


class ManifestMerger:
    """Merges manifests of one content into bins of the target size, one spec a bin (rule 103).

    The bin with the newest manifest is merged only when it holds `min-count-to-merge` manifests, so
    that a small commit does not rewrite the one before it. Merged manifests are kept
    between the tries of a commit.
    """

    def __init__(self, files: ManifestFiles) -> None:
        self._files = files
        self._merged = KeptBetweenTries[ManifestFile]()
        self.replaced_count = 0

    def merge(
        self, metadata: TableMetadata, manifests: Sequence[ManifestFile], snapshot_id: int
    ) -> list[ManifestFile]:
        """The manifests of the new snapshot; `manifests` has the newest first."""
        self.replaced_count = 0
        properties = metadata.properties
        if not manifests or not MANIFEST_MERGE.of(properties):
            return list(manifests)
        target = MANIFEST_TARGET_SIZE.of(properties)
        min_count = MANIFEST_MIN_COUNT.of(properties)
        newest = manifests[0].manifest_path
        by_spec: dict[int, list[ManifestFile]] = {}
        for manifest in manifests:
            by_spec.setdefault(manifest.partition_spec_id, []).append(manifest)
        result: list[ManifestFile] = []
        for spec_id in sorted(by_spec, reverse=True):
            for group in pack_from_the_end(by_spec[spec_id], target):
                holds_newest = any(manifest.manifest_path == newest for manifest in group)
                if len(group) == 1 or (holds_newest and len(group) < min_count):
                    result.extend(group)
                else:
                    result.append(self._merge(metadata, group, snapshot_id))
                    self.replaced_count += len(group)
        return result

    def _merge(
        self, metadata: TableMetadata, group: Sequence[ManifestFile], snapshot_id: int
    ) -> ManifestFile:
        def write() -> ManifestFile:
            opened = self._files.opened(metadata, group)
            return self._files.carry(
                metadata,
                _to_merge(opened, snapshot_id),
                spec_id=group[0].partition_spec_id,
                content=group[0].content,
                snapshot_id=snapshot_id,
            )

        return self._merged.get_or_make(metadata, tuple(group), write)


def pack_from_the_end(
    manifests: Sequence[ManifestFile], target_size: int
) -> list[list[ManifestFile]]:
    """Neighbouring manifests in bins of at most the target size, in the order given.

    Bins are filled from the oldest on, so that the bin that is not full is the newest one and the
    others stay what they are from commit to commit.
    """
    bins: list[list[ManifestFile]] = []
    size = 0
    for manifest in reversed(manifests):
        if not bins or size + manifest.manifest_length > target_size:
            bins.append([])
            size = 0
        bins[-1].append(manifest)
        size += manifest.manifest_length
    return [group[::-1] for group in reversed(bins)]


def _to_merge(sources: Sequence[CarriedEntries], snapshot_id: int) -> list[CarriedEntries]:
    """What becomes of each entry; deletions of older snapshots are dropped."""
    together = pl.concat([each.entries.select("status", "snapshot_id") for each in sources])
    status = pl.col("status")
    mine = pl.col("snapshot_id") == snapshot_id
    carry = together.select(
        pl.when(mine & (status != int(EntryStatus.EXISTING)))
        .then(int(Carry.AS_IT_IS))
        .when(status == int(EntryStatus.DELETED))
        .then(int(Carry.DROPPED))
        .otherwise(int(Carry.EXISTING))
        .cast(pl.Int8)
    ).to_series()
    counts = [len(source.entries) for source in sources]
    return [
        replace(source, carry=carry.slice(offset, count))
        for source, offset, count in zip(
            sources, accumulate(counts, initial=0), counts, strict=False
        )
    ]
