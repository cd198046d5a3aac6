"""Whether a server of Spark is well, told by HTTP to whoever supervises it."""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Self

from frazil.errors import ConfigurationError

OK: Final = "ok"
_PATH: Final = "/health"
_LONGEST: Final = 5.0
"""Seconds that one question to Spark, and one client, may take."""


class HealthPort:
    """Answers GET and HEAD of ``/health``: 200 where all is well, else 503, and one word.

    Args:
        host: the address that is listened on.
        port: its port; 0 takes a free one.

    Raises:
        ConfigurationError: it cannot be listened on.
    """

    def __init__(self, host: str, port: int) -> None:
        self._status: Callable[[], str] = lambda: "starting"
        self._asking = threading.Lock()
        try:
            family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
            listener = socket.create_server((host, port), family=family)
        except (OSError, OverflowError, UnicodeError) as error:
            raise ConfigurationError(f"cannot listen on {host}, port {port}: {error}") from None
        self._server = _Server(listener, self)

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return int(self._server.server_address[1])

    def ask(self, status: Callable[[], str]) -> None:
        """Answer what a function says from now on; before, a server is starting.

        Args:
            status: says ``ok``, or what else is so.
        """
        self._status = status

    def status(self) -> str:
        """Return what is so. Whoever asks while another has no answer is not kept waiting."""
        if not self._asking.acquire(timeout=_LONGEST):
            return "no answer"
        try:
            return self._status()
        finally:
            self._asking.release()

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    """A thread for each client, none of which keeps the process alive."""

    daemon_threads = True

    def __init__(self, listener: socket.socket, health: HealthPort) -> None:
        super().__init__(listener.getsockname()[:2], _Answer, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.server_address = listener.getsockname()
        self.health = health

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that went before its answer."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Answer(BaseHTTPRequestHandler):
    timeout = _LONGEST
    server: _Server

    def do_GET(self) -> None:
        """Answer in JSON."""
        if self.path.partition("?")[0] != _PATH:
            self._tell(404, {"error": "there is /health alone"})
            return
        status = self.server.health.status()
        self._tell(200 if status == OK else 503, {"status": status})

    do_HEAD = do_GET

    def _tell(self, code: int, said: dict[str, str]) -> None:
        text = json.dumps(said).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    def version_string(self) -> str:
        """The server's name, without what it runs on."""
        return "frazil"

    def log_message(self, format: str, *arguments: Any) -> None:
        """Log nothing: it is asked every few seconds."""
