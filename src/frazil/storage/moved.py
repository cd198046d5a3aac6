"""Tables that lie elsewhere than their metadata says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from frazil.storage.files import FileIO
from frazil.storage.stores.store import Store, Stores

T = TypeVar("T")


class MovedFileIO(FileIO):
    """A FileIO that finds files under other prefixes than the paths in metadata name.

    Paths keep their written form everywhere (a position delete names its data file by it, SPEC
    rule 226); only the moment of opening a file looks at the new place.

    Args:
        moved: old prefix to new prefix; of several that fit, the longest is taken.
        properties, stores: as of `FileIO`.
    """

    def __init__(
        self,
        moved: Mapping[str, str],
        properties: Mapping[str, str] | None = None,
        *,
        stores: Stores | None = None,
    ) -> None:
        super().__init__(properties, stores=stores)
        self.moved: Mapping[str, str] = MappingProxyType(
            dict(sorted(moved.items(), key=lambda item: -len(item[0])))
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "moved": dict(self.moved)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.moved = MappingProxyType(dict(state["moved"]))

    def physical(self, path: str) -> str:
        """Where the file of this name lies."""
        for old, new in self.moved.items():
            if path.startswith(old):
                return new + path[len(old) :]
        return path

    def _run(
        self,
        verb: str,
        path: str,
        on_disk: Callable[[str], T],
        on_store: Callable[[Store, str], T],
    ) -> T:
        return super()._run(verb, self.physical(path), on_disk, on_store)
