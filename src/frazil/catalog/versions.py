"""A ``metadata`` folder of numbered files: which version is current (SPEC rule 215)."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass

from frazil.errors import MissingFileError, StorageError, ValidationException
from frazil.storage.files import FileIO
from frazil.storage.paths import join, name_of

HINT = "version-hint.text"
EXTENSIONS = (".metadata.json", ".gz.metadata.json", ".metadata.json.gz")
_NUMBERED = re.compile(r"v(\d{1,18})(\.metadata\.json|\.gz\.metadata\.json|\.metadata\.json\.gz)")
_HINT = re.compile(r"[0-9]{1,18}")
_LONGEST_HINT = 1024


@dataclass(frozen=True, slots=True, order=True)
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
        """The number in a file's name; ValidationException if there is none."""
        match = _NUMBERED.fullmatch(name_of(path))
        if match is None:
            raise ValidationException(
                f"{path} is not a numbered metadata file (v<N>.metadata.json)"
            )
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
        for extension in EXTENSIONS:
            path = self.path_of(version, extension)
            if self.io.exists(path):
                return Version(version, path)
        return None

    def newest_listed(self) -> Version | None:
        """The newest version by listing the folder; None if there is none."""
        newest: Version | None = None
        for name in self._file_names():
            match = _NUMBERED.fullmatch(name)
            if match is None:
                continue
            version = int(match.group(1))
            if newest is None or version > newest.version:
                newest = Version(version, join(self.folder, name))
        return newest

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
        with contextlib.suppress(StorageError):
            self.io.write(join(self.folder, HINT), str(version).encode(), overwrite=True)

    def _file_names(self) -> list[str]:
        try:
            return [name for name, is_folder in self.io.list_folder(self.folder) if not is_folder]
        except MissingFileError:
            return []
