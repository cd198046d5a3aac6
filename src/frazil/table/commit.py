"""The commit loop: run an operation, swap the pointer, try again when another writer was first."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from frazil.catalog.base import Catalog, LoadedTable
from frazil.errors import (
    CommitFailedException,
    CommitStateUnknownException,
    ConfigurationError,
    ConflictError,
    FrazilError,
    NotFoundError,
    StorageError,
    ValidationException,
)
from frazil.table.operation import Operation

_LOG = logging.getLogger(__name__)


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
            int_property(properties, "commit.retry.num-retries", 4),
            int_property(properties, "commit.retry.min-wait-ms", 100),
            int_property(properties, "commit.retry.max-wait-ms", 60_000),
            int_property(properties, "commit.retry.total-timeout-ms", 1_800_000),
        )

    @classmethod
    def for_status_checks(cls, properties: Mapping[str, str]) -> Backoff:
        """The `commit.status-check.*` properties, by default 3 checks, 1 s to 60 s, 30 minutes."""
        return cls(
            int_property(properties, "commit.status-check.num-retries", 3),
            int_property(properties, "commit.status-check.min-wait-ms", 1_000),
            int_property(properties, "commit.status-check.max-wait-ms", 60_000),
            int_property(properties, "commit.status-check.total-timeout-ms", 1_800_000),
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

    Args:
        catalog: where the table's pointer is.
        identifier: the table.
        operation: what changes; run once a try.
        base: the metadata of the first try, if the caller has just loaded it.
        expected_uuid: the uuid that the table must have, if the caller knows it (rule 192).
        sleep: waits so many seconds between tries.

    Returns:
        The table as committed; as loaded when the operation had nothing to change.

    Raises:
        ConflictError: a concurrent commit contradicts the operation. Not retried.
        CommitFailedException: others were first in every try, or the time is over.
        CommitStateUnknownException: the catalog gave no answer, and a look at the table did not
            show the change either. No file was deleted.
        ValidationException: the operation does not fit the table.
    """
    current = base if base is not None else catalog.load_table(identifier)
    if expected_uuid is None:
        expected_uuid = current.metadata.table_uuid
    started = time.monotonic()
    attempt = 0
    while True:
        try:
            _check_same_table(identifier, expected_uuid, current)
            changes = operation.changes(current.metadata)
        except Exception:
            _abandon(operation)
            raise
        if changes.is_empty:
            _abandon(operation)
            return current
        try:
            committed = catalog.commit_table(identifier, changes.requirements, changes.updates)
        except (CommitStateUnknownException, StorageError):
            # The store may have failed after the swap, so a look at the table decides.
            found = _find_committed(catalog, identifier, operation, current, sleep)
            if found is None:
                raise
            committed = found
        except ConflictError:
            _abandon(operation)
            raise
        except (CommitFailedException, ValidationException) as error:
            # Updates made for an older base may contradict the newer table (a sequence number
            # that another branch took): that is a lost race, not a mistake of the caller.
            if isinstance(error, ValidationException) and not _has_moved(
                catalog, identifier, current
            ):
                _abandon(operation)
                raise
            backoff = Backoff.for_commits(current.metadata.properties)
            attempt += 1
            wait = backoff.wait_seconds(attempt)
            elapsed_ms = (time.monotonic() - started + wait) * 1000
            if attempt > backoff.num_retries or elapsed_ms > backoff.total_timeout_ms:
                _abandon(operation)
                raise CommitFailedException(
                    f"table {'.'.join(identifier)}: other writers were first in each of "
                    f"{attempt} tries; raise commit.retry.num-retries "
                    f"({backoff.num_retries}) or write less often: {error}"
                ) from error
            sleep(wait)
            current = _reload(catalog, identifier, operation)
            continue
        except NotFoundError:
            # The catalog refused before it swapped anything.
            _abandon(operation)
            raise
        _clean_after_success(operation, committed)
        return committed


def nothing_was_committed(error: BaseException) -> bool:
    """Whether an error of `commit` proves that the change is not part of the table.

    Only then may a caller delete the data files that it wrote for the change: after an unknown
    outcome, a failure of the store or an interruption they may belong to the table.
    """
    return isinstance(error, FrazilError) and not isinstance(
        error, CommitStateUnknownException | StorageError
    )


def int_property(properties: Mapping[str, str], name: str, default: int) -> int:
    """A table property as a non-negative number.

    Raises:
        ConfigurationError: the value is not one.
    """
    text = properties.get(name)
    if text is None:
        return default
    try:
        value = int(text)
    except ValueError:
        value = -1
    if value < 0:
        raise ConfigurationError(
            f"table property {name} is {text!r}; set it to a non-negative whole number"
        )
    return value


def _check_same_table(
    identifier: tuple[str, ...], expected_uuid: str | None, current: LoadedTable
) -> None:
    found = current.metadata.table_uuid
    if expected_uuid is not None and found != expected_uuid:
        raise ValidationException(
            f"{'.'.join(identifier)} is another table now: its uuid was {expected_uuid} and is "
            f"{found}; load it again"
        )


def _reload(catalog: Catalog, identifier: tuple[str, ...], operation: Operation) -> LoadedTable:
    try:
        return catalog.load_table(identifier)
    except Exception:
        _abandon(operation)
        raise


def _has_moved(catalog: Catalog, identifier: tuple[str, ...], base: LoadedTable) -> bool:
    """Whether another commit came between the base and now; no when that cannot be told."""
    try:
        return catalog.load_table(identifier).metadata_location != base.metadata_location
    except (StorageError, NotFoundError):
        return False


def _find_committed(
    catalog: Catalog,
    identifier: tuple[str, ...],
    operation: Operation,
    base: LoadedTable,
    sleep: Callable[[float], None],
) -> LoadedTable | None:
    """The table, if a look at it shows that a commit of unknown outcome took place.

    Not seeing the change proves nothing (the swap may still be under way), so None leaves the
    outcome unknown.
    """
    backoff = Backoff.for_status_checks(base.metadata.properties)
    started = time.monotonic()
    for attempt in range(1, backoff.num_retries + 1):
        try:
            loaded = catalog.load_table(identifier)
        except (StorageError, NotFoundError, CommitStateUnknownException):
            loaded = None
        if loaded is not None:
            answer = operation.is_in(loaded.metadata)
            if answer is None:
                return None
            if answer:
                return loaded
        wait = backoff.wait_seconds(attempt)
        if (time.monotonic() - started + wait) * 1000 > backoff.total_timeout_ms:
            return None
        if attempt < backoff.num_retries:
            sleep(wait)
    return None


def _abandon(operation: Operation) -> None:
    """Clean up after a failure without hiding the failure itself."""
    try:
        operation.on_abandoned()
    except (StorageError, NotFoundError) as error:
        _LOG.warning("files of a commit that did not take place were left behind: %s", error)


def _clean_after_success(operation: Operation, committed: LoadedTable) -> None:
    """Clean up after a success; the commit stands whether or not that works."""
    try:
        operation.on_committed(committed.metadata)
    except (StorageError, NotFoundError) as error:
        _LOG.warning("unused files of a commit's earlier tries were left behind: %s", error)
