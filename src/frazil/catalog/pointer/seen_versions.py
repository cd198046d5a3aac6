"""Versions of tables that were current when they were last looked for, and still are.

A store that tells at once what is at several names need not be asked from the hint on: where
the hint and the version are the same files, and no version follows, nothing has changed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from frazil.catalog.pointer.versions import HINT, Version, VersionFolder
from frazil.errors import StorageError
from frazil.storage.caches import BoundedCache
from frazil.storage.paths import name_of

_MOST_BYTES: Final = 4 << 20
_BYTES_OF_ONE: Final = 1 << 10


@dataclass(frozen=True, slots=True)
class _Seen:
    version: Version
    marks: Mapping[str, str]


class SeenVersions:
    """The current version of each table's folder, as it was seen. Safe under threads."""

    def __init__(self) -> None:
        self._seen: BoundedCache[_Seen] = BoundedCache(_MOST_BYTES)

    def current(self, versions: VersionFolder) -> Version | None:
        """The newest version, as `VersionFolder.current` finds it."""
        seen = self._seen.get(versions.folder)
        if seen is not None and versions.marks_around(seen.version) == seen.marks:
            return seen.version
        found = versions.current()
        if found is not None:
            self._keep(versions, found)
        return found

    def keep(self, versions: VersionFolder, version: Version) -> None:
        """Keep a version that this process has made."""
        # The next look finds it in any case.
        with contextlib.suppress(StorageError):
            self._keep(versions, version)

    def mark_of(self, versions: VersionFolder, path: str) -> str | None:
        """What the store told of a version's file when it was seen; None if it was not."""
        seen = self._seen.get(versions.folder)
        if seen is None or seen.version.path != path:
            return None
        # Files that are renamed keep their times: the hint tells a table from one before it.
        return f"{seen.marks.get(name_of(path))} {seen.marks.get(HINT)}"

    def _keep(self, versions: VersionFolder, version: Version) -> None:
        self._seen.remove(versions.folder)
        marks = versions.marks_around(version)
        # One that is gone or followed by another by now is no longer what was found.
        if marks is not None and marks.keys() == versions.names_of_newest(version):
            self._seen.put(versions.folder, _Seen(version, marks), _BYTES_OF_ONE)
