"""CorrectEntries: what manifests say of files that are not as they say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from frazil.format.manifests import DataFile, EntryStatus, ManifestEntry, ManifestFile
from frazil.format.metadata import TableMetadata
from frazil.format.snapshots import REPLACE, Snapshot
from frazil.storage.files import FileIO
from frazil.table.commit.kept import KeptBetweenTries
from frazil.table.manifests.files import as_existing, entries_in
from frazil.table.snapshots.producer import (
    DEFAULT_OPTIONS,
    SnapshotOptions,
    SnapshotProducer,
    summarize,
)


@dataclass(frozen=True, slots=True)
class Figures:
    """What a file is, where its entry says something else.

    Attributes:
        file_size_in_bytes: of the file; None where the entry is right.
        record_count: of its rows; None where the entry is right.
    """

    file_size_in_bytes: int | None = None
    record_count: int | None = None


class CorrectEntries(SnapshotProducer):
    """Write manifests anew whose entries state wrong figures; entries keep all else that they say.

    Args:
        figures: by the path of a file.
    """

    def __init__(
        self,
        io: FileIO,
        figures: Mapping[str, Figures],
        *,
        options: SnapshotOptions = DEFAULT_OPTIONS,
    ) -> None:
        super().__init__(io, options)
        self._figures = dict(figures)
        self._written = KeptBetweenTries[tuple[ManifestFile, tuple[ManifestEntry, ...]]]()
        self.before: tuple[DataFile, ...] = ()
        self.after: tuple[DataFile, ...] = ()

    def manifests(self, base: TableMetadata, parent: Snapshot | None) -> Sequence[ManifestFile]:
        """All manifests, those of corrected entries written anew."""
        before: list[DataFile] = []
        result = []
        for manifest in self.files.manifests_of(parent):
            write = partial(self._write, base, manifest)
            written, wrong = self._written.get_or_make(base, manifest, write)
            result.append(written)
            before += (entry.data_file for entry in wrong)
        self.before = tuple(before)
        self.after = tuple(self._corrected_file(file) for file in before)
        return result

    def summary(self, base: TableMetadata, parent: Snapshot | None) -> Mapping[str, str]:
        """Totals follow the corrections: each file counts as removed and added."""
        return summarize(
            REPLACE, metadata=base, parent=parent, added=self.after, removed=self.before
        )

    def _write(
        self, base: TableMetadata, manifest: ManifestFile
    ) -> tuple[ManifestFile, tuple[ManifestEntry, ...]]:
        if not manifest.has_live_files:
            return manifest, ()
        [opened] = self.files.open_manifests(base, [manifest])
        paths = opened.entries["file_path"]
        if not paths.is_in(list(self._figures)).any():
            return manifest, ()
        entries = entries_in(base, opened)
        live = [entry for entry in entries if entry.status is not EntryStatus.DELETED]
        wrong = tuple(
            entry for entry in live if self._corrected_file(entry.data_file) != entry.data_file
        )
        if not wrong:
            return manifest, ()
        corrected = [
            replace(as_existing(entry), data_file=self._corrected_file(entry.data_file))
            for entry in live
        ]
        written = self.files.write(
            base,
            corrected,
            spec_id=manifest.partition_spec_id,
            content=manifest.content,
            snapshot_id=self.snapshot_id,
        )
        return written, wrong

    def _corrected_file(self, file: DataFile) -> DataFile:
        figures = self._figures.get(file.file_path)
        if figures is None:
            return file
        size, count = figures.file_size_in_bytes, figures.record_count
        return replace(
            file,
            file_size_in_bytes=file.file_size_in_bytes if size is None else size,
            # A vector's count is of its own positions.
            record_count=file.record_count if count is None or file.is_deletion_vector else count,
        )
