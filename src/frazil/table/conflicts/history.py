"""What others committed to a branch since an operation read the table."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from frazil.errors import ConflictError
from frazil.format.manifests import (
    Content,
    DataFile,
    EntryStatus,
    FileFormat,
    ManifestContent,
    ManifestFile,
)
from frazil.format.metadata import TableMetadata
from frazil.format.predicates.expressions import AlwaysTrue
from frazil.format.snapshots import REPLACE, Snapshot
from frazil.table.manifests.entry_columns import (
    ABOUT,
    is_vector,
    partition_tuples,
    read_entry_columns,
)
from frazil.table.manifests.file_keys import PartitionSet
from frazil.table.manifests.files import ManifestFiles
from frazil.table.manifests.row_filter import RowFilter

_SHOWN: Final = 3
"""The most files that an error names."""


class Scope:
    """Where an operation read or wrote: files elsewhere do not conflict with it."""

    def __init__(self, row_filter: RowFilter, partitions: PartitionSet | None = None) -> None:
        self._filter = row_filter
        self._partitions = partitions

    def __str__(self) -> str:
        if self._partitions is None:
            return f"that can contain rows matching {self._filter}"
        return f"in the {len(self._partitions)} partitions that this operation touches"

    def manifests_in_scope(
        self, metadata: TableMetadata, manifests: Sequence[ManifestFile]
    ) -> list[ManifestFile]:
        """Those of the manifests that can track files of the scope."""
        partitions = self._partitions
        return [
            manifest
            for manifest, may in zip(
                manifests, self._filter.may_match(metadata, manifests), strict=True
            )
            if may
            and (
                partitions is None
                or manifest.partition_spec_id not in partitions.spec_ids
                or partitions.may_be_in(metadata, manifest)
            )
        ]

    def holds(
        self, metadata: TableMetadata, manifest: ManifestFile, entries: pl.DataFrame
    ) -> pl.Series:
        """Which files of the manifest are in the scope."""
        matching = self._filter.any_match(metadata, manifest, entries)
        partitions = self._partitions
        spec_id = manifest.partition_spec_id
        if partitions is None or spec_id not in partitions.spec_ids:
            return matching
        return matching & pl.Series(
            [
                (spec_id, partition) in partitions
                for partition in partition_tuples(metadata, spec_id, entries)
            ],
            dtype=pl.Boolean,
        )

    def statistics(self, metadata: TableMetadata) -> Mapping[str, Collection[int]]:
        """The statistics that `holds` looks at."""
        return self._filter.statistics(metadata)


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """What validation needs to know of a file that was added or removed."""

    file_path: str
    content: Content
    spec_id: int
    partition: tuple[object, ...]
    about: str | None
    is_vector: bool
    sequence_number: int | None
    snapshot: Snapshot
    file_format: FileFormat
    record_count: int
    size_in_bytes: int

    def as_position_deletes(self) -> DataFile:
        """Return the position delete file, to be read."""
        return DataFile(
            content=self.content,
            file_path=self.file_path,
            file_format=self.file_format,
            spec_id=self.spec_id,
            partition=self.partition,
            record_count=self.record_count,
            file_size_in_bytes=self.size_in_bytes,
            referenced_data_file=self.about,
        )


class History:
    """What others committed to a branch after a snapshot.

    Args:
        files: reads manifests.
        metadata: the table.
        head: the newest snapshot of the branch.
        from_snapshot: the snapshot that the operation read; None where the branch was empty.
        own: snapshots of the operation's own transaction, which nobody else sees.
        operation: what errors call the operation.
    """

    def __init__(
        self,
        files: ManifestFiles,
        metadata: TableMetadata,
        head: Snapshot | None,
        from_snapshot: int | None,
        *,
        own: Collection[int] = (),
        operation: str = "operation",
    ) -> None:
        self._files = files
        self._metadata = metadata
        self._from_snapshot = from_snapshot
        self._operation = operation
        self.snapshots = snapshots_since(
            metadata, head, from_snapshot, own=own, operation=operation
        )

    @property
    def sequence_number_read(self) -> int:
        """The sequence number of the snapshot that the operation read, 0 for an empty branch."""
        if self._from_snapshot is None:
            return 0
        return self._metadata.snapshot_by_id(self._from_snapshot).sequence_number

    def is_unpartitioned(self, spec_id: int) -> bool:
        """Whether deletes of this spec are global (rule 178)."""
        return self._metadata.spec_by_id(spec_id).is_unpartitioned

    def added_data(self, scope: Scope) -> Iterator[ChangedFile]:
        """Data files that were added; rewrites add no rows and are left out."""
        return self._select(ManifestContent.DATA, EntryStatus.ADDED, scope, by_rewrites=False)

    def added_deletes(self, scope: Scope) -> Iterator[ChangedFile]:
        """Delete files and vectors that were added, by rewrites too.

        A rewrite may put positions in place of an equality delete: who replaces the data file
        that they are about would lose them.
        """
        return self._select(ManifestContent.DELETES, EntryStatus.ADDED, scope)

    def removed_rows(self) -> Iterator[ChangedFile]:
        """Data files that were removed; rewrites remove no rows and are left out."""
        return self._select(
            ManifestContent.DATA, EntryStatus.DELETED, EVERYWHERE, by_rewrites=False
        )

    def removed_data(self, scope: Scope) -> Iterator[ChangedFile]:
        """Data files that were removed, by rewrites too."""
        return self._select(ManifestContent.DATA, EntryStatus.DELETED, scope)

    def removed_deletes(self) -> Iterator[ChangedFile]:
        """Delete files and vectors that were removed, wherever and however."""
        return self._select(ManifestContent.DELETES, EntryStatus.DELETED, EVERYWHERE)

    def rewritten_data(self) -> Iterator[ChangedFile]:
        """Data files that rewrites added: their rows are older than the files."""
        return self._select(ManifestContent.DATA, EntryStatus.ADDED, EVERYWHERE, by_rewrites=True)

    def added_vectors(self) -> Iterator[ChangedFile]:
        """Deletion vectors that were added, wherever and however."""
        return (file for file in self.added_deletes(EVERYWHERE) if file.is_vector)

    def refuse(
        self,
        files: Iterable[ChangedFile],
        what: str,
        error: type[ConflictError] = ConflictError,
    ) -> None:
        """Refuse the operation if there is such a file.

        It is raised as the class given.
        """
        found = list(itertools.islice(files, _SHOWN + 1))
        if not found:
            return
        snapshot = found[0].snapshot
        of_snapshot = [file for file in found if file.snapshot is snapshot]
        shown = [
            file.file_path if file.about is None else f"{file.file_path} (about {file.about})"
            for file in of_snapshot[:_SHOWN]
        ]
        more = ", …" if len(of_snapshot) > _SHOWN else ""
        by = f" ({snapshot.operation})" if snapshot.operation else ""
        raise error(
            self._refusal(
                f"another commit, snapshot {snapshot.snapshot_id}{by}, has {what}: "
                f"{', '.join(shown)}{more}"
            )
        )

    def refuse_rows(self, count: int, path: str, *, what: str = "changes too") -> None:
        """Refuse the operation if others deleted or changed rows that it changes too."""
        if count:
            numbers = ", ".join(str(each.snapshot_id) for each in self.snapshots[:_SHOWN])
            raise ConflictError(
                self._refusal(
                    f"other commits, of snapshots {numbers} (the newest first), have deleted or "
                    f"changed {count} row{'s' if count > 1 else ''} of {path} that this "
                    f"{self._operation} {what}"
                )
            )

    def _refusal(self, what: str) -> str:
        return (
            f"the {self._operation} read {_snapshot_label(self._from_snapshot)}, and since then "
            f"{what}; run the {self._operation} again on the current snapshot"
        )

    def _select(
        self,
        content: ManifestContent,
        status: EntryStatus,
        scope: Scope,
        *,
        by_rewrites: bool | None = None,
    ) -> Iterator[ChangedFile]:
        """The files of that status in manifests that the snapshots themselves wrote."""
        for snapshot in self.snapshots:
            if by_rewrites not in (None, snapshot.operation == REPLACE):
                continue
            own = [
                manifest
                for manifest in self._files.manifests_of(snapshot)
                if manifest.content is content
                and manifest.added_snapshot_id == snapshot.snapshot_id
                and (status is not EntryStatus.ADDED or manifest.has_added_files)
                and (status is not EntryStatus.DELETED or manifest.has_deleted_files)
            ]
            for manifest in scope.manifests_in_scope(self._metadata, own):
                yield from self._changed_files(manifest, snapshot, status, scope)

    def _changed_files(
        self, manifest: ManifestFile, snapshot: Snapshot, status: EntryStatus, scope: Scope
    ) -> list[ChangedFile]:
        metadata = self._metadata
        entries = read_entry_columns(
            self._files.io, metadata, manifest, values=scope.statistics(metadata)
        )
        of_snapshot = (entries["status"] == int(status)) & (
            entries["snapshot_id"] == snapshot.snapshot_id
        )
        found = entries.filter(of_snapshot & scope.holds(metadata, manifest, entries))
        columns = found.select(
            "file_path",
            "content",
            "spec_id",
            ABOUT,
            is_vector().alias("is_vector"),
            "sequence_number",
            "file_format",
            "record_count",
            "file_size_in_bytes",
        )
        partitions = partition_tuples(metadata, manifest.partition_spec_id, found)
        return [
            ChangedFile(
                path, Content(content), spec_id, partition, about, vector, number, snapshot, *read
            )
            for (path, content, spec_id, about, vector, number, *read), partition in zip(
                columns.iter_rows(), partitions, strict=True
            )
        ]


def snapshots_since(
    metadata: TableMetadata,
    head: Snapshot | None,
    from_snapshot: int | None,
    *,
    own: Collection[int] = (),
    operation: str = "operation",
) -> tuple[Snapshot, ...]:
    """Return the snapshots after `from_snapshot` up to `head`, newest first, without one's own.

    Raises ConflictError: `from_snapshot` is no ancestor of `head` that is still known, so what
    happened since cannot be told.
    """
    if head is None:
        if from_snapshot is None:
            return ()
        raise ConflictError(
            f"the branch is empty, but the {operation} read snapshot {from_snapshot}; "
            "read the table again"
        )
    if head.snapshot_id == from_snapshot:
        return ()
    chain = metadata.ancestors_of(head.snapshot_id)
    found: list[Snapshot] = []
    for snapshot in chain:
        if snapshot.snapshot_id == from_snapshot:
            return tuple(found)
        if snapshot.snapshot_id not in own:
            found.append(snapshot)
    if from_snapshot is None and chain[-1].parent_snapshot_id is None:
        return tuple(found)
    raise ConflictError(
        f"the {operation} read {_snapshot_label(from_snapshot)}, but the history from there to "
        f"snapshot {head.snapshot_id} is not known: the branch was rolled back or snapshots "
        "expired meanwhile; read the table again"
    )


def _snapshot_label(snapshot_id: int | None) -> str:
    return "an empty branch" if snapshot_id is None else f"snapshot {snapshot_id}"


EVERYWHERE = Scope(RowFilter(AlwaysTrue()))
