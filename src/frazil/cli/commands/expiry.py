"""What an expiry would remove, found without removing it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from frazil.format.changes import apply_updates
from frazil.format.snapshots import Snapshot
from frazil.later import later

if TYPE_CHECKING:
    from frazil.table.handle import TableHandle
    from frazil.table.maintenance.expire import ExpireSnapshots, unreachable_files
else:
    ExpireSnapshots, unreachable_files = later(
        "frazil.table.maintenance.expire", "ExpireSnapshots", "unreachable_files"
    )


@dataclass(frozen=True, slots=True)
class Expiry:
    """What goes.

    Attributes:
        snapshots: oldest first.
        refs: names of branches and tags.
        files: how many files of each kind.
    """

    snapshots: tuple[Snapshot, ...]
    refs: tuple[str, ...]
    files: dict[str, int]

    @property
    def is_empty(self) -> bool:
        """Whether everything stays."""
        return not (self.snapshots or self.refs or any(self.files.values()))

    def facts(self) -> dict[str, Any]:
        """Return what goes as plain values."""
        return {
            "snapshots": [snapshot.snapshot_id for snapshot in self.snapshots],
            "refs": list(self.refs),
            "files": self.files,
        }


def expiry_of(
    handle: TableHandle,
    *,
    older_than_ms: int | None,
    retain_last: int | None,
    snapshot_ids: Sequence[int],
) -> Expiry:
    """Return what an expiry with these arguments would remove.

    Raises:
        ValidationError: gc.enabled is false, or a named snapshot is referenced.
    """
    operation = ExpireSnapshots(
        older_than_ms=older_than_ms, retain_last=retain_last, snapshot_ids=snapshot_ids
    )
    before = handle.metadata
    after = apply_updates(before, operation.changes(before).updates)
    found = unreachable_files(handle.io, before, after)
    counts = found.counts({})
    files = {
        "data files": counts["deleted_data_files"],
        "position delete files": counts["deleted_position_delete_files"],
        "equality delete files": counts["deleted_equality_delete_files"],
        "manifests": counts["deleted_manifest_files"],
        "manifest lists": counts["deleted_manifest_lists"],
        "statistics files": counts["deleted_statistics_files"],
    }
    return Expiry(operation.expired, operation.expired_refs, files)
