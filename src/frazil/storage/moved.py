"""Tables that lie elsewhere than their metadata says."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, TypeVar

from frazil.errors import MissingFileError, StorageError
from frazil.storage.files import FileIO
from frazil.storage.paths import parent_of, redact
from frazil.storage.stores.remote_options import places_of_stores
from frazil.storage.stores.store import Stores

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


@contextmanager
def telling_of_moves(io: FileIO, path: str) -> Iterator[None]:
    """Raise a missing file's error with what to do if the table was moved, where that seems so.

    So it does where the whole folder is not there: metadata names files by their old paths.
    """
    try:
        yield
    except MissingFileError as error:
        if not _lacks_folder(io, path):
            raise
        table = redact(parent_of(parent_of(path)), io.properties)
        raise MissingFileError(
            f"{error}, and no such folder. If the table was moved or copied, read it by "
            f"frazil.open_table('new place', spark=spark, moved={{{table!r}: 'new place'}}); to "
            "write to it there, have rewrite_table_path write its metadata for the new place, and "
            "register that"
        ) from error


def _lacks_folder(io: FileIO, path: str) -> bool:
    try:
        return not io.is_folder(parent_of(path))
    except StorageError:
        return False


def store_key(io: FileIO) -> str:
    """What tells apart files of one path in different stores: where the stores are, not who asks.

    Credentials come with a table and end; the file that they open is the same one.
    """
    moved = getattr(io, "moved", {})
    stores = repr((places_of_stores(io.properties), sorted(moved.items())))
    return hashlib.sha256(stores.encode()).hexdigest()
