"""Validation: does anything committed since an operation read the table contradict it?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from frazil.errors import ReplacedDeletesError, ValidationError
from frazil.format.manifests import (
    Content,
    DataFile,
)
from frazil.format.metadata import TableMetadata
from frazil.format.predicates.expressions import AlwaysTrue
from frazil.format.snapshots import Snapshot
from frazil.table.conflicts.history import EVERYWHERE, ChangedFile, History, Scope
from frazil.table.conflicts.rows import AddedData, OperationRows, rewritten_files
from frazil.table.manifests.file_keys import PartitionSet
from frazil.table.manifests.row_filter import Predicate

Isolation = Literal["serializable", "snapshot"]

_DELETES_OF_READ_FILES: Final = (
    "added deletes for data files of which this operation read or replaces rows"
)


def isolation_named(name: str) -> Isolation:
    """Return the isolation level of a name, in upper or lower case."""
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
        rows: reads the rows that both the operation and others changed, so that changes of
            different rows of a data file do not conflict; without it they do.
    """

    from_snapshot: int | None
    isolation: Isolation = "serializable"
    conflict_filter: Predicate = field(default_factory=AlwaysTrue)
    partitions: tuple[tuple[int, tuple[object, ...]], ...] | None = None
    check_deletes: bool = True
    case_sensitive: bool = True
    read_files: tuple[DataFile, ...] = ()
    operation: str | None = None
    rows: OperationRows | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "isolation", isolation_named(self.isolation))


def check_reads(
    history: History,
    options: Validation,
    scope: Scope,
    added: AddedData,
    *,
    metadata: TableMetadata,
    head: Snapshot | None,
) -> None:
    """Refuse what contradicts that the operation read what it did, if it is serializable."""
    if options.isolation == "serializable":
        added.check(history, scope, metadata, head)
        check_read_rows_stay(
            history, options.read_files, rows=options.rows, metadata=metadata, head=head
        )


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
            (file for file in history.removed_data(EVERYWHERE) if file.file_path in wanted),
            "removed data files that this operation's deletes are about",
        )


def check_read_rows_stay(
    history: History,
    data_files: Iterable[DataFile],
    *,
    rows: OperationRows | None = None,
    metadata: TableMetadata,
    head: Snapshot | None,
) -> None:
    """Refuse that rows were removed that decided what the operation does.

    Where others rewrote files, rows are not looked for: whatever was deleted of these files, or of
    those that the rewrites added, conflicts.
    `rows`: tells which of their rows decided; without it every row did.
    """
    files = tuple(data_files)
    if not files:
        return
    paths = {file.file_path for file in files}
    rewritten = rewritten_files(history, paths)
    moved = [*history.rewritten_data()] if rewritten else []
    now = {*(file.file_path for file in moved), *paths}
    history.refuse(
        (file for file in history.removed_rows() if file.file_path in now),
        "removed data files of which this operation read rows",
    )
    unknown: list[DataFile | ChangedFile] = [
        *moved,
        *(file for file in files if file.file_path in rewritten),
    ]
    history.refuse(Reached(history, unknown).added_deletes(), _DELETES_OF_READ_FILES)
    there = [file for file in files if file.file_path not in rewritten]
    deletes = tuple(Reached(history, there).added_deletes())
    if rows is not None and deletes:
        since = history.sequence_number_read
        gone = rows.deleted_since(metadata, head, paths - rewritten, since)
        counts = None if gone is None else rows.decisive_counts(gone)
        if counts is not None:
            for path, count in counts.items():
                history.refuse_rows(count, path, what="matched")
            return
    history.refuse(deletes, _DELETES_OF_READ_FILES)


def check_replaced_files_exist(
    history: History, *, data_files: Iterable[DataFile], deletes: Iterable[DataFile] = ()
) -> None:
    """Refuse the removal of files that the operation removes itself (rules 211, 212)."""
    data = {file.file_path for file in data_files}
    if data:
        history.refuse(
            (file for file in history.removed_data(EVERYWHERE) if file.file_path in data),
            "removed data files that this operation replaces",
        )
    replaced = {(file.file_path, file.referenced_data_file) for file in deletes}
    if replaced:
        paths = {path for path, _ in replaced}
        history.refuse(
            (
                file
                for file in history.removed_deletes()
                if file.file_path in paths
                # Several vectors may be in one file.
                and (not file.is_vector or (file.file_path, file.about) in replaced)
            ),
            "replaced deletes that this operation replaces",
            ReplacedDeletesError,
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

    `equality_deletes_still_apply`: the files that take their place keep the old data sequence
    number, so that newer equality deletes reach them as well (rule 178).
    """
    reached = Reached(history, data_files)
    history.refuse(
        (
            delete
            for delete in reached.added_deletes()
            if not (equality_deletes_still_apply and delete.content is Content.EQUALITY_DELETES)
        ),
        _DELETES_OF_READ_FILES,
    )


def check_rows_not_deleted_by_equality(
    history: History,
    data_files: Iterable[DataFile],
    rows: OperationRows,
    *,
    metadata: TableMetadata,
    head: Snapshot | None,
) -> None:
    """Refuse equality deletes that others added of rows that the operation changes."""
    files = {file.file_path: file for file in data_files}
    by_equality = [
        each
        for each in Reached(history, files.values()).added_deletes()
        if each.content is Content.EQUALITY_DELETES
    ]
    if not by_equality:
        return
    since = history.sequence_number_read
    found = rows.deleted_by_equality(metadata, head, files, since)
    if found is None:
        history.refuse(by_equality, _DELETES_OF_READ_FILES)
        return
    own = rows.own_rows(found.keys())
    for path, deleted in found.items():
        changed = own[path].deleted - own[path].earlier
        history.refuse_rows(len(deleted & changed), path)


class Reached:
    """Data files, to ask which deletes of others may be about them, by path or partition.

    Args:
        history: what was committed since the operation read the files.
        data_files: the files.
    """

    def __init__(self, history: History, data_files: Iterable[DataFile | ChangedFile]) -> None:
        files = tuple(data_files)
        self._history = history
        self._paths = frozenset(file.file_path for file in files)
        self._partitions = PartitionSet((file.spec_id, file.partition) for file in files)

    def added_deletes(self) -> Iterator[ChangedFile]:
        """The deletes that others added."""
        if self._paths:
            yield from filter(self._is_reached_by, self._history.added_deletes(EVERYWHERE))

    def _is_reached_by(self, delete: ChangedFile) -> bool:
        in_partition = (delete.spec_id, delete.partition) in self._partitions
        if delete.content is Content.EQUALITY_DELETES:
            # An equality delete of an unpartitioned spec is global (rule 178).
            return in_partition or self._history.is_unpartitioned(delete.spec_id)
        return in_partition if delete.about is None else delete.about in self._paths


def check_no_added_vectors(history: History, data_files: Iterable[str]) -> None:
    """Refuse deletion vectors of the same data files: there is at most one a file (rule 217).

    No filter and no partition narrows this check: two vectors make the table unreadable.
    """
    wanted = frozenset(data_files)
    if wanted:
        history.refuse(
            (file for file in history.added_vectors() if file.about in wanted),
            "added deletion vectors for data files that this operation deletes from",
            ReplacedDeletesError,
        )
