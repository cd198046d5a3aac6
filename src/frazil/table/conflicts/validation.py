"""Validation: does anything committed since an operation read the table contradict it?"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

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

_SHOWN: Final = 3
"""An error names so many files."""


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
        read_files: data files that stay, of which rows decided what the operation does: what others
            removed of them conflicts, as `serializable` asks.
        operation: what errors call the operation, such as ``merge``; unless given, what its
            snapshot's summary says.
    """

    from_snapshot: int | None
    isolation: Isolation = "serializable"
    conflict_filter: Predicate = field(default_factory=AlwaysTrue)
    partitions: tuple[tuple[int, tuple[object, ...]], ...] | None = None
    check_deletes: bool = True
    case_sensitive: bool = True
    read_files: tuple[DataFile, ...] = ()
    operation: str | None = None

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
    snapshot: Snapshot


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

    def removed_rows(self) -> Iterator[ChangedFile]:
        """Data files that were removed; rewrites remove no rows and are left out."""
        for snapshot in self.snapshots:
            if snapshot.operation != REPLACE:
                yield from self._select(
                    snapshot, ManifestContent.DATA, EntryStatus.DELETED, EVERYWHERE
                )

    def removed_data(self, scope: Scope) -> Iterator[ChangedFile]:
        """Data files that were removed, by rewrites too."""
        for snapshot in self.snapshots:
            yield from self._select(snapshot, ManifestContent.DATA, EntryStatus.DELETED, scope)

    def removed_deletes(self) -> Iterator[ChangedFile]:
        """Delete files and vectors that were removed, wherever and however."""
        for snapshot in self.snapshots:
            yield from self._select(
                snapshot, ManifestContent.DELETES, EntryStatus.DELETED, EVERYWHERE
            )

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

    def refuse(self, files: Iterable[ChangedFile], what: str) -> None:
        """Refuse the operation if there is such a file.

        Raises:
            ConflictError: there is one.
        """
        found = list(itertools.islice(files, _SHOWN + 1))
        if not found:
            return
        snapshot = found[0].snapshot
        of_snapshot = [file for file in found if file.snapshot is snapshot]
        shown = [
            file.path if file.about is None else f"{file.path} (about {file.about})"
            for file in of_snapshot[:_SHOWN]
        ]
        more = ", …" if len(of_snapshot) > _SHOWN else ""
        by = f" ({snapshot.operation})" if snapshot.operation else ""
        raise ConflictError(
            f"the {self._operation} read {_called(self._from_snapshot)}, and since then another "
            f"commit, snapshot {snapshot.snapshot_id}{by}, has {what}: {', '.join(shown)}{more}; "
            f"run the {self._operation} again on the current snapshot"
        )

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
            ChangedFile(path, Content(content), spec_id, partition, about, vector, number, snapshot)
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
    operation: str = "operation",
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
        f"the {operation} read {_called(from_snapshot)}, but the history from there to snapshot "
        f"{head.snapshot_id} is not known: the branch was rolled back or snapshots expired "
        "meanwhile; read the table again"
    )


def _called(snapshot_id: int | None) -> str:
    return "an empty branch" if snapshot_id is None else f"snapshot {snapshot_id}"


def check_no_added_data(history: History, scope: Scope) -> None:
    """Refuse data that was added where the operation read (serializable isolation)."""
    history.refuse(history.added_data(scope), f"added data files {scope}")


def check_no_added_deletes(history: History, scope: Scope) -> None:
    """Refuse deletes that were added where the operation read."""
    history.refuse(history.added_deletes(scope), f"added delete files {scope}")


def check_no_removed_data(history: History, scope: Scope) -> None:
    """Refuse data files that were removed where the operation read."""
    history.refuse(history.removed_data(scope), f"removed data files {scope}")


def check_data_files_exist(history: History, paths: Iterable[str]) -> None:
    """Refuse the removal of data files that the operation's deletes are about."""
    wanted = frozenset(paths)
    if wanted:
        history.refuse(
            (file for file in history.removed_data(EVERYWHERE) if file.path in wanted),
            "removed data files that this operation's deletes are about",
        )


def check_read_rows_stay(history: History, data_files: Iterable[DataFile]) -> None:
    """Refuse that rows were removed of files whose rows decided what the operation does."""
    files = tuple(data_files)
    paths = {file.file_path for file in files}
    if not paths:
        return
    history.refuse(
        (file for file in history.removed_rows() if file.path in paths),
        "removed data files of which this operation read rows",
    )
    check_no_new_deletes_for(history, files, equality_deletes_still_apply=False)


def check_replaced_files_exist(
    history: History, *, data_files: Iterable[DataFile], deletes: Iterable[DataFile] = ()
) -> None:
    """Refuse the removal of files that the operation removes itself (rules 211, 212)."""
    data = {file.file_path for file in data_files}
    if data:
        history.refuse(
            (file for file in history.removed_data(EVERYWHERE) if file.path in data),
            "removed data files that this operation replaces",
        )
    replaced = {(file.file_path, file.referenced_data_file) for file in deletes}
    if replaced:
        paths = {path for path, _ in replaced}
        history.refuse(
            (
                file
                for file in history.removed_deletes()
                if file.path in paths
                # Several vectors may be in one file.
                and (not file.is_vector or (file.path, file.about) in replaced)
            ),
            "replaced deletes that this operation replaces",
        )


def check_equality_deletes_not_needed(history: History) -> None:
    """Refuse to take equality deletes away while rewritten data still needs them.

    A rewrite's files count as older than equality deletes that the rewrite did not see. Whoever
    replaced those deletes by positions did so for the files that were there when it read.
    """
    read = history.sequence_number_read
    history.refuse(
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

    history.refuse(
        (delete for delete in history.added_deletes(EVERYWHERE) if reaches(delete)),
        "added deletes for data files of which this operation read or replaces rows",
    )


def check_no_added_vectors(history: History, data_files: Iterable[str]) -> None:
    """Refuse deletion vectors of the same data files: there is at most one a file (rule 217).

    No filter and no partition narrows this check: two vectors make the table unreadable.
    """
    wanted = frozenset(data_files)
    if wanted:
        history.refuse(
            (file for file in history.added_vectors() if file.about in wanted),
            "added deletion vectors for data files that this operation deletes from",
        )


EVERYWHERE = Scope(RowFilter(AlwaysTrue()))
