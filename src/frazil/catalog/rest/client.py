"""Requests with their retries: reads are sent again, changes only where that is safe."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode

from frazil.catalog.rest.exchange.answers import (
    Answer,
    EndlessAnswerError,
    LostAnswerError,
    NotSentError,
    Refusals,
)
from frazil.catalog.rest.login.base import Authenticator
from frazil.catalog.rest.settings import origin_of
from frazil.errors import CommitFailedError, ConfigurationError, FrazilError, StorageError

if TYPE_CHECKING:
    from frazil.catalog.rest.exchange.transport import Transport

_TRANSIENT: Final = (429, 502, 503, 504)
_LAPSED: Final = (401, 419)
# What is refused by these was not looked at: they tell nothing of the same request sent before.
_NOT_LOOKED_AT: Final = (401, 403, 408, 419, 429)
_FIRST_WAIT: Final = 0.2
_LONGEST_WAIT: Final = 30.0
_LONGEST_RETRYING: Final = 120.0
IDEMPOTENCY_KEY: Final = "Idempotency-Key"


@dataclass(frozen=True, slots=True)
class RestRequest:
    """One request of the protocol.

    Attributes:
        method: HTTP's.
        path: below the server's address, percent-encoded.
        what: what is asked, for messages: ``load the table db.t``.
        params: of the query.
        body: sent as JSON; None sends none.
        headers: beside those of every request.
        token: a bearer token in place of the catalog's own login.
        refusals: what the server's refusals mean.
    """

    method: str
    path: str
    what: str
    params: Mapping[str, str] = field(default_factory=dict)
    body: Any = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict)
    token: str | None = field(default=None, repr=False)
    refusals: Refusals = field(default_factory=Refusals)


class RestClient:
    """Sends requests with a login, again where that is safe, and raises typed errors.

    Attributes:
        uri: the server's address, without a slash at its end.
        authenticator: logs in.
        key_lifetime_seconds: how long the server knows an Idempotency-Key; 0 where it knows none.
    """

    def __init__(
        self,
        transport: Transport,
        uri: str,
        *,
        authenticator: Authenticator,
        headers: Mapping[str, str],
        secrets: Mapping[str, str],
        max_retries: int,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.uri = uri
        self.authenticator = authenticator
        self.key_lifetime_seconds = 0.0
        self._transport = transport
        self._headers = dict(headers)
        self._secrets = dict(secrets)
        self._max_retries = max_retries
        self._sleep = sleep

    def at_address(self, uri: str) -> RestClient:
        """Return a client with the same login and connections at another address.

        Raises ConfigurationError where it is without TLS and this one's is not.
        """
        origin_of(uri)
        if self.uri.startswith("https://") and not uri.startswith("https://"):
            raise ConfigurationError(f"{uri} is without TLS: the login does not go there")
        return RestClient(
            self._transport,
            uri,
            authenticator=self.authenticator,
            headers=self._headers,
            secrets=self._secrets,
            max_retries=self._max_retries,
            sleep=self._sleep,
        )

    def read(self, request: RestRequest, *, also: tuple[int, ...] = ()) -> Answer:
        """Return the answer to a request that changes nothing.

        Raises StorageError: the server did not answer, or failed, in every try; AccessDeniedError,
        NotFoundError, …: the server refuses, by its statuses, unless they are among `also`.
        """
        tries = _Tries(self._max_retries, self._sleep)
        while True:
            try:
                answer = self._send(request)
            except (NotSentError, LostAnswerError) as error:
                if isinstance(error, EndlessAnswerError) or not tries.wait():
                    raise StorageError(f"cannot {request.what}: {error}") from None
                continue
            if answer.is_success or answer.status in also:
                return answer
            if answer.status in _TRANSIENT and tries.wait(answer):
                continue
            raise self._refusal(request, answer)

    def change(self, request: RestRequest) -> Answer:
        """Return the answer to a request that changes something.

        It is sent again where the server cannot have done it, where the server asks for that
        (503 with Retry-After, 429), and, with an Idempotency-Key, after a lost answer.
        Raises LostAnswerError: it was sent, and what became of it is unknown; CommitFailedError: it
        was never sent; AccessDeniedError, NotFoundError, …: the server refuses, by its statuses.
        """
        keyed = {IDEMPOTENCY_KEY: new_key()} if self.key_lifetime_seconds else {}
        longest = self.key_lifetime_seconds or _LONGEST_RETRYING
        tries = _Tries(self._max_retries, self._sleep, longest=min(longest, _LONGEST_RETRYING))
        lost: str | None = None
        while True:
            try:
                answer = self._send(request, keyed)
            except NotSentError as error:
                if tries.wait():
                    continue
                if lost is not None:
                    raise LostAnswerError(lost) from None
                raise CommitFailedError(
                    f"cannot {request.what}: it was not sent, since {error}"
                ) from None
            except LostAnswerError as error:
                lost = str(error)
                if keyed and not isinstance(error, EndlessAnswerError) and tries.wait():
                    continue
                raise
            if answer.is_success:
                return answer
            if answer.status >= 500 and answer.status != 501:
                lost = str(self._refusal(request, answer))
                may_repeat = answer.status == 503 and "retry-after" in answer.headers
                if (keyed or may_repeat) and tries.wait(answer):
                    continue
                raise LostAnswerError(lost)
            if answer.status == 429 and tries.wait(answer):
                continue
            refusal = self._refusal(request, answer)
            if lost is not None and answer.status in _NOT_LOOKED_AT:
                raise LostAnswerError(lost)
            if lost is not None and not keyed:
                raise LostAnswerError(lost, refusal)
            raise refusal

    def close(self) -> None:
        """Close the connections of this process."""
        self._transport.close()

    def _send(self, request: RestRequest, more: Mapping[str, str] | None = None) -> Answer:
        """Send once, and once more with a new login where the old one has lapsed."""
        answer, sent = self._exchange(request, more or {})
        lapsed = answer.status in _LAPSED and request.token is None
        if lapsed and self.authenticator.renew(sent):
            return self._exchange(request, more or {})[0]
        return answer

    def _exchange(
        self, request: RestRequest, more: Mapping[str, str]
    ) -> tuple[Answer, Mapping[str, str]]:
        """The answer, and the headers of the request."""
        content = None if request.body is None else json.dumps(request.body).encode()
        query = urlencode(request.params, quote_via=quote)
        url = f"{self.uri}/{request.path}" + (f"?{query}" if query else "")
        headers = {**self._headers, **request.headers, **more}
        if content is not None:
            headers["Content-Type"] = "application/json"
        if request.token is not None:
            headers["Authorization"] = f"Bearer {request.token}"
        else:
            headers = self.authenticator.with_login(request.method, url, headers, content)
        answer = self._transport.exchange(request.method, url, headers=headers, content=content)
        return answer, headers

    def _refusal(self, request: RestRequest, answer: Answer) -> FrazilError:
        known = {**self._secrets, **self.authenticator.secrets}
        if request.token is not None:
            known["token of the table"] = request.token
        return request.refusals.error(answer, request.what, known)


class _Tries:
    """How often a request was sent, and how long to wait before the next time."""

    def __init__(
        self, most: int, sleep: Callable[[float], None], longest: float = _LONGEST_RETRYING
    ) -> None:
        self._left = most
        self._sleep = sleep
        self._wait = _FIRST_WAIT
        self._ends = time.monotonic() + longest

    def wait(self, answer: Answer | None = None) -> bool:
        """Wait before the next try; no if there is none any more."""
        retry_after = None if answer is None else _retry_after(answer)
        pause = random.uniform(self._wait / 2, self._wait)  # noqa: S311
        if retry_after is not None:
            pause += retry_after
        if self._left <= 0 or time.monotonic() + pause > self._ends:
            return False
        self._left -= 1
        self._wait = min(_LONGEST_WAIT, 2 * self._wait)
        self._sleep(pause)
        return True


def _retry_after(answer: Answer) -> float | None:
    """The seconds that the server says, as a number or as a date."""
    text = answer.headers.get("retry-after")
    if text is None:
        return None
    if text.strip().isdecimal():
        return float(text[:9])
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


def new_key() -> str:
    """Return a UUID of version 7, which the protocol wants as an Idempotency-Key."""
    milliseconds = int(time.time() * 1000) & (1 << 48) - 1
    chance = int.from_bytes(os.urandom(10), "big")
    high, low = chance >> 68, chance & (1 << 62) - 1
    value = milliseconds << 80 | 7 << 76 | high << 64 | 2 << 62 | low
    text = f"{value:032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
