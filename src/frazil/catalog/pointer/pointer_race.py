"""Whose metadata a pointer in a database names after a swap whose answer was lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from frazil.catalog.metadata_files import read_metadata
from frazil.catalog.protocol import LoadedTable
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
