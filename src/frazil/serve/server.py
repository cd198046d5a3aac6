"""Serving a catalog until a signal ends it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import signal
import socket
from collections.abc import Coroutine, Iterator
from typing import Any

import uvicorn

from frazil.catalog.protocol import Catalog
from frazil.errors import ConfigurationError
from frazil.serve.app import ServeApp
from frazil.serve.rights.access import Tokens, read_tokens
from frazil.serve.running.protocols import timed_protocol
from frazil.serve.service import ServedCatalog
from frazil.serve.settings import Listening, ServeSettings

__all__ = [
    "CatalogServer",
    "Listening",
    "ServeSettings",
    "listen",
    "new_session_key",
    "read_tokens",
    "uri_of",
]

_LOG = logging.getLogger("frazil.serve")
_BACKLOG = 512
_MOST_HELD_BYTES = 1 << 20
_KEEP_ALIVE_SECONDS = 30
_GRACE_SECONDS = 30
_KEY_BYTES = 32


class CatalogServer:
    """A catalog that clients of the REST protocol reach.

    Attributes:
        uri: what clients are given as ``uri``.

    Args:
        catalog: Frazil's; the server closes it when it ends.
        settings: how it is served.
        listening: where.
        tokens: of clients; without them everybody may do everything.
        shared: a socket that other processes listen on as well; its own unless given.
        session_key: secret, the same for these processes; a random one unless given. A browser is
            logged in for as long as there is a server with its key.

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
        shared: socket.socket | None = None,
        session_key: bytes | None = None,
    ) -> None:
        where = listening if listening is not None else Listening()
        how = settings if settings is not None else ServeSettings()
        where.check(has_tokens=tokens is not None, is_open=how.is_open)
        key = new_session_key() if session_key is None else session_key
        self._app = ServeApp(ServedCatalog(catalog, how), tokens, host=where.host, session_key=key)
        self._socket = listen(where) if shared is None else shared
        self.uri = uri_of(where, self._socket)
        config = uvicorn.Config(
            self._app,
            http=timed_protocol(how.body_seconds, most_connections=how.max_connections),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            # The protocol itself limits heads.
            h11_max_incomplete_event_size=_MOST_HELD_BYTES,
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

    def run(self) -> None:
        """Serve until SIGINT or SIGTERM; requests that were begun are answered first."""
        self._run(self._until_signal())

    def serve(self) -> None:
        """Serve until `stop`, in any thread."""
        self._run(self._server.serve([self._socket]))

    def stop(self) -> None:
        """Take no more requests, and let `serve` end once those that were begun are answered."""
        self._server.should_exit = True

    def close(self) -> None:
        """Give back the address and the catalog."""
        self._socket.close()
        self._app.close()

    def _run(self, serving: Coroutine[Any, Any, None]) -> None:
        """Run an event loop, uvloop's where it is installed, and close the server."""
        try:
            with asyncio.Runner(loop_factory=self._server.config.get_loop_factory()) as runner:
                runner.run(serving)
        finally:
            self.close()

    async def _until_signal(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.stop)
        _LOG.info("serving on %s", self.uri)
        await self._server.serve([self._socket])
        _LOG.info("stopped")


def new_session_key() -> bytes:
    """Return a key that nobody else has."""
    return secrets.token_bytes(_KEY_BYTES)


def uri_of(where: Listening, listener: socket.socket) -> str:
    """Return what clients are given as ``uri``."""
    scheme = "https" if where.certificate is not None else "http"
    host = f"[{where.host}]" if ":" in where.host else where.host
    return f"{scheme}://{host}:{listener.getsockname()[1]}"


class _Server(uvicorn.Server):
    """The server without signal handlers of its own: they would end the process by the signal."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def listen(where: Listening) -> socket.socket:
    """Return a socket that listens; ConfigurationError if the address cannot be listened on."""
    try:
        family = socket.getaddrinfo(where.host, where.port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((where.host, where.port), family=family, backlog=_BACKLOG)
    except (OSError, OverflowError, UnicodeError) as error:
        raise ConfigurationError(
            f"cannot listen on {where.host}, port {where.port}: {error}"
        ) from None
