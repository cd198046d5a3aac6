"""What a command gets of a table: what it reads, and how it commits.

A handle's port commits each operation at once, a transaction's collects them for one commit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import tzinfo
from threading import Lock
from time import monotonic
from typing import Any, Final

from frazil.catalog.protocol import Catalog, LoadedTable, StagedTable
from frazil.format.metadata import TableMetadata
from frazil.format.properties.table import RETRIES
from frazil.format.types import IcebergType, as_type
from frazil.format.values.zones import PROCESS_ZONE
from frazil.storage.files import FileIO
from frazil.storage.on_driver import OnDriver
from frazil.table.commit.loop import check_same_table, commit
from frazil.table.commit.operation import Operation
from frazil.table.time_travel import Moment, timestamp_ms_of

_LOOK_LASTS_SECONDS: Final = 1.0
_CARE_LASTS_SECONDS: Final = 60.0


class TablePort(OnDriver, ABC):
    """A table that operations are run on, whoever commits them."""

    def __init__(self, table: LoadedTable | StagedTable) -> None:
        self._table = table

    @property
    def identifier(self) -> tuple[str, ...]:
        """Namespace levels and the table's name."""
        return self._table.identifier

    @property
    def metadata(self) -> TableMetadata:
        """The table as it was last looked at, with all operations of a transaction so far."""
        return self._table.metadata

    @property
    def io(self) -> FileIO:
        """The table's files, by the credentials that it was last loaded with."""
        return self._table.io

    @abstractmethod
    def newest(self) -> TableMetadata:
        """Return metadata as new as a change that starts from it should see.

        An operation works on this one value: another thread may move the handle meanwhile.
        """

    @abstractmethod
    def run(self, operation: Operation) -> None:
        """Apply an operation."""

    @abstractmethod
    def check_at_commit(self, read: Operation) -> None:
        """Have a commit check what a command has read that changes nothing."""

    @property
    def name(self) -> str:
        """The identifier as text."""
        return ".".join(self.identifier)

    @property
    def retries(self) -> int:
        """How often what others contradict is tried again, as the table's properties say."""
        return RETRIES.of(self.metadata.properties)

    @property
    def text_zone(self) -> str | tzinfo:
        """The zone of times that are text without one: without a session that of the process."""
        return PROCESS_ZONE

    def column_type(self, given: Any) -> IcebergType:
        """Return the type that a user gives for a column."""
        return as_type(given)

    def timestamp_ms(self, moment: Moment) -> int:
        """Return a moment as milliseconds since the epoch."""
        return timestamp_ms_of(moment, self.text_zone)


@dataclass(frozen=True, slots=True)
class _Look:
    """A table as a command looked at it, and when by the monotonic clock."""

    loaded: LoadedTable
    at: float


class HandlePort(TablePort):
    """A table of a catalog, as it was when it was loaded or last changed through this port.

    Every operation is committed at once, and the port then shows what was committed.
    """

    _table: LoadedTable

    def __init__(self, catalog: Catalog, loaded: LoadedTable) -> None:
        super().__init__(loaded)
        self._catalog = catalog
        self._showing = Lock()
        self._look: _Look | None = None
        self._careful_until = 0.0

    @property
    def catalog(self) -> Catalog:
        """The catalog that the table is in."""
        return self._catalog

    @property
    def loaded_table(self) -> LoadedTable:
        """The table as last loaded or committed."""
        return self._table

    def newest(self) -> TableMetadata:
        """Load the table and return its metadata."""
        loaded = self.refresh()
        self._look = _Look(loaded, monotonic())
        return loaded.metadata

    def refresh(self) -> LoadedTable:
        """Load the table and show it, unless the port shows something newer by then.

        Raises ValidationError: the name now belongs to another table (rule 192); NoSuchTableError:
        the table is gone.
        """
        before = self._table
        loaded = self._catalog.load_table(before.identifier)
        if not self.show(loaded):
            # Another thread was faster, or the catalog was set back to an earlier file.
            loaded = self._catalog.load_table(before.identifier)
            self.show(loaded, even_if_earlier=True)
        return loaded

    def show(self, loaded: LoadedTable, *, even_if_earlier: bool = False) -> bool:
        """Show a table that was loaded or committed; say no where it is earlier than what is shown.

        Raises ValidationError where it is another table.
        """
        with self._showing:
            shown = self._table
            check_same_table(self.identifier, shown.metadata.table_uuid, loaded)
            earlier = (entry.metadata_file for entry in shown.metadata.metadata_log)
            if not even_if_earlier and loaded.metadata_location in earlier:
                return False
            self._table = loaded
            return True

    def run(self, operation: Operation) -> None:
        """Commit an operation, and show what was committed."""
        uuid, base = self.metadata.table_uuid, self._base_of(operation)
        committed = commit(self._catalog, self.identifier, operation, base=base, expected_uuid=uuid)
        if base is not None and not _is_next(committed, base):
            # Others change it too: what was looked at before is too old for a first try.
            self._careful_until = monotonic() + _CARE_LASTS_SECONDS
        self.show_commit(committed, operation.made_snapshots)

    def check_at_commit(self, read: Operation) -> None:
        """Nothing is left to check: the command has taken place when it read."""

    def _base_of(self, operation: Operation) -> LoadedTable | None:
        """The table of the first try, where the command has just looked at it by a request."""
        look, self._look = self._look, None
        if look is None or not self._catalog.loads_by_request or not operation.made_snapshots:
            return None
        now = monotonic()
        is_new = now - look.at < _LOOK_LASTS_SECONDS and now >= self._careful_until
        return look.loaded if is_new else None

    def show_commit(self, loaded: LoadedTable, made: frozenset[int]) -> None:
        """Show what was committed through this port."""
        self.show(loaded)


def _is_next(committed: LoadedTable, base: LoadedTable) -> bool:
    """Whether a commit is the next one after a table, or changed nothing."""
    log = committed.metadata.metadata_log
    before = log[-1].metadata_file if log else ""
    return base.metadata_location in (before, committed.metadata_location)
