"""Whether a commit without an answer took place: what the table itself shows.

Not to see a change proves nothing, since the server may still be at work on it. A change is known
not to have taken place only where it no longer can.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from frazil.errors import FrazilError
from frazil.format.changes import (
    AddSnapshot,
    AssertCreate,
    AssignUUID,
    Requirement,
    Update,
    apply_updates,
)
from frazil.format.metadata import TableMetadata


def is_in(
    metadata: TableMetadata,
    requirements: Sequence[Requirement],
    updates: Sequence[Update],
    *,
    is_refused: bool = False,
) -> bool | None:
    """Whether a commit is part of a table; None where that cannot be told.

    Args:
        metadata: the table as it is now.
        requirements: what the commit asked for.
        updates: what it was to change.
        is_refused: the server has refused the same commit when it was sent again.
    """
    seen = _seen(metadata, requirements, updates)
    return False if seen is None and is_refused else seen


def _seen(
    metadata: TableMetadata, requirements: Sequence[Requirement], updates: Sequence[Update]
) -> bool | None:
    if any(isinstance(each, AssertCreate) for each in requirements):
        given = next((each.uuid for each in updates if isinstance(each, AssignUUID)), None)
        found = metadata.table_uuid
        return None if given is None or found is None else found.lower() == given.lower()
    added = [each.snapshot for each in updates if isinstance(each, AddSnapshot)]
    if added:
        if any(each.snapshot_id in set(_mentioned(metadata)) for each in added):
            return True
        # The server gives a number out once: one that another commit has is not ours any more.
        numbers = [each.sequence_number for each in added if each.sequence_number]
        taken = any(number <= metadata.last_sequence_number for number in numbers)
        return False if taken and metadata.format_version > 1 else None
    try:
        return True if apply_updates(metadata, updates) is metadata else None
    except FrazilError:
        return None


def _mentioned(metadata: TableMetadata) -> Iterator[int | None]:
    """The ids of all snapshots that the table has or tells of."""
    yield from _ids(metadata.snapshots_by_id)
    for snapshot in metadata.snapshots:
        yield snapshot.parent_snapshot_id
    for entry in metadata.snapshot_log:
        yield entry.snapshot_id


def _ids(ids: Iterable[int]) -> Iterator[int]:
    yield from ids
