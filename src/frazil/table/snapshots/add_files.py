"""Appends of data files that other writers left; a file is refused that the table has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import polars as pl

from frazil.errors import ValidationError
from frazil.format.manifests import DataFile, ManifestContent, ManifestFile
from frazil.format.metadata import TableMetadata
from frazil.format.snapshots import Snapshot
from frazil.planning.frames import live_entries
from frazil.planning.load import ManifestLoader
from frazil.storage.files import FileIO
from frazil.table.manifests.comparable_paths import COMPARABLE, ComparablePaths
from frazil.table.snapshots.append import MergeAppend
from frazil.table.snapshots.producer import DEFAULT_OPTIONS, SnapshotOptions

_NAMED = 10


class AddFiles(MergeAppend):
    """Append files; each try looks whether the snapshot that it builds on has one of them.

    Args:
        io: the table's files.
        files: the new ones.
        options: of the snapshot.
        check_duplicates: whether a file is refused that the table has.
    """

    def __init__(
        self,
        io: FileIO,
        files: Iterable[DataFile],
        options: SnapshotOptions = DEFAULT_OPTIONS,
        *,
        check_duplicates: bool = True,
    ) -> None:
        super().__init__(io, files, options)
        self._io = io
        self._checks = check_duplicates

    def manifests(self, base: TableMetadata, parent: Snapshot | None) -> Sequence[ManifestFile]:
        """Return the manifests of the append."""
        if self._checks and parent is not None:
            self._refuse_duplicates(base, parent)
        return super().manifests(base, parent)

    def _refuse_duplicates(self, base: TableMetadata, parent: Snapshot) -> None:
        loader = ManifestLoader.of(base, self._io)
        data = [
            manifest
            for manifest in loader.manifests(parent)
            if manifest.content is ManifestContent.DATA and manifest.has_live_files
        ]
        new = pl.Series("path", [file.file_path for file in self.added_data.files], pl.String())
        keys = _places(new).with_columns(new)
        found: list[str] = []
        for frame in loader.entries(data):
            there = _places(live_entries(frame)["file_path"])
            both = keys.join(there, on=list(COMPARABLE), how="semi", nulls_equal=True)
            found += both["path"].to_list()
        if found:
            shown = ", ".join(found[:_NAMED]) + (", …" if len(found) > _NAMED else "")
            raise ValidationError(
                f"the table has {len(found)} of these {len(new)} files, and nothing was added: "
                f"{shown}. A file's rows would be in the table twice; check_duplicate_files=False "
                "allows that"
            )


def _places(paths: pl.Series) -> pl.DataFrame:
    """What tells files apart, whatever the spelling of their paths."""
    # A path without a scheme is a local one.
    return ComparablePaths.of().parts(paths).with_columns(pl.col("scheme").fill_null("file"))
