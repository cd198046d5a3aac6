"""HTTP over connections that must send the head of a request in time and in few bytes.

httptools reads heads some ten times faster than h11, and is used where it is installed.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import MutableMapping
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from frazil.serve.answers import HttpAnswer, bad_request, error_answer
from frazil.serve.running.exchange import CLOSE, Receive, Send, send_answer

try:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
except ImportError:
    HttpToolsProtocol = None  # type: ignore[assignment,misc]

LONGEST_HEAD: Final = 64 << 10
"""In bytes; the end of a head is known at the latest one read of a socket later."""

_LOG: Final = logging.getLogger("frazil.serve")
_CLOSING_SECONDS: Final = 1.0
_HEAD_END: Final = b"\r\n\r\n"
_TOO_LONG: Final = bad_request(f"a head may have {LONGEST_HEAD} bytes at most", CLOSE).answer
_NO_HTTP: Final = bad_request("the request is not of HTTP/1.1", CLOSE).answer
_BUSY: Final = error_answer(
    503,
    "ServiceUnavailableException",
    "the server has as many connections as it takes",
    {"Retry-After": "1", **CLOSE},
)


class _LimitedHead(ABC):
    """Closes a connection whose next head does not come in time or has too many bytes.

    Beyond so many connections at once a request is told to come again.
    """

    head_seconds: float
    most_connections: int
    app: Any
    loop: asyncio.AbstractEventLoop
    transport: asyncio.Transport
    connections: set[Any]
    cycle: Any
    _limit: asyncio.TimerHandle | None = None
    _head_bytes: int = 0
    _head_tail: bytes = b""
    _served: Any = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)  # type: ignore[misc]
        self._served = self.app
        self._limit = self.loop.call_later(self.head_seconds, self._end_if_idle)

    def data_received(self, data: bytes) -> None:
        if self.is_before_head() and self._is_too_long(data):
            self._refuse(_TOO_LONG)
            return
        is_full = len(self.connections) > self.most_connections
        self.app = _tell_to_come_again if is_full else self._served
        super().data_received(data)  # type: ignore[misc]
        if not self.waits_for_head():
            self._forget_limit()
            return
        self._head_bytes += len(data)
        self._head_tail = (self._head_tail + data)[1 - len(_HEAD_END) :]
        if self._limit is None and data:
            self._limit = self.loop.call_later(self.head_seconds, self._end_if_idle)

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP."""
        _LOG.info("400: %s", msg)
        self._refuse(_NO_HTTP)

    def connection_lost(self, error: Exception | None) -> None:
        self._forget_limit()
        super().connection_lost(error)  # type: ignore[misc]

    def shutdown(self) -> None:
        """End the connection, at once where no request is at work."""
        super().shutdown()  # type: ignore[misc]
        if self.cycle is None or self.cycle.response_complete:
            # Over TLS a close waits for the client's own, which an idle client does not send.
            self.loop.call_later(_CLOSING_SECONDS, self.transport.abort)

    @abstractmethod
    def waits_for_head(self) -> bool:
        """Whether a head is not complete, or none has come at all."""

    @abstractmethod
    def is_before_head(self) -> bool:
        """Whether the next bytes are those of a head."""

    def _is_too_long(self, data: bytes) -> bool:
        end = (self._head_tail + data).find(_HEAD_END)
        more = len(data) if end < 0 else end + len(_HEAD_END) - len(self._head_tail)
        return self._head_bytes + more > LONGEST_HEAD

    def _refuse(self, answer: HttpAnswer) -> None:
        """Answer what no application sees, and end the connection."""
        if self.cycle is None or self.cycle.response_complete:
            self.transport.write(_as_text(answer))
        self.transport.close()

    def _forget_limit(self) -> None:
        self._head_bytes = 0
        self._head_tail = b""
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None

    def _end_if_idle(self) -> None:
        self._limit = None
        if self.waits_for_head():
            self.transport.close()


class _TimedH11(_LimitedHead, H11Protocol):
    def waits_for_head(self) -> bool:
        return self.conn.their_state is h11.IDLE

    def is_before_head(self) -> bool:
        return self.waits_for_head()


def _timed_httptools() -> type[asyncio.Protocol] | None:
    if HttpToolsProtocol is None:
        return None

    class TimedHttpTools(_LimitedHead, HttpToolsProtocol):
        _waits = True
        _is_between = False

        def on_message_begin(self) -> None:
            self._waits, self._is_between = True, False
            super().on_message_begin()

        def on_headers_complete(self) -> None:
            self._waits = False
            super().on_headers_complete()

        def on_message_complete(self) -> None:
            self._is_between = True
            super().on_message_complete()

        def waits_for_head(self) -> bool:
            return self._waits

        def is_before_head(self) -> bool:
            return self._waits or self._is_between

    return TimedHttpTools


def timed_protocol(head_seconds: float, *, most_connections: int) -> type[asyncio.Protocol]:
    """Return HTTP, with a limit on the time in which the head of a request must come.

    Args:
        head_seconds: the limit.
        most_connections: beyond so many at once requests are told to come again.
    """
    base = _timed_httptools() or _TimedH11
    limits = {"head_seconds": head_seconds, "most_connections": most_connections}
    return type("TimedProtocol", (base,), limits)


async def _tell_to_come_again(
    _scope: MutableMapping[str, Any], _receive: Receive, send: Send
) -> None:
    _LOG.info("503: there are more connections than the server takes")
    await send_answer(_BUSY, send)


def _as_text(answer: HttpAnswer) -> bytes:
    body = answer.body or b""
    headers = {
        **answer.headers,
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
    }
    lines = [f"HTTP/1.1 {answer.status} {answer.error}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body
