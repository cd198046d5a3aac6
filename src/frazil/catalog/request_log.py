"""Requests that a catalog has carried out, so that one that is sent again changes nothing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager


class RequestLog(ABC):
    """Requests by the keys that their clients gave them, each noted with the change that it made.

    The note and the change are one step: who finds the note knows that the change took place, and
    a change whose note is there already does not take place.
    """

    @abstractmethod
    def noting_request(self, key: str, digest: str) -> AbstractContextManager[None]:
        """Note a request together with the change that this thread makes in the block.

        The client uses the key for one request alone; the digest tells the request from another one
        with the same key. Raises RequestRepeatedError in the block where the key is noted already;
        nothing was changed then.
        """

    @abstractmethod
    def digest_of(self, key: str) -> str | None:
        """Return the digest that is noted with a key, None if there is no such note."""

    @abstractmethod
    def forget(self, *, older_than_seconds: float) -> None:
        """Remove notes of changes that were made so long ago."""
