"""ReadPoints: which snapshots a handle gave out to read."""

from __future__ import annotations

from collections.abc import Collection

from frazil.format.metadata import TableMetadata
from frazil.format.snapshots import MAIN_BRANCH


class ReadPoints:
    """The snapshot of each branch that a handle's user saw last.

    Rows that a write was made from were read then: with an isolation level, all that others
    committed since is checked. What the user committed through the handle is no surprise to them.
    """

    def __init__(self, shown: TableMetadata) -> None:
        self._shown = shown
        self._read: dict[str, int | None] = {}

    def note(self, branch: str | None, metadata: TableMetadata) -> None:
        """Note that the head of a branch was given out."""
        name = branch or MAIN_BRANCH
        self._read[name] = _head(metadata, name)

    def snapshot_of(self, branch: str | None) -> int | None:
        """Return the snapshot that was given out last, else the one that the handle showed."""
        name = branch or MAIN_BRANCH
        return self._read[name] if name in self._read else _head(self._shown, name)

    def with_metadata(self, metadata: TableMetadata) -> ReadPoints:
        """Return the same reads beside what the handle shows now."""
        points = ReadPoints(metadata)
        points._read = dict(self._read)
        return points

    def follow(self, metadata: TableMetadata, made: Collection[int]) -> None:
        """Go on to snapshots that were made through the handle right after what was given out."""
        for name, read in list(self._read.items()):
            head = _head(metadata, name)
            found = head
            while found is not None and found != read and found in made:
                snapshot = metadata.snapshots_by_id.get(found)
                found = None if snapshot is None else snapshot.parent_snapshot_id
            if found == read:
                self._read[name] = head


def _head(metadata: TableMetadata, branch: str) -> int | None:
    ref = metadata.refs.get(branch)
    return metadata.current_snapshot_id if ref is None else ref.snapshot_id
