"""ManifestMerger: fewer, larger manifests, so that planning opens fewer files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Final

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

_MOST_MANIFESTS: Final = 100
"""Manifests that become one in a commit, unless `min-count-to-merge` asks for more."""

_MOST_ENTRIES: Final = 50_000
"""Entries of those manifests: about half a second, and 100 MB."""


@dataclass(frozen=True, slots=True)
class BinLimits:
    """What manifests of one bin are together, at most; a single one may be more.

    Attributes:
        size: in bytes.
        manifests: how many they are.
        entries: how many they hold, as far as that is known.
    """

    size: int
    manifests: int = _MOST_MANIFESTS
    entries: int = _MOST_ENTRIES

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> BinLimits:
        """Return those of a table with these properties."""
        min_count = MANIFEST_MIN_COUNT.of(properties)
        return cls(MANIFEST_TARGET_SIZE.of(properties), max(_MOST_MANIFESTS, min_count))


class ManifestMerger:
    """Merges manifests of one content into bins of the target size, one spec a bin (rule 103).

    The bin with the newest manifest is merged only when it holds `min-count-to-merge` manifests, so
    that a small commit does not rewrite the one before it. Of the other bins a commit merges the
    one with the most manifests, so that what it takes does not grow with the table; later commits
    merge the others. Merged manifests are kept between the tries of a commit.
    """

    def __init__(self, files: ManifestFiles) -> None:
        self._files = files
        self._merged = KeptBetweenTries[ManifestFile]()

    def merge(
        self, metadata: TableMetadata, manifests: Sequence[ManifestFile], snapshot_id: int
    ) -> list[ManifestFile]:
        """The manifests of the new snapshot; `manifests` has the newest first."""
        properties = metadata.properties
        if not manifests or not MANIFEST_MERGE.of(properties):
            return list(manifests)
        by_spec: dict[int, list[ManifestFile]] = {}
        for manifest in manifests:
            by_spec.setdefault(manifest.partition_spec_id, []).append(manifest)
        limits = BinLimits.of(properties)
        bins = [
            group
            for spec_id in sorted(by_spec, reverse=True)
            for group in pack_from_the_end(by_spec[spec_id], limits)
        ]
        min_count = MANIFEST_MIN_COUNT.of(properties)
        chosen = _bins_to_merge(bins, newest=manifests[0], min_count=min_count)
        result: list[ManifestFile] = []
        for number, group in enumerate(bins):
            if number in chosen:
                result.append(self._merge(metadata, group, snapshot_id))
            else:
                result.extend(group)
        return result

    def _merge(
        self, metadata: TableMetadata, group: Sequence[ManifestFile], snapshot_id: int
    ) -> ManifestFile:
        def write() -> ManifestFile:
            opened = self._files.open_manifests(metadata, group)
            return self._files.carry(
                metadata,
                _to_merge(opened, snapshot_id),
                spec_id=group[0].partition_spec_id,
                content=group[0].content,
                snapshot_id=snapshot_id,
            )

        return self._merged.get_or_make(metadata, tuple(group), write)


def pack_from_the_end(
    manifests: Sequence[ManifestFile], limits: BinLimits
) -> list[list[ManifestFile]]:
    """Neighbouring manifests in bins within the limits, in the order given.

    Bins are filled from the oldest on, so that the bin that is not full is the newest one and the
    others stay what they are from commit to commit.
    """
    bins: list[list[ManifestFile]] = []
    size = entries = 0
    for manifest in reversed(manifests):
        more = _entry_count(manifest)
        if (
            not bins
            or len(bins[-1]) == limits.manifests
            or size + manifest.manifest_length > limits.size
            or entries + more > limits.entries
        ):
            bins.append([])
            size = entries = 0
        bins[-1].append(manifest)
        size += manifest.manifest_length
        entries += more
    return [group[::-1] for group in reversed(bins)]


def _entry_count(manifest: ManifestFile) -> int:
    counts = (
        manifest.added_files_count,
        manifest.existing_files_count,
        manifest.deleted_files_count,
    )
    return sum(count for count in counts if count is not None)


def _bins_to_merge(
    bins: Sequence[Sequence[ManifestFile]], *, newest: ManifestFile, min_count: int
) -> set[int]:
    """The numbers of the bins that one commit merges: the newest if it is due, and one other."""
    path = newest.manifest_path
    with_newest = next(
        number for number, group in enumerate(bins) if any(m.manifest_path == path for m in group)
    )
    chosen = {with_newest} if len(bins[with_newest]) >= max(min_count, 2) else set()
    others = [n for n, group in enumerate(bins) if n != with_newest and len(group) > 1]
    # Of equal ones the oldest, which no commit adds to.
    return chosen | set(sorted(others, key=lambda number: (len(bins[number]), number))[-1:])


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
