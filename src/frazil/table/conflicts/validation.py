"""Validation: does anything committed since an operation read the table contradict it?"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

import polars as pl

from frazil.errors import ConflictError, ValidationError
from frazil.format.manifests import (
    Content,
    DataFile,
    EntryStatus,
    ManifestContent,
    ManifestFile,
)
from frazil.format.metadata import TableMetadata
from frazil.format.predicates.expressions import AlwaysTrue
from frazil.format.snapshots import REPLACE, Snapshot
from frazil.table.conflicts.row_filter import Predicate, RowFilter
from frazil.table.manifests.entry_columns import (
    ABOUT,
    is_vector,
    partition_tuples,
    read_entry_columns,
)
from frazil.table.manifests.file_keys import PartitionSet
from frazil.table.manifests.files import ManifestFiles

Isolation = Literal["serializable", "snapshot"]


def isolation_named(name: str) -> Isolation:
    """Return the isolation level of a name, in upper or lower case.

    Raises:
        ValidationError: there is no such level.
    """
    for level in get_args(Isolation):
        if isinstance(name, str) and name.lower() == level:
            return level  # type: ignore[no-any-return]
    raise ValidationError(
        f"there is no isolation level {name!r}; the levels are {' and '.join(get_args(Isolation))}"
    )


@dataclass(frozen=True, slots=True)
class Validation:
    """What to check before a commit.

    Attributes:
        from_snapshot: the snapshot that the operation read; None if the branch was empty then.
        isolation: `serializable` also refuses data that was added where the operation read;
            `snapshot` only refuses deletes and removed files. Any other word is a
            ValidationError.
        conflict_filter: only files that can hold matching rows conflict.
        partitions: only files of these (spec id, partition tuple) pairs conflict, if given. Files
            of specs that do not occur here conflict as well: they cannot be compared.
        check_deletes: whether deletes that others added conflict. An operation that only deletes
            rows need not mind them.
        case_sensitive: how names in the filter are matched.
    """

    from_snapshot: int | None
    isolation: Isolation = "serializable"
    conflict_filter: Predicate = field(default_factory=AlwaysTrue)
    partitions: tuple[tuple[int, tuple[object, ...]], ...] | None = None
    check_deletes: bool = True
    case_sensitive: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "isolation", isolation_named(self.isolation))


class Scope:
    """Where an operation read or wrote: files elsewhere do not conflict with it."""

    def __init__(self, row_filter: RowFilter, partitions: PartitionSet | None = None) -> None:
        self._filter = row_filter
        self._partitions = partitions

    def __str__(self) -> str:
        if self._partitions is None:
            return f"that can contain rows matching {self._filter}"
        return f"in the {len(self._partitions)} partitions that this operation touches"

    def may_hold(self, metadata: TableMetadata, manifest: ManifestFile) -> bool:
        """Whether a manifest can track files of the scope."""
        partitions = self._partitions
        if (
            partitions is not None
            and manifest.partition_spec_id in partitions.spec_ids
            and not partitions.may_be_in(metadata, manifest)
        ):
            return False
        return self._filter.may_match(metadata, manifest)

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

    path: str
    content: Content
    spec_id: int
    partition: tuple[object, ...]
    about: str | None
    is_vector: bool
    sequence_number: int | None


class History:
    """What others committed to a branch after a snapshot.

    Args:
        files: reads manifests.
        metadata: the table.
        head: the newest snapshot of the branch.
        from_snapshot: the snapshot that the operation read; None where the branch was empty.
        own: snapshots of the operation's own transaction, which nobody else sees.
    """

    def __init__(
        self,
        files: ManifestFiles,
        metadata: TableMetadata,
        head: Snapshot | None,
        from_snapshot: int | None,
        *,
        own: Collection[int] = (),
    ) -> None:
        self._files = files
        self._metadata = metadata
        self._from_snapshot = from_snapshot
        self.snapshots = snapshots_since(metadata, head, from_snapshot, own=own)

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
        for snapshot in self.snapshots:
            if snapshot.operation == REPLACE:
                continue
            yield from self._select(snapshot, ManifestContent.DATA, EntryStatus.ADDED, scope)

    def added_deletes(self, scope: Scope) -> Iterator[ChangedFile]:
        """Delete files and vectors that were added, by rewrites too.

        A rewrite may put positions in place of an equality delete: who replaces the data file
        that they are about would lose them.
        """
        for snapshot in self.snapshots:
            yield from self._select(snapshot, ManifestContent.DELETES, EntryStatus.ADDED, scope)

    def removed_data(self, scope: Scope) -> Iterator[ChangedFile]:
        """Data files that were removed, by rewrites too."""
        for snapshot in self.snapshots:
            yield from self._select(snapshot, ManifestContent.DATA, EntryStatus.DELETED, scope)

    def rewritten_data(self) -> Iterator[ChangedFile]:
        """Data files that rewrites added: their rows are older than the files."""
        for snapshot in self.snapshots:
            if snapshot.operation == REPLACE:
                yield from self._select(
                    snapshot, ManifestContent.DATA, EntryStatus.ADDED, EVERYWHERE
                )

    def added_vectors(self) -> Iterator[ChangedFile]:
        """Deletion vectors that were added, wherever and however."""
        for snapshot in self.snapshots:
            for file in self._select(
                snapshot, ManifestContent.DELETES, EntryStatus.ADDED, EVERYWHERE
            ):
                if file.is_vector:
                    yield file

    def _select(
        self,
        snapshot: Snapshot,
        content: ManifestContent,
        status: EntryStatus,
        scope: Scope,
    ) -> Iterator[ChangedFile]:
        """The files of that status in manifests that the snapshot itself wrote."""
        for manifest in self._files.manifests_of(snapshot):
            if manifest.content is not content:
                continue
            if manifest.added_snapshot_id != snapshot.snapshot_id:
                continue
            if status is EntryStatus.ADDED and not manifest.has_added_files:
                continue
            if status is EntryStatus.DELETED and not manifest.has_deleted_files:
                continue
            if scope.may_hold(self._metadata, manifest):
                yield from self._changed(manifest, snapshot, status, scope)

    def _changed(
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
        )
        partitions = partition_tuples(metadata, manifest.partition_spec_id, found)
        return [
            ChangedFile(path, Content(content), spec_id, partition, about, vector, number)
            for (path, content, spec_id, about, vector, number), partition in zip(
                columns.iter_rows(), partitions, strict=True
            )
        ]


def snapshots_since(
    metadata: TableMetadata,
    head: Snapshot | None,
    from_snapshot: int | None,
    *,
    own: Collection[int] = (),
) -> tuple[Snapshot, ...]:
    """Return the snapshots after `from_snapshot` up to `head`, newest first, without one's own.

    Raises:
        ConflictError: `from_snapshot` is no ancestor of `head` that is still known, so what
            happened since cannot be told.
    """
    if head is None:
        if from_snapshot is None:
            return ()
        raise ConflictError(
            f"the branch is empty, but the operation read snapshot {from_snapshot}; "
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
    read = "an empty branch" if from_snapshot is None else f"snapshot {from_snapshot}"
    raise ConflictError(
        f"the operation read {read}, but the history from there to snapshot {head.snapshot_id} is "
        "not known: the branch was rolled back or snapshots expired meanwhile; read the table again"
    )


def check_no_added_data(history: History, scope: Scope) -> None:
    """Refuse data that was added where the operation read (serializable isolation)."""
    _refuse(history.added_data(scope), f"added data files {scope}")


def check_no_added_deletes(history: History, scope: Scope) -> None:
    """Refuse deletes that were added where the operation read."""
    _refuse(history.added_deletes(scope), f"added delete files {scope}")


def check_no_removed_data(history: History, scope: Scope) -> None:
    """Refuse data files that were removed where the operation read."""
    _refuse(history.removed_data(scope), f"removed data files {scope}")


def check_data_files_exist(history: History, paths: Iterable[str]) -> None:
    """Refuse the removal of data files that the operation's deletes are about."""
    wanted = frozenset(paths)
    if wanted:
        _refuse(
            (file for file in history.removed_data(EVERYWHERE) if file.path in wanted),
            "removed data files that this operation's deletes are about",
        )


def check_equality_deletes_not_needed(history: History) -> None:
    """Refuse to take equality deletes away while rewritten data still needs them.

    A rewrite's files count as older than equality deletes that the rewrite did not see. Whoever
    replaced those deletes by positions did so for the files that were there when it read.
    """
    read = history.sequence_number_read
    _refuse(
        (
            file
            for file in history.rewritten_data()
            if file.sequence_number is not None and file.sequence_number < read
        ),
        "rewritten data files that the equality deletes which this operation removes apply to",
    )


def check_no_new_deletes_for(
    history: History, data_files: Iterable[DataFile], *, equality_deletes_still_apply: bool
) -> None:
    """Refuse deletes that were added to data files which the operation removes or rewrites.

    Args:
        history: what was committed since the operation read the files.
        data_files: the files that it removes.
        equality_deletes_still_apply: the files that take their place keep the old data sequence
            number, so that newer equality deletes reach them as well (rule 178).
    """
    files = tuple(data_files)
    if not files:
        return
    paths = frozenset(file.file_path for file in files)
    partitions = PartitionSet((file.spec_id, file.partition) for file in files)

    def reaches(delete: ChangedFile) -> bool:
        if delete.content is Content.EQUALITY_DELETES:
            if equality_deletes_still_apply:
                return False
            # An equality delete of an unpartitioned spec is global (rule 178).
            return (
                history.is_unpartitioned(delete.spec_id)
                or (delete.spec_id, delete.partition) in partitions
            )
        if delete.about is not None:
            return delete.about in paths
        return (delete.spec_id, delete.partition) in partitions

    _refuse(
        (delete for delete in history.added_deletes(EVERYWHERE) if reaches(delete)),
        "added deletes for data files that this operation replaces",
    )


def check_no_added_vectors(history: History, data_files: Iterable[str]) -> None:
    """Refuse deletion vectors of the same data files: there is at most one a file (rule 217).

    No filter and no partition narrows this check: two vectors make the table unreadable.
    """
    wanted = frozenset(data_files)
    if wanted:
        _refuse(
            (file for file in history.added_vectors() if file.about in wanted),
            "added deletion vectors for data files that this operation deletes from",
        )


EVERYWHERE = Scope(RowFilter(AlwaysTrue()))


def _refuse(files: Iterable[ChangedFile], what: str) -> None:
    first = next(iter(files), None)
    if first is not None:
        about = f" (about {first.about})" if first.about is not None else ""
        raise ConflictError(
            f"another commit has {what}: {first.path}{about}; "
            "run the operation again on the current snapshot"
        )
