"""Rows that an operation and others changed: of the same data files, and in files that were added.

A file tells little: two commands may change different rows of it. What each deleted is compared as
positions, and rows that others added are tested with the operation's own condition.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pyroaring import BitMap64

from frazil.format.manifests import DataFile
from frazil.format.metadata import TableMetadata
from frazil.format.snapshots import REPLACE, Snapshot
from frazil.table.conflicts.history import EVERYWHERE, ChangedFile, History, Scope


@dataclass(frozen=True, slots=True)
class OwnRows:
    """The rows of a data file that an operation deletes.

    Attributes:
        deleted: the positions that it deletes.
        earlier: the positions that were deleted when it read the table.
    """

    deleted: BitMap64
    earlier: BitMap64


@dataclass(frozen=True, slots=True)
class SharedFile:
    """A data file of which an operation and others delete rows.

    Attributes:
        path: the data file.
        own: what the operation does to it.
        now: the positions that are deleted by now, those of others among them.
    """

    path: str
    own: OwnRows
    now: BitMap64

    @property
    def deleted_by_both(self) -> int:
        """How many rows the operation and others delete."""
        return len(self.now & (self.own.deleted - self.own.earlier))

    @property
    def all_deleted(self) -> BitMap64:
        """All that is deleted when the operation has come after the others."""
        return self.own.earlier | self.own.deleted | self.now


@dataclass(frozen=True, slots=True)
class MovedDeletes:
    """Deletes of rows where they are now: others wrote the rows' files anew.

    Attributes:
        added: the deletes.
        removed: deletes of others that these take in.
        about: the data files that they are about.
        count: how many rows they delete.
        missing: by data file that is gone, how many of its rows others have deleted or changed.
    """

    added: tuple[DataFile, ...] = ()
    removed: tuple[DataFile, ...] = ()
    about: tuple[str, ...] = ()
    count: int = 0
    missing: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MovedTo:
    """Data files that others added, in which rows of files that are gone may be.

    Attributes:
        every: all of them.
        copies: those that have the rows of other files, which they replace.
        same: those of the copies that have no rows but such as were there when the operation read:
            there a row that equals one of the operation's is one of them.
    """

    every: Collection[str]
    copies: Collection[str]
    same: Collection[str]


@dataclass(frozen=True, slots=True)
class DeletesOfCopies:
    """Deletes of rows in an operation's new files: others deleted them in the files it replaces.

    Attributes:
        added: the deletes.
        count: how many rows they delete.
        deleted_by_both: by replaced data file, how many of the rows the operation deletes as well.
        changed_by_both: likewise, how many of the rows it changes.
    """

    added: tuple[DataFile, ...] = ()
    count: int = 0
    deleted_by_both: Mapping[str, int] = field(default_factory=dict)
    changed_by_both: Mapping[str, int] = field(default_factory=dict)


class OperationRows(Protocol):
    """Reads the rows that decide whether an operation and others contradict each other."""

    def own_rows(self, paths: Collection[str]) -> Mapping[str, OwnRows]:
        """Return what the operation deletes of these data files."""

    def deleted_by(
        self, deletes: Sequence[DataFile], paths: Collection[str]
    ) -> Mapping[str, BitMap64]:
        """Return the positions that position deletes or vectors delete of these data files."""

    def write_vectors(
        self, metadata: TableMetadata, deleted: Mapping[str, BitMap64]
    ) -> Sequence[DataFile]:
        """Write deletion vectors of data files, which become part of the operation."""

    def deleted_since(
        self, metadata: TableMetadata, head: Snapshot | None, paths: Collection[str], since: int
    ) -> Mapping[str, BitMap64] | None:
        """Return the positions of rows that others deleted since the operation read the table.

        Returns positions by path, without files that have none; those of rows that were deleted
        before may be among them. None where nobody can tell.
        """

    def deleted_by_equality(
        self, metadata: TableMetadata, head: Snapshot | None, paths: Collection[str], since: int
    ) -> Mapping[str, BitMap64] | None:
        """Return those of `deleted_since` that equality deletes of others delete."""

    def decisive_counts(self, rows: Mapping[str, BitMap64]) -> Mapping[str, int] | None:
        """Count those of some rows that decided what the operation does.

        Returns how many by path, without files that have none; None where nobody can tell.
        """

    def move_deletes(
        self,
        metadata: TableMetadata,
        head: Snapshot | None,
        gone: Collection[str],
        written: MovedTo,
        since: int,
    ) -> MovedDeletes | None:
        """Write the deletes of the operation's rows anew, where others moved them.

        Of `gone`, data files that others removed, the operation deletes rows; `written` are those
        that they added. None where the rows cannot be told.
        """

    def deletes_of_copies(
        self,
        metadata: TableMetadata,
        deleted: Mapping[str, BitMap64],
        copies: Sequence[DataFile],
    ) -> DeletesOfCopies | None:
        """Write deletes of rows in the operation's own new files.

        `all_deleted` are the positions that others deleted, by the data files that the operation
        replaces. None where the rows cannot be told.
        """

    def matching_counts(
        self, metadata: TableMetadata, head: Snapshot | None, paths: Collection[str], since: int
    ) -> Mapping[str, int] | None:
        """Count the rows of live data files that the operation would have been about.

        `since`: a sequence number; rows that surely are as they were then do not count.
        Returns how many by path, without files that have none; None where nobody can tell, or where
        it would take too long.
        """


def shared_files(
    rows: OperationRows, deletes: Sequence[DataFile], paths: Collection[str]
) -> list[SharedFile]:
    """Return the data files of which an operation and these deletes delete rows."""
    now = rows.deleted_by(deletes, paths)
    own = rows.own_rows(now.keys())
    return [SharedFile(path, own[path], now[path]) for path in now if path in own]


class AddedData:
    """Whether data files that others added hold rows that an operation would have been about.

    What was looked into once is not looked into again by a later try.

    Args:
        rows: tests rows; without it a file conflicts when metadata allows it to hold such rows.
    """

    def __init__(self, rows: OperationRows | None) -> None:
        self._rows = rows
        self._without: set[str] = set()

    @property
    def tested_files(self) -> int:
        """How many data files were found to hold no such row."""
        return len(self._without)

    def check(
        self, history: History, scope: Scope, metadata: TableMetadata, head: Snapshot | None
    ) -> None:
        """Refuse data that was added where the operation read (serializable isolation)."""
        added = [file for file in history.added_data(scope) if file.file_path not in self._without]
        if added and self._rows is not None:
            added = self._that_match(self._rows, history, added, metadata, head)
        history.refuse(added, f"added data files {scope}")

    def _that_match(
        self,
        rows: OperationRows,
        history: History,
        added: Sequence[ChangedFile],
        metadata: TableMetadata,
        head: Snapshot | None,
    ) -> list[ChangedFile]:
        paths = {file.file_path for file in added}
        rewritten = rewritten_files(history, paths)
        moved: set[str] = set()
        if rewritten and metadata.format_version >= 3:
            # The rows that others added are in these by now, among others.
            moved = {file.file_path for file in history.rewritten_data()}
        since = history.sequence_number_read
        counts = rows.matching_counts(metadata, head, (paths - rewritten) | moved, since)
        if counts is None:
            return list(added)
        found = set(counts) - moved
        if not moved or not moved.isdisjoint(counts):
            found |= rewritten
        self._without |= paths - found
        return [file for file in added if file.file_path in found]


def rewritten_files(history: History, paths: Iterable[str]) -> set[str]:
    """Return those of some files that rewrites removed: their rows are in others by now."""
    if all(snapshot.operation != REPLACE for snapshot in history.snapshots):
        return set()
    removed = {
        file.file_path
        for file in history.removed_data(EVERYWHERE)
        if file.snapshot.operation == REPLACE
    }
    return removed.intersection(paths)
