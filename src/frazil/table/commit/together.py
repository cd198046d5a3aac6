"""Changes of several tables as one commit, tried again as a whole."""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from frazil.catalog.identifiers import Identifier, shown
from frazil.catalog.protocol import Catalog, LoadedTable, StagedTable, TableCommit
from frazil.errors import (
    AlreadyExistsError,
    CommitFailedError,
    CommitNotSentError,
    CommitStateUnknownError,
    ConflictError,
    StorageError,
)
from frazil.format.changes import (
    AssertCreate,
    AssertRefSnapshotId,
    AssertTableUUID,
    Requirement,
    apply_updates,
)
from frazil.format.metadata import TableMetadata
from frazil.format.new_table import creation_updates
from frazil.format.snapshots import REPLACE
from frazil.table.commit.loop import (
    REFUSALS,
    LostRaceError,
    RunOperation,
    Tries,
    abandon,
    changes_again,
    changes_of,
    check_same_table,
    clean_after_success,
    find_committed,
    look,
)
from frazil.table.commit.operation import CompositeOperation, Operation
from frazil.table.commit.requirements import ref_snapshot_id

_LOG = logging.getLogger(__name__)


class TablePart(ABC):
    """One table of a commit of several.

    Attributes:
        operation: what was done to it.
    """

    operation: Operation

    @property
    @abstractmethod
    def identifier(self) -> Identifier:
        """Namespace levels and the table's name."""

    @property
    @abstractmethod
    def base(self) -> LoadedTable | None:
        """The table that the try starts from; None of one that is made."""

    @abstractmethod
    def commit_of(self, catalog: Catalog, run: RunOperation) -> TableCommit:
        """Return what the catalog is asked for; what it raises is as of `Operation.changes`."""

    @abstractmethod
    def loaded_again(self, catalog: Catalog) -> Self:
        """Return the same of the table as it is now."""

    @abstractmethod
    def is_in(self, metadata: TableMetadata) -> bool | None:
        """Whether the changes are part of metadata; None where that cannot be told."""

    @property
    @abstractmethod
    def can_tell(self) -> bool:
        """Whether `is_in` has an answer."""


@dataclass(frozen=True, slots=True)
class ChangedTable(TablePart):
    """A table that is there: changed, or only read.

    Attributes:
        name: the identifier.
        loaded: the table that a try starts from.
        read: the references whose rows must be the same at the commit, and where they were.
    """

    name: Identifier
    operation: Operation
    loaded: LoadedTable
    read: Mapping[str, int | None] = field(default_factory=dict)

    @property
    def identifier(self) -> Identifier:
        return self.name

    @property
    def base(self) -> LoadedTable | None:
        return self.loaded

    def commit_of(self, catalog: Catalog, run: RunOperation) -> TableCommit:
        metadata = self.loaded.metadata
        found = [_same_rows(self.name, metadata, ref, at) for ref, at in self.read.items()]
        changes = run(catalog, self.operation, self.loaded)
        if found and metadata.table_uuid is not None:
            found.append(AssertTableUUID(metadata.table_uuid))
        return TableCommit(
            self.name,
            tuple(dict.fromkeys((*changes.requirements, *found))),
            changes.updates,
            # A table that was only read may get other properties meanwhile.
            base=self.loaded if changes.updates else None,
        )

    def loaded_again(self, catalog: Catalog) -> Self:
        loaded = catalog.load_table(self.name)
        check_same_table(self.name, self.loaded.metadata.table_uuid, loaded)
        return replace(self, loaded=loaded)

    def is_in(self, metadata: TableMetadata) -> bool | None:
        return self.operation.is_in(metadata)

    @property
    def can_tell(self) -> bool:
        return self.is_in(self.loaded.metadata) is not None


@dataclass(frozen=True, slots=True)
class NewTable(TablePart):
    """A table that the commit makes.

    Attributes:
        begun: the table before anything was done to it.
        staged: the table as it will be.
    """

    begun: StagedTable
    operation: Operation
    staged: StagedTable

    @property
    def identifier(self) -> Identifier:
        return self.begun.identifier

    @property
    def base(self) -> LoadedTable | None:
        return None

    def commit_of(self, catalog: Catalog, run: RunOperation) -> TableCommit:
        staged = self.staged.updates
        # A catalog that makes tables of updates says which.
        made = () if self.begun.updates else creation_updates(self.begun.metadata)
        return TableCommit(self.identifier, (AssertCreate(),), (*made, *staged))

    def loaded_again(self, catalog: Catalog) -> Self:
        return self

    def is_in(self, metadata: TableMetadata) -> bool | None:
        return metadata.table_uuid == self.begun.metadata.table_uuid

    @property
    def can_tell(self) -> bool:
        return True


def commit_together(
    catalog: Catalog,
    parts: Sequence[TablePart],
    *,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Make changes of several tables part of all of them or of none, as `commit` does of one.

    While other writers are first all operations are run again on the newest tables, as often as
    the properties of the first table say. What was written is removed only where it is known that
    nothing was committed.
    Raises ConflictError: another commit contradicts a change, or changed rows that must stay;
    CommitFailedError: others were first in every try, or the time is over; CommitStateUnknownError:
    the catalog gave no answer, and a look did not show the changes.
    """
    everything = CompositeOperation([part.operation for part in parts])
    tries = Tries(f"tables {', '.join(shown(part.identifier) for part in parts)}", sleep)
    run: RunOperation = changes_of
    current: Sequence[TablePart] | None = parts
    while True:
        first = next((part.base for part in current or parts if part.base is not None), None)
        try:
            if current is None:
                current = [part.loaded_again(catalog) for part in parts]
            commits = [part.commit_of(catalog, run) for part in current]
        except LostRaceError as lost:
            tries.wait_after(lost.reason, first, everything)
            current = None
            continue
        except BaseException:
            abandon(everything)
            raise
        if not any(each.updates for each in commits):
            abandon(everything)
            return
        run = changes_again
        try:
            catalog.commit_tables([each for each in commits if each.updates or each.requirements])
        except CommitFailedError as error:
            tries.wait_after(error, first, everything)
            current = None
            continue
        except (*REFUSALS, AlreadyExistsError) as error:
            _settle_refusal(catalog, current, everything, error)
        except CommitNotSentError:
            abandon(everything)
            raise
        except (CommitStateUnknownError, StorageError):
            teller = _teller(current)
            properties = {} if first is None else first.metadata.properties
            if teller is None or not find_committed(
                catalog, teller.identifier, teller.is_in, properties, sleep
            ):
                raise
        for part, sent in zip(current, commits, strict=True):
            base = None if part.base is None else part.base.metadata
            if sent.updates:
                clean_after_success(part.operation, apply_updates(base, sent.updates))
            else:
                abandon(part.operation)
        return


def _settle_refusal(
    catalog: Catalog, parts: Sequence[TablePart], everything: Operation, error: Exception
) -> None:
    """Raise a refusal, unless the tables show that it came after the swap."""
    teller = _teller(parts)
    found = False if teller is None else look(catalog, teller.identifier, teller.is_in)
    if isinstance(found, LoadedTable):
        _LOG.warning("tables were committed together, and then: %s", error)
        return
    if found is not None:
        abandon(everything)
    raise error


def _teller(parts: Sequence[TablePart]) -> TablePart | None:
    """A table that tells what became of all."""
    return next((part for part in parts if part.can_tell), None)


def _same_rows(
    name: Identifier, metadata: TableMetadata, ref: str, read: int | None
) -> Requirement:
    """What asks that a reference has the rows that were read; rewritten files have the same.

    Raises ConflictError: it has others already.
    """
    head = ref_snapshot_id(metadata, ref)
    current = head
    while current is not None and current != read:
        snapshot = metadata.snapshots_by_id.get(current)
        if snapshot is None or snapshot.operation != REPLACE:
            break
        current = snapshot.parent_snapshot_id
    if current != read:
        raise ConflictError(
            f"the transaction read {ref!r} of {shown(name)} at snapshot {read}, and another commit "
            f"has changed its rows since (snapshot {head}): run the transaction again"
        )
    return AssertRefSnapshotId(ref, head)
