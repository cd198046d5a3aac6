"""Appends: new data files, nothing removed; always applicable (rule 210)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from frazil.format.manifests import DataFile, ManifestContent, ManifestFile
from frazil.format.metadata import TableMetadata
from frazil.format.snapshots import APPEND, Snapshot
from frazil.storage.files import FileIO
from frazil.table.snapshots.merging import AddedFiles, MergingProducer
from frazil.table.snapshots.producer import (
    DEFAULT_OPTIONS,
    SnapshotOptions,
    SnapshotProducer,
    summarize,
)


class FastAppend(SnapshotProducer):
    """Append by one new manifest a spec; the manifests that are there stay as they are."""

    def __init__(
        self,
        io: FileIO,
        files: Iterable[DataFile],
        options: SnapshotOptions = DEFAULT_OPTIONS,
    ) -> None:
        super().__init__(io, options)
        self._added = AddedFiles(self, ManifestContent.DATA)
        self._added.add_all(files)
        self._kept = 0
        self._created = 0

    def manifests(self, base: TableMetadata, parent: Snapshot | None) -> Sequence[ManifestFile]:
        """The new manifests before those of the parent that hold live files."""
        existing = [
            manifest for manifest in self.files.manifests_of(parent) if manifest.has_live_files
        ]
        new = self._added.manifests(base, self.snapshot_id)
        self._created, self._kept = len(new), len(existing)
        return [*new, *existing]

    def summary(self, base: TableMetadata, parent: Snapshot | None) -> Mapping[str, str]:
        """What was added, and the totals (rule 303)."""
        return {
            **summarize(APPEND, metadata=base, parent=parent, added=self._added.files, removed=()),
            "manifests-created": str(self._created),
            "manifests-kept": str(self._kept),
            "manifests-replaced": "0",
        }


class MergeAppend(MergingProducer):
    """Append, merging small manifests when enough of them are there."""

    operation_name = APPEND

    def __init__(
        self,
        io: FileIO,
        files: Iterable[DataFile],
        options: SnapshotOptions = DEFAULT_OPTIONS,
    ) -> None:
        super().__init__(io, options)
        self.added_data.add_all(files)
