"""What a lake keeps of files that never change, in one bounded cache for each purpose.

The caches go with the lake's `FileIO`, so every table and operation of the lake uses the same ones,
and no other lake sees what was read by its paths and credentials. Within the lake a value goes by
the file that it is of, whichever table's credentials it was read with. Their sizes are properties
(`CACHE_SIZES`), which the environment sets first.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final, Generic, TypeVar
from weakref import WeakValueDictionary

from frazil.format.properties.kinds import LONG_MAX, Property, whole_number

Value = TypeVar("Value")
Part = TypeVar("Part", bound=Hashable)

_MEBIBYTE: Final = 1 << 20
_BYTES: Final = whole_number("bytes", largest=LONG_MAX)

CACHE_SIZES: Final[Mapping[str, Property[int]]] = {
    name: Property(f"cache.{name}-bytes", _BYTES, default)
    for name, default in {
        "manifests": 512 * _MEBIBYTE,
        "deletes": 256 * _MEBIBYTE,
        "bitmaps": 64 * _MEBIBYTE,
        "footers": 64 * _MEBIBYTE,
        "reads": 256 * _MEBIBYTE,
        "metadata": 64 * _MEBIBYTE,
    }.items()
}
"""The size of each cache, by the cache's name."""


@dataclass(frozen=True, slots=True)
class CacheStatistics:
    """What a cache holds and how often it helped.

    Attributes:
        entries: how many values are kept.
        size_in_bytes: of all of them.
        max_bytes: the bound.
        hits: look-ups that found a value.
        misses: look-ups that found none.
    """

    entries: int
    size_in_bytes: int
    max_bytes: int
    hits: int
    misses: int


@dataclass(frozen=True, slots=True)
class Sized(Generic[Value]):
    """A value with the memory that it takes.

    Attributes:
        value: what is kept.
        size: bytes of its own.
        parts: what it shares with other values, each with its bytes, which count once.
    """

    value: Value
    size: int
    parts: tuple[tuple[Hashable, int], ...] = ()


@dataclass(slots=True)
class _SharedPart:
    part: Hashable
    size: int
    holders: int


class BoundedCache(Generic[Value]):
    """Values by key; the least recently used make room for new ones. Safe under threads.

    Args:
        max_bytes: the size of everything kept; 0 keeps nothing.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._lock = Lock()
        self._items: OrderedDict[Hashable, Sized[Value]] = OrderedDict()
        self._parts: dict[Hashable, _SharedPart] = {}
        self._size = self._hits = self._misses = 0

    @property
    def max_bytes(self) -> int:
        """The bound."""
        return self._max_bytes

    @property
    def size_in_bytes(self) -> int:
        """The size of what is kept."""
        return self._size

    @property
    def statistics(self) -> CacheStatistics:
        """What is kept, and hits and misses since the start."""
        with self._lock:
            return CacheStatistics(
                len(self._items), self._size, self._max_bytes, self._hits, self._misses
            )

    def get(self, key: Hashable) -> Value | None:
        """Return what is kept under the key, which counts as used now, or None."""
        with self._lock:
            found = self._items.get(key)
            if found is None:
                self._misses += 1
                return None
            self._hits += 1
            self._items.move_to_end(key)
            return found.value

    def put(self, key: Hashable, value: Value, size: int) -> None:
        """Keep a value of `size` bytes in place of the one before; not if it is over the bound."""
        self.change(key, lambda _: Sized(value, size))

    def change(self, key: Hashable, make: Callable[[Value | None], Sized[Value]]) -> None:
        """Keep what is made of the value before, of None where there is none.

        The cache is locked meanwhile, so `make` must be quick.
        """
        with self._lock:
            before = self._items.pop(key, None)
            made = make(None if before is None else before.value)
            # Held before the old one is released, so that parts in both stay the same objects.
            self._hold(made)
            if before is not None:
                self._release(before)
            if made.size + sum(size for _, size in made.parts) > self._max_bytes:
                self._release(made)
                return
            self._items[key] = made
            self._make_room()

    def remove(self, key: Hashable) -> None:
        """Forget what is kept under the key; nothing happens where nothing is."""
        with self._lock:
            before = self._items.pop(key, None)
            if before is not None:
                self._release(before)

    def shared_part(self, part: Part) -> Part:
        """Return the part that kept values hold and that equals this one, or this one.

        Only for use within `change`.
        """
        found = self._parts.get(part)
        return part if found is None else found.part  # type: ignore[return-value]

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._items.clear()
            self._parts.clear()
            self._size = 0

    def resize(self, max_bytes: int) -> None:
        """Change the bound; what no longer fits is forgotten at once."""
        with self._lock:
            self._max_bytes = max_bytes
            self._make_room()

    def _hold(self, item: Sized[Value]) -> None:
        self._size += item.size
        for part, size in item.parts:
            shared = self._parts.get(part)
            if shared is None:
                self._parts[part] = _SharedPart(part, size, 1)
                self._size += size
            else:
                shared.holders += 1

    def _release(self, item: Sized[Value]) -> None:
        self._size -= item.size
        for part, _ in item.parts:
            shared = self._parts[part]
            shared.holders -= 1
            if not shared.holders:
                del self._parts[part]
                self._size -= shared.size

    def _make_room(self) -> None:
        while self._size > self._max_bytes and self._items:
            self._release(self._items.popitem(last=False)[1])


class Caches:
    """The caches of one lake, by the names of `CACHE_SIZES`. Safe under threads.

    Args:
        properties: sizes by the names of the properties; others are left alone. What they do not
            state, the environment does.

    Attributes:
        held_metadata: metadata by its keys in the cache, for as long as somebody else holds it. So
            metadata that is too large to be kept is parsed once while it is in use.

    Raises:
        ConfigurationError: a size is not a number of bytes.
    """

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        stated = {**_from_environment(), **(properties or {})}
        self._of_name: dict[str, BoundedCache[Any]] = {
            name: BoundedCache(size.of(stated)) for name, size in CACHE_SIZES.items()
        }
        self.held_metadata: WeakValueDictionary[Hashable, Any] = WeakValueDictionary()

    def __getitem__(self, name: str) -> BoundedCache[Any]:
        """Return the cache of a name."""
        return self._of_name[name]

    def resize(self, properties: Mapping[str, str]) -> None:
        """Change the sizes that properties name; what no longer fits is forgotten at once."""
        stated = {name: size for name, size in CACHE_SIZES.items() if size.name in properties}
        wanted = {name: size.of(properties) for name, size in stated.items()}
        for name, max_bytes in wanted.items():
            self._of_name[name].resize(max_bytes)

    def clear(self) -> None:
        """Forget everything."""
        for cache in self._of_name.values():
            cache.clear()
        self.held_metadata.clear()

    @property
    def statistics(self) -> dict[str, CacheStatistics]:
        """What each cache holds, by its name."""
        return {name: cache.statistics for name, cache in self._of_name.items()}


def _from_environment() -> dict[str, str]:
    variables = {f"FRAZIL_CACHE_{name.upper()}_BYTES": size for name, size in CACHE_SIZES.items()}
    return {size.name: os.environ[v] for v, size in variables.items() if v in os.environ}
