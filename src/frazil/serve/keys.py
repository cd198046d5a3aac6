"""Requests with an Idempotency-Key: one that is sent again is not carried out again.

What was answered is kept in memory for a while. Where the catalog notes requests together with
their changes, a change is made once, also after a restart and beside other servers.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from frazil.errors import (
    FrazilError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NoSuchViewError,
    RequestRepeatedError,
)
from frazil.serve.answers import HttpAnswer, HttpError, bad_request
from frazil.serve.calls import Call
from frazil.serve.endpoints import Endpoint
from frazil.serve.service import ServedCatalog
from frazil.serve.settings import ServeSettings
from frazil.storage.caches import BoundedCache

_LOG = logging.getLogger("frazil.serve")
_HEADER: Final = "idempotency-key"
_KEPT_BYTES: Final = 32 << 20
_BYTES_OF_AN_ENTRY: Final = 500
_LENGTH: Final = 36


@dataclass(frozen=True, slots=True)
class RequestKey:
    """What a client calls a request.

    Attributes:
        text: the client's UUID.
        digest: of who asks for what, to tell another request with the same key.
    """

    text: str
    digest: str

    @classmethod
    def of(cls, endpoint: Endpoint, call: Call) -> RequestKey | None:
        """Return the key of a request that changes something, None where it has none.

        Raises:
            HttpError: it is no UUID.
        """
        given = call.headers.get(_HEADER)
        if given is None or not endpoint.changes:
            return None
        try:
            text = str(uuid.UUID(given))
        except ValueError:
            text = ""
        if text != given.lower() or len(given) != _LENGTH:
            raise bad_request("Idempotency-Key must be a UUID such as 017f22e2-79b0-7cc3-98c4-…")
        asked = [endpoint.method, endpoint.template, call.namespace, call.name]
        about = json.dumps([call.principal.name, *asked, sorted(call.query.items())])
        return cls(text, hashlib.sha256(about.encode() + b"\0" + call.content).hexdigest())

    def require(self, digest: str) -> None:
        """Check that a digest that came with the key is of this request; HttpError where not."""
        if digest != self.digest:
            raise bad_request("this Idempotency-Key was used for another request: make a new one")


@dataclass(frozen=True, slots=True)
class _Answered:
    digest: str
    answer: HttpAnswer
    until: float


class RequestKeys:
    """Requests that run or were answered, by their keys; used by one event loop.

    Args:
        kept_seconds: how long an answer is known, unless newer ones need its memory.
    """

    def __init__(self, kept_seconds: float) -> None:
        self._kept_seconds = kept_seconds
        self._running: dict[str, tuple[str, asyncio.Future[HttpAnswer]]] = {}
        self._answered: BoundedCache[_Answered] = BoundedCache(_KEPT_BYTES)

    def work_on(
        self, key: RequestKey, start: Callable[[], asyncio.Future[HttpAnswer]]
    ) -> asyncio.Future[HttpAnswer]:
        """Return the work on a request: the first one's where it came before.

        Raises:
            HttpError: the key is another request's.
        """
        if key.text in self._running:
            digest, work = self._running[key.text]
            key.require(digest)
            return work
        known = self._answered.get(key.text)
        if known is not None and known.until > time.monotonic():
            key.require(known.digest)
            done: asyncio.Future[HttpAnswer] = asyncio.get_running_loop().create_future()
            done.set_result(known.answer)
            return done
        work = start()
        self._running[key.text] = key.digest, work
        work.add_done_callback(lambda ended: self._forget(key, ended))
        return work

    def _forget(self, key: RequestKey, work: asyncio.Future[HttpAnswer]) -> None:
        del self._running[key.text]
        if work.cancelled() or work.exception() is not None:
            return
        answer = work.result()
        # An error of the server is not final: the client's next try is carried out.
        if answer.status < 500:
            size = len(answer.body or b"") + _BYTES_OF_AN_ENTRY
            until = time.monotonic() + self._kept_seconds
            self._answered.put(key.text, _Answered(key.digest, answer, until), size)


def carry_out_once(
    served: ServedCatalog, endpoint: Endpoint, call: Call, key: RequestKey
) -> HttpAnswer:
    """Return the answer to a request; one that the catalog has noted is answered as it is now.

    Raises:
        HttpError: the key is another request's, or what the request made is gone.
        FrazilError: as of the endpoint.
    """
    log = served.requests
    if log is None:
        return endpoint.handler(served, call)
    try:
        with log.noting_request(key.text, key.digest):
            return endpoint.handler(served, call)
    except (FrazilError, HttpError) as error:
        # A refusal may be of the request's own change, which another process has made.
        digest = log.digest_of(key.text)
        if digest is None:
            if isinstance(error, RequestRepeatedError):
                raise _change_is_past() from None
            raise
    key.require(digest)
    try:
        return endpoint.again(served, call)
    except (NoSuchTableError, NoSuchViewError, NoSuchNamespaceError):
        raise _change_is_past() from None


def forget_old_requests(served: ServedCatalog) -> None:
    """Remove notes that no client may ask for any more; an error is logged."""
    if served.requests is None:
        return
    try:
        served.requests.forget(older_than_seconds=kept_seconds(served.settings))
    except FrazilError as error:
        _LOG.warning("old notes of requests were not removed: %s", type(error).__name__)


def kept_seconds(settings: ServeSettings) -> float:
    """How long keys are known: twice as long as clients may use them, since clocks differ."""
    return 2 * 60 * settings.key_minutes


def _change_is_past() -> HttpError:
    """The answer that lets no client take away files: the change took place, and more did since."""
    return HttpError(
        500,
        "CommitStateUnknownException",
        "the request was carried out before, and what it made has another name or is gone",
    )
