"""Whose files are whose: the folders of tables and views, wherever their names have moved."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from typing import Final

from frazil.catalog.identifiers import Identifier
from frazil.catalog.metadata_files import read_metadata, read_view_metadata
from frazil.catalog.protocol import Catalog
from frazil.errors import FrazilError
from frazil.format.metadata import TableMetadata
from frazil.format.views import ViewMetadata
from frazil.serve.rights.places import folders_of
from frazil.storage.paths import parent_of
from frazil.storage.side_by_side import WAITING_THREADS, in_threads

_UNIQUE_NAME: Final = re.compile(
    r"\d+-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(\.gz)?\.metadata\.json(\.gz)?"
)
_METADATA: Final = "metadata"
_SECONDS: Final = 1.0
_SECONDS_OF_LISTINGS: Final = 30.0
"""How old a look at all tables may be, where one query or many listings make it."""


class Owners:
    """The folders that the tables and views of a catalog have; safe for several threads.

    What is asked once of a metadata file is kept for as long as a table is at it.

    Args:
        catalog: whose they are.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._lock = threading.Lock()
        self._folders: dict[Identifier, tuple[str, ...]] = {}
        self._of_files: dict[str, tuple[str, ...]] = {}
        self._until = 0.0

    def folders_of_others(
        self, may_write: Callable[[Identifier], bool], *, as_of_now: bool
    ) -> tuple[str, ...]:
        """Return the folders of the tables and views in namespaces that a client may not change.

        Args:
            may_write: whether the client may change a namespace.
            as_of_now: whether a look of a moment ago is too old.
        """
        with self._lock:
            if as_of_now or time.monotonic() >= self._until:
                self._look()
            folders = self._folders
        others = (each for name, each in folders.items() if not may_write(name[:-1]))
        return tuple({folder for each in others for folder in each})

    def forget(self) -> None:
        """Look anew when it is asked next: a table has another name or another place."""
        with self._lock:
            self._until = 0.0

    def _look(self) -> None:
        started = time.monotonic()
        locations = self._catalog.all_locations()
        known = self._of_files
        missing = [each for each in dict.fromkeys(locations.values()) if each not in known]
        read = in_threads(self._folders_in, missing, threads=WAITING_THREADS, name="frazil-owners")
        found = {**known, **dict(zip(missing, read, strict=True))}
        self._folders = {name: found[location] for name, location in locations.items()}
        self._of_files = {
            each: found[each] for each in set(locations.values()) if is_unique_name(each)
        }
        is_quick = self._catalog.looks_up_together
        self._until = started + (_SECONDS if is_quick else _SECONDS_OF_LISTINGS)

    def _folders_in(self, location: str) -> tuple[str, ...]:
        """The folders of a table by its metadata file; of one that cannot be read its own."""
        io = self._catalog.io
        metadata: TableMetadata | ViewMetadata
        try:
            metadata = read_metadata(io, location)
        except FrazilError:
            try:
                metadata = read_view_metadata(io, location)
            except FrazilError:
                return (_folder_of(location),)
        older = _older_files(metadata) if isinstance(metadata, TableMetadata) else ()
        files = dict.fromkeys(_folder_of(each) for each in (location, *older))
        return tuple(dict.fromkeys((*folders_of(metadata), *files)))


def is_unique_name(location: str) -> bool:
    """Whether a metadata file's name is never made twice, unlike ``v1.metadata.json``."""
    return _UNIQUE_NAME.fullmatch(location.rpartition("/")[2]) is not None


def _older_files(metadata: TableMetadata) -> tuple[str, ...]:
    """Files that lie where the table may have lain before."""
    lists = (each.manifest_list for each in metadata.snapshots if each.manifest_list)
    return (*lists, *(each.metadata_file for each in metadata.metadata_log))


def _folder_of(location: str) -> str:
    """The table's folder by its metadata file's place, or the file's folder."""
    folder = parent_of(location)
    return parent_of(folder) if folder.rpartition("/")[2] == _METADATA else folder
