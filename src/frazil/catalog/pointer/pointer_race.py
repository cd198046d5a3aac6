"""Whose metadata a pointer of a table or view names after a swap whose answer was lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from frazil.catalog.metadata_files import read_metadata, read_view_metadata
from frazil.catalog.protocol import LoadedTable
from frazil.catalog.views import LoadedView
from frazil.storage.files import FileIO


@dataclass(frozen=True, slots=True)
class PointerRace:
    """A swap without an answer.

    Attributes:
        base: what the pointer was to move from; None when the table was to be made.
        ours: what it was to move to.
        settled_pointer: reads the pointer after every transaction on it has ended.
    """

    base: LoadedTable | None
    ours: LoadedTable
    settled_pointer: Callable[[], str | None]

    def took_place(self, io: FileIO) -> bool | None:
        """Whether our swap is part of the table's history; None where that cannot be told."""
        pointer = self.settled_pointer()
        if pointer == self.ours.metadata_location:
            return True
        if pointer is None:
            return False if self.base is None else None
        if self.base is not None and pointer == self.base.metadata_location:
            return False
        current = read_metadata(io, pointer)
        chain = [entry.metadata_file for entry in current.metadata_log]
        if self.ours.metadata_location in chain:
            return True
        if self.base is None:
            return False if current.table_uuid != self.ours.metadata.table_uuid else None
        # The base is followed in the log by whoever was first; without it the log was cut.
        return False if self.base.metadata_location in chain else None


@dataclass(frozen=True, slots=True)
class ViewRace:
    """A swap without an answer. Metadata of views has no log of the files before it.

    Attributes:
        base: what the pointer was to move from; None when the view was to be made.
        ours: what it was to move to.
        pointers: where it is now and where it was before, once no transaction is at work on it;
            None where there is no such view.
    """

    base: LoadedView | None
    ours: LoadedView
    pointers: tuple[str, str | None] | None

    def took_place(self, io: FileIO) -> bool | None:
        """Whether our swap is part of the view's history; None where that cannot be told."""
        if self.pointers is None:
            return False if self.base is None else None
        if self.ours.metadata_location in self.pointers:
            return True
        # Pointers are never used again, so who was at the base before was not us.
        if self.base is not None and self.base.metadata_location in self.pointers:
            return False
        now = read_view_metadata(io, self.pointers[0])
        if now.view_uuid != self.ours.metadata.view_uuid:
            return False if self.base is None else None
        if self.base is None:
            return True
        # Our own version tells, as long as it is kept: another writer's has its id, or it is there.
        added = self.ours.metadata.versions_by_id.keys() - self.base.metadata.versions_by_id.keys()
        for version_id in added & now.versions_by_id.keys():
            return now.version(version_id) == self.ours.metadata.version(version_id)
        return None
