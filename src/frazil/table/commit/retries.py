"""What ends in a commit is done again where another commit contradicts it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, TypeVar

from frazil.errors import CommitError, CommitFailedError, ConflictError

_LOG: Final = logging.getLogger(__name__)

Result = TypeVar("Result")


def run_with_retries(
    run: Callable[[], Result],
    retries: Callable[[CommitError], int],
    *,
    after: tuple[type[CommitError], ...] = (ConflictError, CommitFailedError),
) -> Result:
    """Run what starts from the newest metadata and commits, again where that is contradicted.

    `retries` says how often again, given what contradicts it; it is run again after the errors of
    `after`.
    """
    tried = 0
    while True:
        try:
            return run()
        except after as error:
            if tried >= retries(error):
                raise
            _LOG.info("what another commit contradicts is done again: %s", error)
        tried += 1
