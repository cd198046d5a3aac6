"""ReadRows: what a command has read that changes nothing, as a step of a transaction."""

from __future__ import annotations

from frazil.format.changes import AssertRefSnapshotId
from frazil.format.metadata import TableMetadata
from frazil.format.snapshots import MAIN_BRANCH
from frazil.storage.files import FileIO
from frazil.table.commit.operation import Changes, WritesNothing
from frazil.table.commit.requirements import ref_snapshot_id
from frazil.table.conflicts.history import Scope
from frazil.table.conflicts.rows import AddedData
from frazil.table.conflicts.validation import Validation, check_reads
from frazil.table.manifests.row_filter import RowFilter
from frazil.table.snapshots.producer import (
    DEFAULT_OPTIONS,
    BranchOperation,
    SnapshotOptions,
    snapshots_of_transaction,
)


class ReadRows(WritesNothing, BranchOperation):
    """Makes no snapshot: asks that the command would find the same where it is committed.

    Args:
        validation: what was read, and when.
        options: of the snapshot that the command would have made.
    """

    def __init__(
        self, io: FileIO, validation: Validation, options: SnapshotOptions = DEFAULT_OPTIONS
    ) -> None:
        super().__init__(io, options)
        self._validation = validation
        self._added_by_others = AddedData(validation.rows)

    def changes(self, base: TableMetadata, *, committed: TableMetadata | None = None) -> Changes:
        """Return no update, and the requirement that the branch is where it was looked at."""
        self.own_snapshots = snapshots_of_transaction(base, committed)
        options, head = self._validation, self.head(base)
        history = self.history(base, head, options.from_snapshot, operation=options.operation)
        if history.snapshots:
            row_filter = RowFilter(options.conflict_filter, case_sensitive=options.case_sensitive)
            scope = Scope(row_filter)
            check_reads(history, options, scope, self._added_by_others, metadata=base, head=head)
        seen = base if committed is None else committed
        branch = self.options.branch
        if self.options.starts_branch and branch not in base.refs:
            branch = MAIN_BRANCH
        return Changes.of(
            base, (), reads=[AssertRefSnapshotId(branch, ref_snapshot_id(seen, branch))]
        )
