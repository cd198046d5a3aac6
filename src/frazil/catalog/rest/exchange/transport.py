"""One exchange with a server over HTTP: one pool of connections a process, limits on everything."""

from __future__ import annotations

import os
import ssl
import threading
import time
from collections.abc import Mapping
from typing import Final
from urllib.parse import urljoin

import httpx

from frazil.catalog.rest.exchange.answers import (
    Answer,
    EndlessAnswerError,
    LostAnswerError,
    NotSentError,
    shown_text,
)
from frazil.catalog.rest.exchange.timed import TimedTransport
from frazil.catalog.rest.settings import TransportSettings, origin_of
from frazil.errors import ConfigurationError, StorageError

_LONGEST_EXCHANGE_SECONDS: Final = 600
_LARGEST_ANSWER: Final = 1 << 30
_MOST_REDIRECTS: Final = 5
_REDIRECTS: Final = (301, 302, 303, 307, 308)
_KEEPING_METHOD: Final = (307, 308)
_READS: Final = ("GET", "HEAD")
_NOT_SENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)


class Transport:
    """Sends requests and reads answers; safe under threads, and in forked processes."""

    def __init__(self, settings: TransportSettings, tls: ssl.SSLContext) -> None:
        self._settings = settings
        self._tls = tls
        self._making = threading.Lock()
        self._clients: dict[int, httpx.Client] = {}

    def exchange(
        self, method: str, url: str, *, headers: Mapping[str, str], content: bytes | None = None
    ) -> Answer:
        """Send a request and return the complete answer; only redirects to the origin are followed.

        Raises NotSentError: no connection could be had; LostAnswerError: the request was sent, and
        its answer did not come whole; StorageError: the server leads elsewhere.
        """
        origin = origin_of(url)
        ends = time.monotonic() + _LONGEST_EXCHANGE_SECONDS
        for _ in range(_MOST_REDIRECTS):
            answer = self._send_once(method, url, headers, content, ends)
            target = answer.headers.get("location")
            if answer.status not in _REDIRECTS or target is None:
                return answer
            url = urljoin(url, target)
            if not _has_origin(origin, url):
                raise StorageError(
                    "the server redirects to another origin, which is not followed since "
                    "credentials would go there: give its address as uri"
                )
            if method not in _READS and answer.status not in _KEEPING_METHOD:
                return answer
        raise StorageError(f"the server redirects more than {_MOST_REDIRECTS} times")

    def close(self) -> None:
        """Close the connections of this process."""
        with self._making:
            client = self._clients.pop(os.getpid(), None)
        if client is not None:
            client.close()

    def _send_once(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        content: bytes | None,
        ends: float,
    ) -> Answer:
        try:
            with self._client().stream(method, url, headers=headers, content=content) as response:
                body = bytearray()
                for part in response.iter_bytes():
                    body += part
                    if len(body) > _LARGEST_ANSWER or time.monotonic() > ends:
                        raise EndlessAnswerError(
                            f"the answer is longer than {_LARGEST_ANSWER} bytes or takes longer "
                            f"than {_LONGEST_EXCHANGE_SECONDS} s"
                        )
                found = {name.lower(): value for name, value in response.headers.items()}
                return Answer(response.status_code, found, bytes(body))
        except _NOT_SENT as error:
            raise NotSentError(f"the server cannot be reached: {_reason(error)}") from None
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise ConfigurationError(f"uri cannot be used: {_reason(error)}") from None
        except httpx.LocalProtocolError:
            # Its message quotes the header, which may be a login.
            raise LostAnswerError("no answer came: a header cannot be sent") from None
        except httpx.HTTPError as error:
            raise LostAnswerError(f"no answer came: {_reason(error)}") from None

    def _client(self) -> httpx.Client:
        # A forked child must not use the connections of its parent.
        process = os.getpid()
        found = self._clients.get(process)
        if found is not None:
            return found
        with self._making:
            return self._clients.setdefault(process, self._new_client())

    def _new_client(self) -> httpx.Client:
        settings = self._settings
        return httpx.Client(
            transport=TimedTransport(self._tls, max_connections=settings.max_connections),
            follow_redirects=False,
            timeout=httpx.Timeout(settings.read_seconds, connect=settings.connect_seconds),
        )


def _has_origin(origin: tuple[str, str, int | None], url: str) -> bool:
    try:
        return origin_of(url) == origin
    except ConfigurationError:
        return False


def _reason(error: Exception) -> str:
    return shown_text(error) or type(error).__name__
