"""The commit loop: run an operation, swap the pointer, try again when another writer was first."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from frazil.catalog.outcome import first_answer
from frazil.catalog.protocol import Catalog, LoadedTable, StagedTable
from frazil.errors import (
    AccessDeniedError,
    AlreadyExistsError,
    CommitError,
    CommitFailedError,
    CommitNotSentError,
    CommitStateUnknownError,
    ConfigurationError,
    ConflictError,
    FrazilError,
    MissingFileError,
    NoSuchNamespaceError,
    NoSuchRefError,
    NoSuchSnapshotError,
    NoSuchTableError,
    NotFoundError,
    StorageError,
    UnsupportedError,
    ValidationError,
)
from frazil.format.metadata import TableMetadata
from frazil.format.properties.table import (
    RETRIES,
    RETRY_MAX_WAIT,
    RETRY_MIN_WAIT,
    RETRY_TIMEOUT,
)
from frazil.table.commit.operation import Changes, Operation
from frazil.table.commit.turns import turn_of

RunOperation = Callable[[Catalog, Operation, LoadedTable], Changes]
"""`changes_of` in the first try, and `changes_again` later."""

_LOG = logging.getLogger(__name__)
_CLOCK_TOLERANCE_MS = 60_000

# By these a catalog says that the swap was not sent, or did not take place.
REFUSALS = (
    AccessDeniedError,
    ConflictError,
    ValidationError,
    UnsupportedError,
    ConfigurationError,
    NoSuchTableError,
    NoSuchNamespaceError,
)

# By these an operation says that it does not fit the table.
_MISFITS = (
    ValidationError,
    UnsupportedError,
    ConfigurationError,
    AlreadyExistsError,
    NoSuchRefError,
    NoSuchSnapshotError,
)


@dataclass(frozen=True, slots=True)
class Backoff:
    """How often and how long to try again; times in milliseconds.

    Attributes:
        num_retries: tries after the first.
        min_wait_ms: the wait before the first retry; it doubles with each.
        max_wait_ms: the longest wait.
        total_timeout_ms: no retry starts later than this after the first try.
    """

    num_retries: int
    min_wait_ms: int
    max_wait_ms: int
    total_timeout_ms: int

    @classmethod
    def for_commits(cls, properties: Mapping[str, str]) -> Backoff:
        """The `commit.retry.*` properties, by default 4 retries, 100 ms to 60 s, 30 minutes."""
        return cls(
            RETRIES.of(properties),
            RETRY_MIN_WAIT.of(properties),
            RETRY_MAX_WAIT.of(properties),
            RETRY_TIMEOUT.of(properties),
        )

    def wait_seconds(self, attempt: int) -> float:
        """The wait before retry `attempt` (from 1), with jitter so that writers spread out."""
        # The exponent is bounded so that a large retry count does not overflow a float.
        longest = min(self.max_wait_ms, self.min_wait_ms * 2.0 ** min(attempt - 1, 40))
        return random.uniform(longest / 2, longest) / 1000  # noqa: S311


def commit(
    catalog: Catalog,
    identifier: tuple[str, ...],
    operation: Operation,
    *,
    base: LoadedTable | None = None,
    expected_uuid: str | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> LoadedTable:
    """Make an operation part of a table, trying again while other writers are first (rule 216).

    This is the one place that decides what becomes of the files of an operation. Until the swap is
    sent, and where the catalog says that it did not take place, they are removed. From then on
    nothing is: neither when the answer is lost, nor when anything else is raised.
    `base` is the metadata of the first try, if the caller has just loaded it; `expected_uuid` the
    uuid that the table must have (rule 192). Returns the table as committed; as loaded when the
    operation had nothing to change.
    Raises ConflictError: a concurrent commit contradicts the operation, or left nothing that it
    fits, which is not retried; CommitFailedError: others were first in every try, or the time is
    over; CommitNotSentError: the store failed before, and the operation's files are removed;
    CommitStateUnknownError: the catalog gave no answer, and a look at the table did not show the
    change either, so that no file was deleted.
    """
    tries = Tries(f"table {'.'.join(identifier)}", sleep)
    if expected_uuid is None and base is not None:
        expected_uuid = base.metadata.table_uuid
    turn = turn_of(expected_uuid)
    run: RunOperation = changes_of
    current = base
    while True:
        try:
            with turn.hold(lambda: abandon(operation)):
                if current is not None and turn.is_replaced(current):
                    # To swap it would be refused.
                    run, current = _changes_since(current), None
                try:
                    current = current or catalog.load_table(identifier)
                    expected_uuid = expected_uuid or current.metadata.table_uuid
                    check_same_table(identifier, expected_uuid, current)
                    if current.metadata.last_updated_ms > time.time() * 1000 + _CLOCK_TOLERANCE_MS:
                        _warn_of_clock(identifier, current.metadata)
                    changes = run(catalog, operation, current)
                except LostRaceError:
                    raise
                except BaseException:
                    abandon(operation)
                    raise
                if changes.is_empty:
                    abandon(operation)
                    return current
                run = changes_again
                committed = _swap(catalog, operation, changes, current, sleep)
                if committed.metadata_location != current.metadata_location:
                    turn.note(current)
        except LostRaceError as lost:
            tries.wait_after(lost.reason, current, operation)
            current = None
            continue
        clean_after_success(operation, committed.metadata)
        return committed


def _swap(
    catalog: Catalog,
    operation: Operation,
    changes: Changes,
    current: LoadedTable,
    sleep: Callable[[float], None],
) -> LoadedTable:
    """Ask the catalog for changes, and find out whether they took place.

    Raises LostRaceError: another commit was first; CommitNotSentError: the store failed before, and
    the operation's files are removed; CommitStateUnknownError, StorageError: the outcome is
    unknown; another FrazilError: one of `REFUSALS`, and the operation's files are removed.
    """
    identifier = current.identifier
    try:
        return catalog.commit_table(identifier, changes.requirements, changes.updates, base=current)
    except CommitFailedError as error:
        raise LostRaceError(error) from error
    except REFUSALS as error:
        # What a catalog does after the swap may raise the same: the table itself knows.
        refused = look(catalog, identifier, operation.is_in)
        if isinstance(refused, LoadedTable):
            _LOG.warning("table %s was committed, and then: %s", ".".join(identifier), error)
            return refused
        if refused is not None:
            abandon(operation)
        raise
    except CommitNotSentError:
        abandon(operation)
        raise
    except (CommitStateUnknownError, StorageError):
        # The store may have failed after the swap, so a look at the table decides.
        found = find_committed(
            catalog, identifier, operation.is_in, current.metadata.properties, sleep
        )
        if found is None:
            raise
        return found


def create(
    catalog: Catalog,
    staged: StagedTable,
    operation: Operation,
) -> LoadedTable:
    """Make a staged table, which holds the result of the first operation on it.

    Raises CommitNotSentError: the store failed before; CommitStateUnknownError, StorageError: the
    outcome is unknown, and no file was deleted; another FrazilError: the catalog refuses the table,
    or somebody else was first. The operation's files are removed but where the outcome is unknown.
    """
    try:
        created = catalog.create_staged_table(staged)
    except (AlreadyExistsError, CommitFailedError, CommitNotSentError):
        abandon(operation)
        raise
    except REFUSALS as error:
        # As in a commit: what a catalog does after the table is there may raise the same.
        uuid, identifier = staged.metadata.table_uuid, staged.identifier
        refused = look(catalog, identifier, lambda found: found.table_uuid == uuid)
        if not isinstance(refused, LoadedTable):
            if refused is not None:
                abandon(operation)
            raise
        _LOG.warning("table %s was created, and then: %s", ".".join(identifier), error)
        created = refused
    clean_after_success(operation, created.metadata)
    return created


def abandon(operation: Operation) -> None:
    """Remove what an operation wrote, without hiding the failure that is the reason for it."""
    try:
        operation.on_abandoned()
    except Exception as error:
        _LOG.warning("files of a commit that did not take place were left behind: %s", error)


class LostRaceError(Exception):
    """Another commit took away what this try was reading."""

    def __init__(self, reason: FrazilError) -> None:
        super().__init__(str(reason))
        self.reason = reason


class Tries:
    """How often a commit was tried, and for how long.

    Args:
        what: the table, or the tables, for messages.
        sleep: waits that many seconds.
    """

    def __init__(self, what: str, sleep: Callable[[float], None]) -> None:
        self._what = what
        self._sleep = sleep
        self._count = 0
        self._started = time.monotonic()

    def wait_after(
        self, error: FrazilError, base: LoadedTable | None, operation: Operation
    ) -> None:
        """Wait before the next try.

        Raises CommitFailedError: there is none any more; the operation's files are removed.
        """
        try:
            backoff = Backoff.for_commits({} if base is None else base.metadata.properties)
        except ConfigurationError:
            abandon(operation)
            raise
        self._count += 1
        wait = backoff.wait_seconds(self._count)
        elapsed_ms = (time.monotonic() - self._started + wait) * 1000
        if self._count > backoff.num_retries or elapsed_ms > backoff.total_timeout_ms:
            abandon(operation)
            raise CommitFailedError(
                f"{self._what}: other writers were first in each of "
                f"{self._count} tries; raise commit.retry.num-retries "
                f"({backoff.num_retries}) or write less often: {error}"
            ) from error
        try:
            self._sleep(wait)
        except BaseException:
            abandon(operation)
            raise


def changes_of(catalog: Catalog, operation: Operation, current: LoadedTable) -> Changes:
    """Run the operation; a file that an expiry deleted meanwhile is a lost race."""
    try:
        return operation.changes(current.metadata)
    except MissingFileError as error:
        if _has_moved(catalog, current):
            raise LostRaceError(error) from error
        raise


def changes_again(catalog: Catalog, operation: Operation, current: LoadedTable) -> Changes:
    """Run an operation that fitted the table before another commit was first.

    Raises ConflictError where it does not fit any more, which is that commit's doing.
    """
    try:
        return changes_of(catalog, operation, current)
    except CommitError:
        raise
    except _MISFITS as error:
        raise ConflictError(f"another commit was first, and the table has changed: {error}") from (
            error
        )


def _changes_since(base: LoadedTable) -> RunOperation:
    """Run an operation on a newer table than the one that it was made for."""

    def run(catalog: Catalog, operation: Operation, current: LoadedTable) -> Changes:
        try:
            return changes_again(catalog, operation, current)
        except ConflictError as error:
            if isinstance(error.__cause__, _MISFITS):
                # What does not fit the older one either is no other commit's doing.
                with suppress(MissingFileError):
                    operation.changes(base.metadata)
            raise

    return run


def check_same_table(
    identifier: tuple[str, ...], expected_uuid: str | None, current: LoadedTable
) -> None:
    found = current.metadata.table_uuid
    if expected_uuid is not None and found != expected_uuid:
        raise ValidationError(
            f"{'.'.join(identifier)} is another table now: its uuid was {expected_uuid} and is "
            f"{found}; load it again"
        )


def _has_moved(catalog: Catalog, base: LoadedTable) -> bool:
    """Whether another commit came between the base and now; no when that cannot be told."""
    try:
        return catalog.load_table(base.identifier).metadata_location != base.metadata_location
    except (StorageError, NotFoundError):
        return False


def _warn_of_clock(identifier: tuple[str, ...], metadata: TableMetadata) -> None:
    _LOG.warning(
        "the last commit of table %s is of %s ms since the epoch, ahead of this machine's clock: "
        "new snapshots get that time until the clock is there, and snapshots are expired by age "
        "so much later",
        ".".join(identifier),
        metadata.last_updated_ms,
    )


def look(
    catalog: Catalog, identifier: tuple[str, ...], is_ours: Callable[[TableMetadata], bool | None]
) -> LoadedTable | bool | None:
    """The table if it holds what was sent, False if it does not, None where nobody can tell."""
    try:
        loaded = catalog.load_table(identifier)
    except (NoSuchTableError, NoSuchNamespaceError):
        return False
    except (FrazilError, OSError):
        return None
    return loaded if is_ours(loaded.metadata) else False


def find_committed(
    catalog: Catalog,
    identifier: tuple[str, ...],
    is_ours: Callable[[TableMetadata], bool | None],
    properties: Mapping[str, str],
    sleep: Callable[[float], None],
) -> LoadedTable | None:
    """The table, if a look at it shows that a commit of unknown outcome took place.

    Not seeing the change proves nothing (the swap may still be under way), so None leaves the
    outcome unknown.
    """

    def ask() -> LoadedTable | Literal[False] | None:
        loaded = catalog.load_table(identifier)
        answer = is_ours(loaded.metadata)
        if answer is None:
            return False
        return loaded if answer else None

    found = first_answer(ask, properties, sleep=sleep)
    return found if isinstance(found, LoadedTable) else None


def clean_after_success(operation: Operation, committed: TableMetadata) -> None:
    """Clean up after a success; the commit stands whether or not that works."""
    try:
        operation.on_committed(committed)
    except Exception as error:
        _LOG.warning("unused files of a commit's earlier tries were left behind: %s", error)
