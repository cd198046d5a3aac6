"""Spark's checkpoint of a query as it lies on disk: what its sources noted and what it planned.

``sources/<i>/<n>`` is a source's note that it took the log's line n, ``offsets/<m>`` the plan of
the query's batch m: for each source, the last line that the batch reads. Spark keeps the plans that
it can go back to (``spark.sql.streaming.minBatchesToRetain``) and removes older ones.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from typing import Final

from frazil.errors import MissingFileError, StorageError
from frazil.storage.files import FileIO
from frazil.storage.paths import join, parent_of

_LOG = logging.getLogger(__name__)
_COMPACT: Final = ".compact"


@dataclass(frozen=True, slots=True)
class QueryCheckpoint:
    """One query's checkpoint; what is not of Spark's form is passed over.

    Attributes:
        io: the store of the folder.
        folder: the checkpoint's.
    """

    io: FileIO
    folder: str

    def query_id(self) -> str | None:
        """The query's id, which it keeps over restarts; None before its first start."""
        try:
            return str(json.loads(self.io.read(join(self.folder, "metadata")))["id"])
        except (StorageError, ValueError, KeyError, TypeError):
            return None

    def sources(self) -> list[int]:
        """The numbers of the query's sources that have noted anything."""
        found = self._list(join(self.folder, "sources"))
        return [int(name) for name, is_folder in found if is_folder and name.isdigit()]

    def notes(self, source: int) -> dict[int, str]:
        """The names of a source's notes, by their numbers."""
        return self._files_by_number(self.folder_of(source))

    def folder_of(self, source: int) -> str:
        """Where a source's notes are."""
        return join(self.folder, "sources", str(source))

    def plans(self) -> list[int]:
        """The numbers of the plans that Spark keeps, oldest first."""
        return sorted(self._files_by_number(join(self.folder, "offsets")))

    def last_line(self, plan: int, source: int) -> int | None:
        """The last line of a source that was read by this plan's end, -1 without one.

        None if it cannot be told.
        """
        path = join(self.folder, "offsets", str(plan))
        version, *lines = self.io.read(path).decode().split("\n")
        # The first line says what the query is, then comes one a source.
        offsets = lines[1:]
        if version != "v1" or source >= len(offsets):
            return None
        if offsets[source] == "-":
            return -1
        try:
            return int(json.loads(offsets[source])["logOffset"])
        except (ValueError, KeyError, TypeError):
            return None

    def noted_folders(self, source: int, number: int, name: str) -> set[str]:
        """The names of the folders that a note adds; compacted ones repeat earlier notes."""
        names = set()
        for line in self.io.read(join(self.folder_of(source), name)).decode().split("\n")[1:]:
            try:
                entry = json.loads(line)
                if entry["batchId"] == number:
                    names.add(str(entry["path"]).rsplit("/", 1)[-1])
            except (ValueError, KeyError, TypeError):
                return {line}
        return names

    def _files_by_number(self, folder: str) -> dict[int, str]:
        return {
            int(name.removesuffix(_COMPACT)): name
            for name, is_folder in self._list(folder)
            if not is_folder and name.removesuffix(_COMPACT).isdigit()
        }

    def _list(self, folder: str) -> tuple[tuple[str, bool], ...]:
        try:
            return self.io.list_folder(folder)
        except MissingFileError:
            return ()


def is_compacted(name: str) -> bool:
    """Whether a note of this name repeats the ones before it."""
    return name.endswith(_COMPACT)


def checkpoints_around(io: FileIO, folder: str) -> list[QueryCheckpoint]:
    """What may be the checkpoint of the query of a stream with this folder.

    It is the folder, or the one that it lies in: a query of several streams has one for each.
    """
    found = [QueryCheckpoint(io, folder)]
    around = QueryCheckpoint(io, parent_of(folder))
    try:
        around.sources()
    except StorageError as error:
        # The folder around a checkpoint need not be this user's to list.
        _LOG.debug("no query's checkpoint was looked for around %s: %s", folder, error)
        return found
    return [*found, around]
