"""MergingProducer: snapshots that add and remove files, in as few manifests as pays off."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from frazil.errors import ValidationError
from frazil.format.manifests import (
    Content,
    DataFile,
    EntryStatus,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from frazil.format.metadata import TableMetadata
from frazil.format.snapshots import Snapshot
from frazil.storage.files import FileIO
from frazil.table.commit.definition import Definition
from frazil.table.commit.kept import KeptBetweenTries
from frazil.table.manifests.file_keys import FileKey, file_key
from frazil.table.manifests.filter import ManifestFilter, smallest_live_sequence_number
from frazil.table.manifests.merge import ManifestMerger
from frazil.table.snapshots.producer import (
    DEFAULT_OPTIONS,
    SnapshotOptions,
    SnapshotProducer,
    summarize,
)


class AddedFiles:
    """New files of one content, written into manifests of their own, a spec each (rule 103)."""

    def __init__(self, producer: SnapshotProducer, content: ManifestContent) -> None:
        self._producer = producer
        self._content = content
        self._entries: dict[FileKey, ManifestEntry] = {}
        self._manifests = KeptBetweenTries[list[ManifestFile]]()
        self._written_for: Definition | None = producer.options.definition

    def __bool__(self) -> bool:
        return bool(self._entries)

    @property
    def files(self) -> tuple[DataFile, ...]:
        """The files, in the order they were added."""
        return tuple(entry.data_file for entry in self._entries.values())

    @property
    def sequence_numbers(self) -> tuple[int, ...]:
        """The data sequence numbers that were given explicitly (rule 133)."""
        return tuple(
            entry.sequence_number
            for entry in self._entries.values()
            if entry.sequence_number is not None
        )

    def add(self, file: DataFile, *, data_sequence_number: int | None = None) -> None:
        """Add a file; with a data sequence number it counts as as old as that (rule 133)."""
        if (self._content is ManifestContent.DATA) != (file.content is Content.DATA):
            raise ValidationError(
                f"{file.file_path} holds {file.content.name.lower()}, which a manifest of "
                f"{self._content.name.lower()} cannot track"
            )
        key = file_key(file)
        if key in self._entries:
            raise ValidationError(
                f"{file.file_path} was given twice; a live file may be in a snapshot once"
            )
        # New files get their row ids from the manifest list (rule 137), deletes none (rule 140).
        new = file if file.first_row_id is None else dataclasses.replace(file, first_row_id=None)
        self._entries[key] = ManifestEntry(
            status=EntryStatus.ADDED, sequence_number=data_sequence_number, data_file=new
        )

    def add_all(
        self, files: Iterable[DataFile], *, data_sequence_number: int | None = None
    ) -> None:
        """Add each of some files."""
        for file in files:
            self.add(file, data_sequence_number=data_sequence_number)

    def hold(self, files: Sequence[DataFile]) -> None:
        """Have these files in place of those that were added, for this try and later ones."""
        if {file_key(file) for file in files} == self._entries.keys():
            return
        self._entries.clear()
        self._manifests.clear()
        self.add_all(files)

    def manifests(self, metadata: TableMetadata, snapshot_id: int) -> list[ManifestFile]:
        """Return the manifests of the added files.

        Raises ConflictError: the files were written for a version, schema or spec that is another
        one now.
        """
        if self._written_for is None:
            self._written_for = Definition.of(metadata)
        self._written_for.check_fits(metadata, self.files)
        return list(
            self._manifests.get_or_make(
                metadata, snapshot_id, lambda: self._write(metadata, snapshot_id)
            )
        )

    def _write(self, metadata: TableMetadata, snapshot_id: int) -> list[ManifestFile]:
        by_spec: dict[int, list[ManifestEntry]] = {}
        for entry in self._entries.values():
            check_file(metadata, entry.data_file)
            by_spec.setdefault(entry.data_file.spec_id, []).append(
                dataclasses.replace(entry, snapshot_id=snapshot_id)
            )
        return [
            manifest
            for spec_id, entries in by_spec.items()
            for manifest in self._producer.files.write_in_chunks(
                metadata,
                entries,
                spec_id=spec_id,
                content=self._content,
                snapshot_id=snapshot_id,
            )
        ]


class MergingProducer(SnapshotProducer):
    """The base of operations that remove files, add files, and merge manifests on the way.

    Dropping a data file drops its deletion vector and the delete files about it alone
    (rule 219); deletes older than every data file are dropped wherever a manifest with such
    deletes is met. An operation that removes nothing and adds no deletes leaves their manifests as
    they are.
    """

    operation_name = "overwrite"

    def __init__(self, io: FileIO, options: SnapshotOptions = DEFAULT_OPTIONS) -> None:
        super().__init__(io, options)
        self.added_data = AddedFiles(self, ManifestContent.DATA)
        self.added_deletes = AddedFiles(self, ManifestContent.DELETES)
        self.removed_data = ManifestFilter(self.files, ManifestContent.DATA)
        self.removed_deletes = ManifestFilter(self.files, ManifestContent.DELETES)
        self._data_merger = ManifestMerger(self.files)
        self._delete_merger = ManifestMerger(self.files)
        self._counts: Mapping[str, str] = {}

    @property
    def summary_operation(self) -> str:
        """The `operation` of the summary (rule 155)."""
        return self.operation_name

    @property
    def name_in_errors(self) -> str:
        """What errors call the operation."""
        return self.summary_operation

    def manifests(self, base: TableMetadata, parent: Snapshot | None) -> Sequence[ManifestFile]:
        """Kept, filtered, new and merged manifests, data before deletes."""
        existing = self.files.manifests_of(parent)
        data = self.removed_data.apply(
            base,
            [manifest for manifest in existing if manifest.content is ManifestContent.DATA],
            self.snapshot_id,
        )
        deletes = [each for each in existing if each.content is ManifestContent.DELETES]
        new_data = self.added_data.manifests(base, self.snapshot_id)
        merged = [
            *self._data_merger.merge(
                base, self._relevant_manifests(new_data, data), self.snapshot_id
            ),
            *(
                self._relevant_manifests((), deletes)
                if self._only_adds_data
                else self._with_other_deletes(base, data, deletes)
            ),
        ]
        before = {manifest.manifest_path for manifest in existing}
        after = {manifest.manifest_path for manifest in merged}
        self._counts = {
            "manifests-created": str(len(after - before)),
            "manifests-kept": str(len(after & before)),
            "manifests-replaced": str(len(before - after)),
        }
        return merged

    @property
    def _only_adds_data(self) -> bool:
        removes = not (self.removed_data.is_empty and self.removed_deletes.is_empty)
        return not removes and not self.added_deletes

    def _with_other_deletes(
        self,
        base: TableMetadata,
        data: Sequence[ManifestFile],
        deletes: Sequence[ManifestFile],
    ) -> Sequence[ManifestFile]:
        """Delete manifests without what is about removed data, with the new ones, and merged."""
        oldest = smallest_live_sequence_number(data, base.last_sequence_number)
        self.removed_deletes.choose_deletes_of(self.removed_data.removed)
        self.removed_deletes.choose_older_than(min((oldest, *self.added_data.sequence_numbers)))
        kept = self.removed_deletes.apply(base, deletes, self.snapshot_id)
        new = self.added_deletes.manifests(base, self.snapshot_id)
        return self._delete_merger.merge(
            base, self._relevant_manifests(new, kept), self.snapshot_id
        )

    def summary(self, base: TableMetadata, parent: Snapshot | None) -> Mapping[str, str]:
        """What was added and removed, and the totals (rule 303)."""
        return {
            **summarize(
                self.summary_operation,
                metadata=base,
                parent=parent,
                added=(*self.added_data.files, *self.added_deletes.files),
                removed=(*self.removed_data.removed, *self.removed_deletes.removed),
            ),
            **self._counts,
        }

    def _relevant_manifests(
        self, new: Sequence[ManifestFile], kept: Sequence[ManifestFile]
    ) -> list[ManifestFile]:
        """New manifests, and others that have live files or were written for this snapshot."""
        return [
            *new,
            *(
                manifest
                for manifest in kept
                if manifest.has_live_files or manifest.added_snapshot_id == self.snapshot_id
            ),
        ]


def check_file(metadata: TableMetadata, file: DataFile) -> None:
    """Check a new file against the table that it is to be part of."""
    spec = metadata.spec_by_id(file.spec_id)
    if len(file.partition) != len(spec.fields):
        raise ValidationError(
            f"{file.file_path} has {len(file.partition)} partition values, but partition spec "
            f"{spec.spec_id} has {len(spec.fields)} fields"
        )
    if file.record_count < 0 or file.file_size_in_bytes < 0:
        raise ValidationError(
            f"{file.file_path} states {file.record_count} records and "
            f"{file.file_size_in_bytes} bytes; neither may be negative"
        )
    if file.content is Content.DATA:
        if file.equality_ids is not None or file.referenced_data_file is not None:
            raise ValidationError(f"{file.file_path} is a data file with fields of a delete")
        return
    version = metadata.format_version
    if version < 2:
        raise ValidationError(
            f"{file.file_path} is a delete file, and format version 1 has none; "
            "upgrade the table to version 2"
        )
    if (file.content is Content.EQUALITY_DELETES) != bool(file.equality_ids):
        raise ValidationError(
            f"{file.file_path}: equality_ids are for equality deletes, and required there"
        )
    if file.content is not Content.POSITION_DELETES:
        return
    if file.is_deletion_vector:
        _check_deletion_vector(version, file)
    elif version >= 3:
        raise ValidationError(
            f"{file.file_path} is a position delete file, and none may be added in format "
            f"version {version}; write a deletion vector"
        )


def _check_deletion_vector(version: int, file: DataFile) -> None:
    if version < 3:
        raise ValidationError(
            f"{file.file_path} is a deletion vector, and format version {version} has none; "
            "write a position delete file"
        )
    blob = (file.referenced_data_file, file.content_offset, file.content_size_in_bytes)
    if None in blob:
        raise ValidationError(
            f"{file.file_path} is a deletion vector without its data file, offset or size"
        )
