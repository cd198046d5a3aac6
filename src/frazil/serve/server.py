"""Serving a catalog until a signal ends it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Iterator

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from frazil.catalog.protocol import Catalog
from frazil.errors import ConfigurationError
from frazil.serve.access import Tokens, read_tokens
from frazil.serve.app import ServeApp
from frazil.serve.service import ServedCatalog
from frazil.serve.settings import Listening, ServeSettings

__all__ = ["CatalogServer", "Listening", "ServeSettings", "read_tokens"]

_LOG = logging.getLogger("frazil.serve")
_BACKLOG = 512
_MOST_CONNECTIONS = 1000
_KEEP_ALIVE_SECONDS = 30
_GRACE_SECONDS = 30


class CatalogServer:
    """A catalog that clients of the REST protocol reach.

    Args:
        catalog: Frazil's; the server closes it when it ends.
        settings: how it is served.
        listening: where.
        tokens: of clients; without them everybody may do everything.

    Raises:
        ConfigurationError: the settings contradict each other, the address cannot be listened on,
            or a file of the certificate cannot be used.
    """

    def __init__(
        self,
        catalog: Catalog,
        settings: ServeSettings | None = None,
        *,
        listening: Listening | None = None,
        tokens: Tokens | None = None,
    ) -> None:
        where = listening if listening is not None else Listening()
        how = settings if settings is not None else ServeSettings()
        where.check(has_tokens=tokens is not None, is_open=how.is_open)
        self._app = ServeApp(ServedCatalog(catalog, how), tokens, host=where.host)
        self._socket = _listen(where)
        self._scheme = "https" if where.certificate is not None else "http"
        self._host = where.host
        config = uvicorn.Config(
            self._app,
            http=_protocol(how.body_seconds),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=_MOST_CONNECTIONS,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=_GRACE_SECONDS,
            ssl_certfile=where.certificate,
            ssl_keyfile=where.key,
        )
        try:
            config.load()
        except (OSError, ValueError) as error:
            self._socket.close()
            raise ConfigurationError(
                f"the certificate and its key cannot be used: {type(error).__name__}"
            ) from None
        self._server = _Server(config)

    @property
    def uri(self) -> str:
        """What clients are given as ``uri``."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{self._scheme}://{host}:{self._socket.getsockname()[1]}"

    def run(self) -> None:
        """Serve until SIGINT or SIGTERM; requests that were begun are answered first."""
        try:
            asyncio.run(self._until_signal())
        finally:
            self.close()

    def serve(self) -> None:
        """Serve until `stop`, in any thread."""
        try:
            asyncio.run(self._server.serve([self._socket]))
        finally:
            self.close()

    def stop(self) -> None:
        """Take no more requests, and let `serve` end once those that were begun are answered."""
        self._server.should_exit = True

    def close(self) -> None:
        """Give back the address and the catalog."""
        self._socket.close()
        self._app.close()

    async def _until_signal(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.stop)
        _LOG.info("serving on %s", self.uri)
        await self._server.serve([self._socket])
        _LOG.info("stopped")


class _Server(uvicorn.Server):
    """The server without signal handlers of its own: they would end the process by the signal."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _listen(where: Listening) -> socket.socket:
    try:
        family = socket.getaddrinfo(where.host, where.port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((where.host, where.port), family=family, backlog=_BACKLOG)
    except (OSError, OverflowError, UnicodeError) as error:
        raise ConfigurationError(
            f"cannot listen on {where.host}, port {where.port}: {error}"
        ) from None


def _protocol(seconds: float) -> type[asyncio.Protocol]:
    """HTTP, with a limit on the time in which the head of a request must come."""

    class TimedProtocol(H11Protocol):
        _limit: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._limit = self.loop.call_later(seconds, self._end_if_idle)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self._waits_for_head():
                if self._limit is None and data:
                    self._limit = self.loop.call_later(seconds, self._end_if_idle)
            else:
                self._forget_limit()

        def connection_lost(self, exc: Exception | None) -> None:
            self._forget_limit()
            super().connection_lost(exc)

        def _waits_for_head(self) -> bool:
            return self.conn.their_state is h11.IDLE

        def _forget_limit(self) -> None:
            if self._limit is not None:
                self._limit.cancel()
                self._limit = None

        def _end_if_idle(self) -> None:
            self._limit = None
            if self._waits_for_head():
                self.transport.close()

    return TimedProtocol
