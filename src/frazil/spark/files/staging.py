"""The fresh folder that one write alone fills, and how its files get to where they stay.

On a local disk or HDFS each file is moved to where the table's layout wants it, elsewhere it stays:
a move there would copy it. Nothing that no commit refers to is visible.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

from frazil.errors import FrazilError, StorageError
from frazil.format.manifests import DataFile
from frazil.spark.files.write_failures import write_failure
from frazil.storage.files import FileIO, local_path

_RENAMING_SCHEMES: Final = ("hdfs://", "viewfs://")
_DISCARDS: Final = 3


@dataclass(frozen=True, slots=True)
class StagedFolder:
    """One write's folder.

    Attributes:
        io: of the table.
        path: the folder.
    """

    io: FileIO
    path: str

    @property
    def is_local(self) -> bool:
        """Whether it is on the local disk."""
        return local_path(self.path) is not None

    @property
    def renames(self) -> bool:
        """Whether moving a file is one cheap step of its store."""
        return self.is_local or self.path.startswith(_RENAMING_SCHEMES)

    def make(self) -> None:
        """Make the folder, where its store has folders that must be made."""
        if self.is_local:
            self.io.make_folder(self.path)

    def keep_only(self, entries: Iterable[DataFile]) -> None:
        """Remove what no entry names: a task that was tried twice leaves the failed try's files."""
        kept = {entry.file_path for entry in entries}
        self.io.delete_many(file.path for file in self.io.list(self.path) if file.path not in kept)

    def publish(
        self, staged: Sequence[DataFile], final_path: Callable[[DataFile, int], str]
    ) -> list[DataFile]:
        """Return the entries of the files where they stay; all or none are moved.

        Args:
            staged: what the folder holds; several entries may be of one file.
            final_path: where the table's layout wants the file of an entry, given its place.

        Raises:
            StorageError: a file cannot be moved.
        """
        if not self.renames:
            if not staged:
                # Spark leaves a marker of the folder.
                self.discard()
            return list(staged)
        moved: dict[str, str] = {}
        with self.io.remove_on_failure(moved.values()):
            for count, entry in enumerate(staged):
                if entry.file_path not in moved:
                    target = final_path(entry, count)
                    self._move(entry.file_path, target)
                    moved[entry.file_path] = target
            self.discard()
        return [replace(entry, file_path=moved[entry.file_path]) for entry in staged]

    @contextmanager
    def discard_on_failure(self) -> Iterator[None]:
        """Remove the folder where the block fails.

        Raises:
            FrazilError: in place of Spark's error for rows or a store that refuse.
        """
        try:
            yield
        except BaseException as error:
            self.discard()
            failure = write_failure(error, folder=self.path)
            if failure is not None:
                raise failure from error
            raise

    def discard(self) -> None:
        """Remove the folder; a store that fails here leaves what no commit refers to."""
        for _ in range(_DISCARDS):
            # A task that is still being stopped may add a file while the folder is emptied.
            try:
                self.io.delete_folder(self.path)
            except FrazilError:
                continue
            return

    def _move(self, source: str, target: str) -> None:
        old, new = local_path(source), local_path(target)
        if old is None or new is None:
            self.io.move(source, target)
            return
        # Nobody else knows the name yet, and Spark does not sync its files: no need to sync here.
        try:
            os.makedirs(os.path.dirname(new), exist_ok=True)
            os.replace(old, new)
        except OSError as error:
            raise StorageError(f"cannot rename {source} to {target}: {error.strerror}") from error
