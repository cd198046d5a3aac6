"""What became of a change: decided here for every catalog (SPEC rules 214, 216).

A change ends in one of three ways.  It is refused before it was sent to where it takes effect, and
what was written for it is removed.  It takes place, and nothing that follows makes a failure of it.
Or its answer is lost: then the catalog is asked until it tells, or the outcome stays unknown and
nothing is deleted.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from frazil.errors import (
    AlreadyExistsError,
    CommitNotSentError,
    CommitStateUnknownError,
    FrazilError,
    MissingFileError,
    StorageError,
)
from frazil.format.properties.table import (
    STATUS_CHECKS,
    STATUS_MAX_WAIT,
    STATUS_MIN_WAIT,
    STATUS_TIMEOUT,
)
from frazil.storage.files import FileIO
from frazil.storage.paths import redact

_LOG = logging.getLogger(__name__)
_MAX_DOUBLINGS = 20

Answer = TypeVar("Answer")


@dataclass(slots=True)
class Sending:
    """Whether a change may have reached the place where it takes effect.

    Attributes:
        is_begun: from just before the change is sent; then only `refute` takes it back.
    """

    is_begun: bool = False

    def begin(self) -> None:
        """Note that the change is about to be sent."""
        self.is_begun = True

    def refute(self) -> None:
        """Note that the catalog has said that the change did not take place."""
        self.is_begun = False


@contextlib.contextmanager
def new_metadata_file(
    io: FileIO, path: str, data: bytes, *, sending: Sending | None = None
) -> Iterator[Sending]:
    """Write the file of a change that the block sends; it goes again if nothing was sent.

    Whatever the block raises once the sending has begun, the file stays: the table may name it.
    Raises CommitNotSentError: the file could not be written.
    """
    sending = Sending() if sending is None else sending
    try:
        io.create_unique(path, data)
    except AlreadyExistsError:
        raise
    except BaseException as error:
        _remove_unused(io, path)
        if isinstance(error, StorageError) and not isinstance(error, MissingFileError):
            raise CommitNotSentError(f"{error}; the change was not sent") from error
        raise
    try:
        yield sending
    except BaseException:
        if not sending.is_begun:
            _remove_unused(io, path)
        raise


def find_outcome(
    ask: Callable[[], bool | None], properties: Mapping[str, str], *, change: str, reason: str
) -> bool:
    """Whether a change took place, asking again by the ``commit.status-check.*`` properties.

    `ask` gives None, or raises an error of Frazil, if the catalog cannot tell. Raises
    CommitStateUnknownError where it could not be asked, or cannot tell any more.
    """
    answer = first_answer(ask, properties)
    if answer is not None:
        return answer
    raise CommitStateUnknownError(
        f"{change} was sent and its outcome is unknown ({reason}); no file was deleted"
    )


def first_answer(
    ask: Callable[[], Answer | None],
    properties: Mapping[str, str],
    *,
    sleep: Callable[[float], None] | None = None,
) -> Answer | None:
    """Ask once, and again by the ``commit.status-check.*`` properties while there is no answer.

    `ask` gives None, or raises an error of Frazil or of the system, if that cannot be told yet.
    """
    # The swap was sent: a malformed property must not become its outcome.
    retries = STATUS_CHECKS.of_or_default(properties)
    wait = STATUS_MIN_WAIT.of_or_default(properties) / 1000
    longest = STATUS_MAX_WAIT.of_or_default(properties) / 1000
    total = STATUS_TIMEOUT.of_or_default(properties) / 1000
    started = time.monotonic()
    for attempt in range(retries + 1):
        with contextlib.suppress(FrazilError, OSError):
            answer = ask()
            if answer is not None:
                return answer
        pause = min(longest, wait * 2 ** min(attempt, _MAX_DOUBLINGS))
        if attempt == retries or time.monotonic() - started + pause > total:
            break
        (sleep or time.sleep)(pause)
    return None


@contextlib.contextmanager
def after_the_change(what: str) -> Iterator[None]:
    """Log an error of what follows a change that took place: it does not undo the change."""
    try:
        yield
    except Exception as error:
        _LOG.warning("%s: %s: %s", what, type(error).__name__, redact(str(error)))


def _remove_unused(io: FileIO, path: str) -> None:
    with after_the_change(f"the unused metadata file {path} was not deleted"):
        for failure in io.delete_many([path]).values():
            raise failure
