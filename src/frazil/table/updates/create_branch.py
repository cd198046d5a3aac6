"""CreateBranch: a branch at a snapshot, or an empty one on an empty table."""

from __future__ import annotations

from frazil.errors import AlreadyExistsError
from frazil.format.arguments import SnapshotId
from frazil.format.changes import Update
from frazil.format.metadata import TableMetadata
from frazil.format.snapshots import MAIN_BRANCH, Snapshot
from frazil.storage.files import FileIO
from frazil.table.commit.operation import Changes
from frazil.table.snapshots.append import FastAppend
from frazil.table.snapshots.producer import SnapshotOptions
from frazil.table.updates.references import DEFAULT_RETENTION, Retention, branch_ref, create_branch


class CreateBranch(FastAppend):
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
        super().__init__(io, (), SnapshotOptions(branch=name))
        self._may_be_empty = snapshot_id is None
        self._is_empty = False
        self._retention = retention

    def changes(self, base: TableMetadata, *, committed: TableMetadata | None = None) -> Changes:
        """Return the new branch.

        Raises AlreadyExistsError where the name is taken.
        """
        self._is_empty = self._may_be_empty and base.current_snapshot_id is None
        if self._is_empty:
            return super().changes(base, committed=committed)
        return self._at_snapshot.changes(base, committed=committed)

    @property
    def made_snapshots(self) -> frozenset[int]:
        """The empty snapshot, or none."""
        return super().made_snapshots if self._is_empty else frozenset()

    def is_in(self, metadata: TableMetadata) -> bool | None:
        """Return whether the empty snapshot is there; None for a branch at a snapshot."""
        return super().is_in(metadata) if self._is_empty else None

    def on_committed(self, metadata: TableMetadata) -> None:
        """Remove what earlier tries wrote."""
        if self._is_empty:
            super().on_committed(metadata)
        else:
            self.on_abandoned()

    def head(self, base: TableMetadata) -> Snapshot | None:
        """Return nothing to build on.

        Raises AlreadyExistsError where the branch is there.
        """
        if self.options.branch in base.refs or self.options.branch == MAIN_BRANCH:
            raise AlreadyExistsError(
                f"the table has a branch or tag {self.options.branch!r}; replace it instead"
            )
        return None

    def moved_branch(self, base: TableMetadata) -> Update:
        """Return the new branch with its retention."""
        return branch_ref(self.options.branch, self.snapshot_id, self._retention)
