"""Decoded manifests, manifest lists and plans of snapshots in memory, bounded in bytes.

They come from immutable files, so what was made once never goes stale; it only makes room.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from weakref import ref

import polars as pl

from frazil.format.manifests import ManifestFile
from frazil.format.partitions.partitioning import PartitionSpec
from frazil.format.schema import Schema
from frazil.planning.frames import memory_of
from frazil.planning.scan_plan import ScanPlan
from frazil.storage.caches import BoundedCache, CacheStatistics
from frazil.storage.files import FileIO

_BYTES_PER_LISTED_MANIFEST = 768
_BYTES_PER_FIELD_SUMMARY = 256
_SHARE_OF_A_PLAN = 16
_BYTES_OF_A_REFERENCE = 1024


class ManifestCache:
    """Manifests, their lists and plans in a cache that is bounded in bytes.

    Args:
        max_bytes: the size of everything kept; 0 keeps nothing.
        kept: the cache to use, in place of one of that size.
    """

    def __init__(
        self, max_bytes: int = 512 << 20, *, kept: BoundedCache[object] | None = None
    ) -> None:
        self._kept = BoundedCache[object](max_bytes) if kept is None else kept

    @classmethod
    def of(cls, io: FileIO) -> ManifestCache:
        """Return the cache that goes with these files."""
        return cls(kept=io.caches["manifests"])

    @property
    def max_bytes(self) -> int:
        """The size of everything kept."""
        return self._kept.max_bytes

    def manifest(self, key: Hashable) -> pl.DataFrame | None:
        """Return the decoded entries of a manifest, or None."""
        found = self._kept.get(("manifest", key))
        return found if isinstance(found, pl.DataFrame) else None

    def keep_manifest(self, key: Hashable, entries: pl.DataFrame) -> None:
        """Keep the decoded entries of a manifest, in place of those kept before."""
        self._kept.put(("manifest", key), entries, memory_of(entries))

    def manifest_list(self, key: Hashable) -> tuple[ManifestFile, ...] | None:
        """Return the manifests of a snapshot, or None."""
        found = self._kept.get(("list", key))
        return found if isinstance(found, tuple) else None

    def keep_manifest_list(self, key: Hashable, manifests: tuple[ManifestFile, ...]) -> None:
        """Keep the manifests of a snapshot."""
        summaries = sum(len(manifest.partitions or ()) for manifest in manifests)
        size = len(manifests) * _BYTES_PER_LISTED_MANIFEST + summaries * _BYTES_PER_FIELD_SUMMARY
        self._kept.put(("list", key), manifests, size)

    def plan(
        self, key: Hashable, schemas: Sequence[Schema], specs: Sequence[PartitionSpec]
    ) -> ScanPlan | None:
        """The plan of a snapshot by the first of these schemas, made with these, or None."""
        found = self._kept.get(("plan", key))
        if not isinstance(found, tuple) or found[1:] != (tuple(schemas), tuple(specs)):
            return None
        plan = found[0]() if isinstance(found[0], ref) else found[0]
        return plan if isinstance(plan, ScanPlan) else None

    def keep_plan(
        self,
        key: Hashable,
        schemas: Sequence[Schema],
        specs: Sequence[PartitionSpec],
        plan: ScanPlan,
    ) -> None:
        """Keep the plan of a snapshot.

        One that would take the room of many manifests is known as long as somebody else has it.
        """
        size = memory_of_plan(plan)
        held: object = plan
        if size > self._kept.max_bytes // _SHARE_OF_A_PLAN:
            held, size = ref(plan), _BYTES_OF_A_REFERENCE
        self._kept.put(("plan", key), (held, tuple(schemas), tuple(specs)), size)

    def clear(self) -> None:
        """Forget everything."""
        self._kept.clear()

    def resize(self, max_bytes: int) -> None:
        """Change the bound; what no longer fits is forgotten at once."""
        self._kept.resize(max_bytes)

    @property
    def statistics(self) -> CacheStatistics:
        """What is kept, and hits and misses since the start."""
        return self._kept.statistics


def memory_of_plan(plan: ScanPlan) -> int:
    """Return the bytes that the frames of a plan take."""
    return memory_of(plan.files) + memory_of(plan.deletes) + plan.delete_index.size_in_bytes
