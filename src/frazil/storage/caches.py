"""What a lake keeps of files that never change, in one bounded cache for each purpose.

The caches go with the lake's `FileIO`, so every table and operation of the lake uses the same ones,
and no other lake sees what was read by its paths and credentials. Their sizes are properties
(`CACHE_SIZES`), which the environment sets first.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from frazil.format.property_kinds import LONG_MAX, Property, whole_number
from frazil.storage.bounded_cache import BoundedCache, CacheStatistics

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


class Caches:
    """The caches of one lake, by the names of `CACHE_SIZES`. Safe under threads.

    Args:
        properties: sizes by the names of the properties; others are left alone. What they do not
            state, the environment does.

    Raises:
        ConfigurationError: a size is not a number of bytes.
    """

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        stated = {**_from_environment(), **(properties or {})}
        self._of_name: dict[str, BoundedCache[Any]] = {
            name: BoundedCache(size.of(stated)) for name, size in CACHE_SIZES.items()
        }

    def __getitem__(self, name: str) -> BoundedCache[Any]:
        """Return the cache of a name."""
        return self._of_name[name]

    def resize(self, properties: Mapping[str, str]) -> None:
        """Change the sizes that properties name; what no longer fits is forgotten at once.

        Raises:
            ConfigurationError: one is not a number of bytes; no size is changed then.
        """
        stated = {name: size for name, size in CACHE_SIZES.items() if size.name in properties}
        wanted = {name: size.of(properties) for name, size in stated.items()}
        for name, max_bytes in wanted.items():
            self._of_name[name].resize(max_bytes)

    def clear(self) -> None:
        """Forget everything."""
        for cache in self._of_name.values():
            cache.clear()

    @property
    def statistics(self) -> dict[str, CacheStatistics]:
        """What each cache holds, by its name."""
        return {name: cache.statistics for name, cache in self._of_name.items()}


def _from_environment() -> dict[str, str]:
    variables = {f"FRAZIL_CACHE_{name.upper()}_BYTES": size for name, size in CACHE_SIZES.items()}
    return {size.name: os.environ[v] for v, size in variables.items() if v in os.environ}
