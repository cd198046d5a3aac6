"""HTTP over connections that must send the head of a request in time and in few bytes.

httptools reads heads some ten times faster than h11, and is used where it is installed.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

try:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
except ImportError:
    HttpToolsProtocol = None  # type: ignore[assignment,misc]

_LONGEST_HEAD: Final = 64 << 10
_CLOSING_SECONDS: Final = 1.0


class _LimitedHead(ABC):
    """Closes a connection whose next head does not come in time or has too many bytes."""

    head_seconds: float
    loop: asyncio.AbstractEventLoop
    transport: asyncio.Transport
    cycle: Any
    _limit: asyncio.TimerHandle | None = None
    _head_bytes: int = 0

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)  # type: ignore[misc]
        self._limit = self.loop.call_later(self.head_seconds, self._end_if_idle)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)  # type: ignore[misc]
        if not self.waits_for_head():
            self._forget_limit()
            return
        self._head_bytes += len(data)
        if self._head_bytes > _LONGEST_HEAD:
            self.transport.close()
        elif self._limit is None and data:
            self._limit = self.loop.call_later(self.head_seconds, self._end_if_idle)

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

    def _forget_limit(self) -> None:
        self._head_bytes = 0
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


def _timed_httptools() -> type[asyncio.Protocol] | None:
    if HttpToolsProtocol is None:
        return None

    class TimedHttpTools(_LimitedHead, HttpToolsProtocol):
        _waits = True

        def on_message_begin(self) -> None:
            self._waits = True
            super().on_message_begin()

        def on_headers_complete(self) -> None:
            self._waits = False
            super().on_headers_complete()

        def waits_for_head(self) -> bool:
            return self._waits

    return TimedHttpTools


def timed_protocol(head_seconds: float) -> type[asyncio.Protocol]:
    """Return HTTP, with a limit on the time in which the head of a request must come."""
    base = _timed_httptools() or _TimedH11
    return type("TimedProtocol", (base,), {"head_seconds": head_seconds})
