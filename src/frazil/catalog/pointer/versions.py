"""A ``metadata`` folder of numbered files: which version is current (SPEC rule 215)."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from frazil.catalog.metadata_files import read_metadata
from frazil.catalog.outcome import after_the_change
from frazil.errors import (
    InvalidFormatError,
    MissingFileError,
    StorageError,
    ValidationError,
)
from frazil.storage.caches import BoundedCache
from frazil.storage.files import FileIO
from frazil.storage.paths import join, name_of

HINT = "version-hint.text"
# In the order in which a version's file is looked for, which is Java's.
EXTENSIONS = (".metadata.json", ".gz.metadata.json", ".metadata.json.gz")
_NUMBERED = re.compile(r"v(\d{1,18})(\.metadata\.json|\.gz\.metadata\.json|\.metadata\.json\.gz)")
_HINT = re.compile(r"[0-9]{1,18}")
_LONGEST_HINT = 1024


@dataclass(frozen=True, slots=True)
class Version:
    """One numbered metadata file."""

    version: int
    path: str


@dataclass(frozen=True, slots=True)
class VersionFolder:
    """The metadata folder of a table whose files are ``v<N>.metadata.json``."""

    io: FileIO
    folder: str

    def path_of(self, version: int, extension: str) -> str:
        """The path of a version's file."""
        return join(self.folder, f"v{version}{extension}")

    def version_of(self, path: str) -> int:
        """The number in a file's name; ValidationError if there is none."""
        match = _NUMBERED.fullmatch(name_of(path))
        if match is None:
            raise ValidationError(f"{path} is not a numbered metadata file (v<N>.metadata.json)")
        return int(match.group(1))

    def current(self) -> Version | None:
        """The newest version: from the hint forward, or by listing where the hint is of no use."""
        hinted = self.hint()
        found = None if hinted is None else self.find(hinted)
        if found is None:
            return self.newest_listed()
        while (following := self.find(found.version + 1)) is not None:
            found = following
        return found

    def find(self, version: int) -> Version | None:
        """The file of that version under any of its names."""
        paths = (self.path_of(version, extension) for extension in EXTENSIONS)
        return next((Version(version, path) for path in paths if self.io.exists(path)), None)

    def newest_listed(self) -> Version | None:
        """The newest version by listing the folder; None if there is none."""
        return max(self._versions_in_folder(), key=_place_in_order, default=None)

    def marks_around(self, version: Version) -> Mapping[str, str] | None:
        """What tells whether the version is still the newest, by name; as of `FileIO.marks`.

        It is of the hint, of what the next version may be called, and of this one's names that are
        looked for before and with its own: a file of such a name would stand for the version.
        """
        own = [f"v{version.version}{extension}" for extension in EXTENSIONS]
        looked_for = own[: own.index(name_of(version.path)) + 1]
        following = [f"v{version.version + 1}{extension}" for extension in EXTENSIONS]
        return self.io.marks(self.folder, [HINT, *looked_for, *following])

    def names_of_newest(self, version: Version) -> set[str]:
        """Those of the names in `marks_around` that are there as long as no version follows."""
        return {HINT, name_of(version.path)}

    def delete_all(self, table_uuid: str | None) -> None:
        """Delete the hint and every metadata file, the newest last.

        At each step the table is whole or gone.  What a writer commits meanwhile goes too; a table
        that is made anew under the name does not.
        Raises StorageError: a file could not be deleted; the newest is still there.
        """
        self.delete_hint()
        others = [name for name in self._file_names() if name.endswith(EXTENSIONS)]
        going = sorted(self._versions_in_folder(), key=_place_in_order)
        numbered = {version.path for version in going}
        self._delete([path for name in others if (path := join(self.folder, name)) not in numbered])
        while going:
            self._delete([version.path for version in going[:-1]])
            self._delete([going[-1].path])
            late = sorted(self._versions_in_folder(), key=_place_in_order)
            going = [version for version in late if self._is_version_of(version, table_uuid)]
        # A writer that was late for its version may have written the hint meanwhile.
        self.delete_hint()

    def delete_hint(self) -> None:
        """Delete the hint; readers of a table without it list the versions."""
        self._delete([join(self.folder, HINT)])

    def has_others_than(self, path: str) -> bool:
        """Whether there is a version in another file than this."""
        return any(version.path != path for version in self._versions_in_folder())

    def holds_metadata(self) -> bool:
        """Whether the folder holds a metadata file of any name: then its parent is a table."""
        return any(name.endswith(EXTENSIONS) for name in self._file_names())

    def hint_text(self) -> str | None:
        """What version-hint.text says, None if it is missing or unreadable."""
        try:
            data = self.io.read_range(join(self.folder, HINT), offset=0, length=_LONGEST_HINT)
        except StorageError:
            return None
        return data.decode("utf-8", errors="replace").strip()

    def hint(self) -> int | None:
        """The version that the hint names, None if it names none."""
        text = self.hint_text()
        return int(text) if text and _HINT.fullmatch(text) else None

    def write_hint(self, version: int) -> None:
        """Point the hint to a version; a failure only makes readers look further."""
        with after_the_change(f"the version hint of {self.folder} was not written"):
            self.io.write(join(self.folder, HINT), str(version).encode(), overwrite=True)

    def _versions_in_folder(self) -> Iterator[Version]:
        for name in self._file_names():
            if (match := _NUMBERED.fullmatch(name)) is not None:
                yield Version(int(match.group(1)), join(self.folder, name))

    def _delete(self, paths: Sequence[str]) -> None:
        for failure in self.io.delete_many(paths).values():
            raise failure

    def _is_version_of(self, version: Version, table_uuid: str | None) -> bool:
        try:
            return read_metadata(self.io, version.path).table_uuid == table_uuid
        except (MissingFileError, InvalidFormatError):
            return False

    def _file_names(self) -> list[str]:
        try:
            return [name for name, is_folder in self.io.list_folder(self.folder) if not is_folder]
        except MissingFileError:
            return []


def _place_in_order(version: Version) -> tuple[int, int]:
    """By version; of one version's names the first that `VersionFolder.find` looks for is last."""
    extension = name_of(version.path).removeprefix(f"v{version.version}")
    return version.version, -EXTENSIONS.index(extension)


# -- versions that were seen -----------------------------------------------------------------------

# A store that tells at once what is at several names need not be asked from the hint on: where the
# hint and the version are the same files, and no version follows, nothing has changed.


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
