"""The rows that a copy-on-write change has copied beside what others deleted of the same files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from frazil.format.manifests import DataFile
from frazil.format.metadata import TableMetadata
from frazil.format.snapshots import Snapshot
from frazil.format.snapshots.summaries import MOVED_ROWS, RIVAL_SNAPSHOTS
from frazil.table.conflicts.history import History
from frazil.table.conflicts.rows import OperationRows
from frazil.table.conflicts.validation import (
    FilePlace,
    Reached,
    check_no_new_deletes_for,
)


class CopiedRows:
    """Deletes of rows that others deleted while their files were copied.

    Args:
        rows: finds rows in files, and writes deletes.
        replaced: the data files that the operation removes.
        copies: the data files that it adds.
        twice: whether others may have deleted rows that the operation deletes as well.

    Attributes:
        deletes: what to add in this try.
        rivals: how many snapshots of others this try comes after.
    """

    def __init__(
        self,
        rows: OperationRows,
        *,
        replaced: Sequence[DataFile],
        copies: Sequence[DataFile],
        twice: bool,
    ) -> None:
        self._rows = rows
        self._replaced = tuple(replaced)
        self._copies = tuple(copies)
        self._twice = twice
        self._made: list[DataFile] = []
        self._count = 0
        self.deletes: tuple[DataFile, ...] = ()
        self.rivals = 0

    @property
    def made_paths(self) -> set[str]:
        """Files that were written for tries."""
        return {file.file_path for file in self._made}

    @property
    def unused_paths(self) -> set[str]:
        """Those of them that this try does not add."""
        return self.made_paths - {file.file_path for file in self.deletes}

    def summary(self) -> Mapping[str, str]:
        """Return entries of the snapshot's summary."""
        return {RIVAL_SNAPSHOTS: str(self.rivals), MOVED_ROWS: str(self._count)}

    def follow(self, history: History, metadata: TableMetadata, head: Snapshot | None) -> None:
        """Delete what others deleted.

        Raises ConflictError: they deleted or changed a row that the operation changes, or nobody
        can tell which rows these are.
        """
        self.deletes, self._count = (), 0
        self.rivals = len(history.snapshots)
        replaced = {file.file_path: file for file in self._replaced}
        reached = Reached(history, map(FilePlace.of_file, self._replaced))
        if next(reached.added_deletes(), None) is None:
            return
        since = history.sequence_number_read
        deleted = self._rows.deleted_since(metadata, head, replaced, since)
        found = None
        if deleted is not None:
            found = self._rows.deletes_of_copies(metadata, deleted, self._copies)
        if found is None:
            check_no_new_deletes_for(history, self._replaced, equality_deletes_still_apply=False)
            return
        self._made += found.added
        for path, count in found.changed_by_both.items():
            history.refuse_rows(count, path)
        if not self._twice:
            for path, count in found.deleted_by_both.items():
                history.refuse_rows(count, path)
        self.deletes, self._count = found.added, found.count
