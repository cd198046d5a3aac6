"""Changeable: what the namespaces of a table work on."""

from __future__ import annotations

from typing import Protocol

from frazil.format.metadata import TableMetadata
from frazil.storage.files import FileIO
from frazil.table.commit.operation import Operation
from frazil.table.time_travel import Moment


class Changeable(Protocol):
    """A table or transaction that runs operations; `TableOperations` says what each part means."""

    @property
    def metadata(self) -> TableMetadata: ...

    @property
    def io(self) -> FileIO: ...

    def _run(self, operation: Operation) -> None: ...

    def _timestamp_ms(self, moment: Moment) -> int: ...
