"""Whether a commit without an answer took place: what the table itself shows.

Not to see a change proves nothing, since the server may still be at work on it. A change is known
not to have taken place only where it no longer can.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

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
from frazil.format.views import (
    AddViewVersion,
    ViewMetadata,
    ViewUpdate,
    ViewVersion,
    apply_view_updates,
)


def is_in_view(metadata: ViewMetadata, updates: Sequence[ViewUpdate]) -> bool | None:
    """Whether a commit is part of a view; None where that cannot be told."""
    added = [each.view_version for each in updates if isinstance(each, AddViewVersion)]
    if any(_is_there(metadata, each) for each in added):
        return True
    try:
        return True if apply_view_updates(metadata, updates) is metadata else None
    except FrazilError:
        return None


def is_the_view(
    made: ViewMetadata, version: ViewVersion, properties: Mapping[str, str]
) -> bool | None:
    """Whether a view is the one that was to be made; None where that cannot be told.

    Whose it is cannot be seen, and servers date it themselves: one that says the same serves as
    well.
    """
    if any(_says_the_same(each, version) for each in made.versions):
        return True if properties.items() <= made.properties.items() else None
    # Ids are given out once: one that another's version has is not ours any more.
    return False if version.version_id in made.versions_by_id else None


def _is_there(metadata: ViewMetadata, version: ViewVersion) -> bool:
    """Whether the view has a version that was made at the same time, which names it."""
    return any(
        each.timestamp_ms == version.timestamp_ms
        and each.is_same_as(replace(version, schema_id=each.schema_id))
        for each in metadata.versions
    )


def _says_the_same(one: ViewVersion, other: ViewVersion) -> bool:
    return (
        one.representations == other.representations
        and one.default_namespace == other.default_namespace
        and one.default_catalog == other.default_catalog
    )


def is_in(
    metadata: TableMetadata, requirements: Sequence[Requirement], updates: Sequence[Update]
) -> bool | None:
    """Whether a commit is part of a table; None where that cannot be told."""
    if any(isinstance(each, AssertCreate) for each in requirements):
        given = next((each.uuid for each in updates if isinstance(each, AssignUUID)), None)
        found = metadata.table_uuid
        return None if given is None or found is None else found.lower() == given.lower()
    added = [each.snapshot for each in updates if isinstance(each, AddSnapshot)]
    if added:
        ids = {each.snapshot_id for each in added}
        if any(mentioned in ids for mentioned in _mentioned_snapshot_ids(metadata)):
            return True
        # The server gives a number out once: one that another commit has is not ours any more.
        numbers = [each.sequence_number for each in added if each.sequence_number]
        taken = any(number <= metadata.last_sequence_number for number in numbers)
        return False if taken and metadata.format_version > 1 else None
    try:
        return True if apply_updates(metadata, updates) is metadata else None
    except FrazilError:
        return None


def _mentioned_snapshot_ids(metadata: TableMetadata) -> Iterator[int | None]:
    """The ids of all snapshots that the table has or tells of."""
    yield from metadata.snapshots_at_hand
    yield from metadata.snapshots_by_id
    yield from (snapshot.parent_snapshot_id for snapshot in metadata.snapshots)
    yield from (entry.snapshot_id for entry in metadata.snapshot_log)
