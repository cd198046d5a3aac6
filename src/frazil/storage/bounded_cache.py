"""A cache that is bounded in bytes; a lake's own ones are in `frazil.storage.caches`."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from threading import Lock
from typing import Generic, TypeVar

Value = TypeVar("Value")
Part = TypeVar("Part", bound=Hashable)


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
        """Keep a value of so many bytes in place of the one before; not if it is over the bound."""
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
            if self._cost_alone(made) > self._max_bytes:
                self._release(made)
                return
            self._items[key] = made
            self._make_room()

    def shared(self, part: Part) -> Part:
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

    @staticmethod
    def _cost_alone(item: Sized[Value]) -> int:
        return item.size + sum(size for _, size in item.parts)

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
