"""CreateBranch: a branch at a snapshot, or an empty one on an empty table."""

from __future__ import annotations

from frazil.errors import AlreadyExistsError
from frazil.format.arguments import SnapshotId
from frazil.format.changes import Update
from frazil.format.metadata import TableMetadata
from frazil.format.snapshots import MAIN_BRANCH, Snapshot
from frazil.storage.files import FileIO
from frazil.table.commit.operation import Changes, Operation
from frazil.table.snapshots.append import FastAppend
from frazil.table.snapshots.producer import SnapshotOptions
from frazil.table.updates.references import DEFAULT_RETENTION, Retention, branch_ref, create_branch


class CreateBranch:
    """Make a branch, as the table is when the commit takes place.

    On an empty table there is no snapshot to point at: the branch begins with one that has no
    files.
    """

    def __init__(
        self,
        io: FileIO,
        name: str,
        *,
        snapshot_id: SnapshotId | None = None,
        retention: Retention = DEFAULT_RETENTION,
    ) -> None:
        self._at_snapshot = create_branch(name, snapshot_id=snapshot_id, retention=retention)
        self._empty = _EmptyBranch(io, name, retention)
        self._may_be_empty = snapshot_id is None
        self._chosen: Operation = self._at_snapshot

    def changes(self, base: TableMetadata, *, committed: TableMetadata | None = None) -> Changes:
        """Return the new branch.

        Raises:
            AlreadyExistsError: the name is taken.
            NoSuchSnapshotError: there is no such snapshot.
        """
        is_empty = self._may_be_empty and base.current_snapshot_id is None
        self._chosen = self._empty if is_empty else self._at_snapshot
        return self._chosen.changes(base, committed=committed)

    @property
    def made_snapshots(self) -> frozenset[int]:
        """The empty snapshot, or none."""
        return self._chosen.made_snapshots

    def is_in(self, metadata: TableMetadata) -> bool | None:
        """Return whether the empty snapshot is there; None for a branch at a snapshot."""
        return self._chosen.is_in(metadata)

    def on_committed(self, metadata: TableMetadata) -> None:
        """Remove what earlier tries wrote."""
        if self._chosen is self._empty:
            self._empty.on_committed(metadata)
        else:
            self._empty.on_abandoned()

    def on_abandoned(self) -> None:
        """Remove what was written."""
        self._empty.on_abandoned()


class _EmptyBranch(FastAppend):
    """A snapshot without files that starts a new branch of an empty table."""

    def __init__(self, io: FileIO, name: str, retention: Retention) -> None:
        super().__init__(io, (), SnapshotOptions(branch=name))
        self._retention = retention

    def head(self, base: TableMetadata) -> Snapshot | None:
        """Return nothing to build on.

        Raises:
            AlreadyExistsError: the branch is there.
        """
        if self.options.branch in base.refs or self.options.branch == MAIN_BRANCH:
            raise AlreadyExistsError(
                f"the table has a branch or tag {self.options.branch!r}; replace it instead"
            )
        return None

    def moved_branch(self, base: TableMetadata) -> Update:
        """Return the new branch with its retention."""
        return branch_ref(self.options.branch, self.snapshot_id, self._retention)
