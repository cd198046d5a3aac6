"""Decoded manifests, manifest lists and plans of whole snapshots in memory, bounded in bytes.

They come from immutable files, so what was made once never goes stale; it only makes room.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from threading import Lock

import polars as pl

from frazil.format.manifests import ManifestFile
from frazil.format.partitions.partitioning import PartitionSpec
from frazil.format.schema import Schema
from frazil.planning.scan_plan import ScanPlan
from frazil.storage.files import FileIO

DEFAULT_MAX_BYTES = 512 * 1024 * 1024
_BYTES_PER_LISTED_MANIFEST = 1024
_SHARE_OF_A_PLAN = 16


@dataclass(frozen=True, slots=True)
class CacheStatistics:
    """What a cache holds and how often it helped."""

    entries: int
    size_in_bytes: int
    max_bytes: int
    hits: int
    misses: int


class ManifestCache:
    """The least recently used manifests make room for new ones; safe to share between threads.

    Args:
        max_bytes: the size of everything kept; 0 keeps nothing.
    """

    def __init__(self, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._lock = Lock()
        self._items: OrderedDict[Hashable, tuple[object, int]] = OrderedDict()
        self._size = self._hits = self._misses = 0

    def manifest(self, key: Hashable) -> pl.DataFrame | None:
        """The decoded entries of a manifest, or None."""
        found = self._get(("manifest", key))
        return found if isinstance(found, pl.DataFrame) else None

    def keep_manifest(self, key: Hashable, entries: pl.DataFrame) -> None:
        """Keep the decoded entries of a manifest, in place of those kept before."""
        self._put(("manifest", key), entries, int(entries.estimated_size()))

    def manifest_list(self, key: Hashable) -> tuple[ManifestFile, ...] | None:
        """The manifests of a snapshot, or None."""
        found = self._get(("list", key))
        return found if isinstance(found, tuple) else None

    def keep_manifest_list(self, key: Hashable, manifests: tuple[ManifestFile, ...]) -> None:
        """Keep the manifests of a snapshot."""
        self._put(("list", key), manifests, len(manifests) * _BYTES_PER_LISTED_MANIFEST)

    def plan(
        self, key: Hashable, schemas: Sequence[Schema], specs: Sequence[PartitionSpec]
    ) -> ScanPlan | None:
        """The plan of a whole snapshot by the first of these schemas, made with these, or None."""
        found = self._get(("plan", key))
        if not isinstance(found, tuple) or found[1:] != (tuple(schemas), tuple(specs)):
            return None
        plan = found[0]
        return plan if isinstance(plan, ScanPlan) else None

    def keep_plan(
        self,
        key: Hashable,
        schemas: Sequence[Schema],
        specs: Sequence[PartitionSpec],
        plan: ScanPlan,
    ) -> None:
        """Keep the plan of a whole snapshot, unless it would take the room of many manifests."""
        size = sum(int(f.estimated_size()) for f in (plan.files, plan.deletes, plan.pairs))
        if size <= self._max_bytes // _SHARE_OF_A_PLAN:
            self._put(("plan", key), (plan, tuple(schemas), tuple(specs)), size)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._items.clear()
            self._size = 0

    def resize(self, max_bytes: int) -> None:
        """Change the bound; what no longer fits is forgotten at once."""
        with self._lock:
            self._max_bytes = max_bytes
            self._make_room()

    @property
    def statistics(self) -> CacheStatistics:
        """What is kept, and hits and misses since the start."""
        with self._lock:
            return CacheStatistics(
                len(self._items), self._size, self._max_bytes, self._hits, self._misses
            )

    def _get(self, key: Hashable) -> object | None:
        with self._lock:
            item = self._items.get(key)
            if item is None:
                self._misses += 1
                return None
            self._hits += 1
            self._items.move_to_end(key)
            return item[0]

    def _put(self, key: Hashable, value: object, size: int) -> None:
        if size > self._max_bytes:
            return
        with self._lock:
            before = self._items.pop(key, None)
            if before is not None:
                self._size -= before[1]
            self._items[key] = (value, size)
            self._size += size
            self._make_room()

    def _make_room(self) -> None:
        while self._size > self._max_bytes and self._items:
            _, (_, size) = self._items.popitem(last=False)
            self._size -= size


def store_key(io: FileIO) -> str:
    """What tells apart files of one path in different stores; no credential can be read from it."""
    moved = getattr(io, "moved", {})
    told = repr((sorted(io.properties.items()), sorted(moved.items())))
    return hashlib.sha256(told.encode()).hexdigest()


MANIFESTS = ManifestCache()
"""The cache of this process."""


def clear_cache() -> None:
    """Forget every decoded manifest of this process."""
    MANIFESTS.clear()
