"""Servers that answer a byte at a time, on raw sockets, and a proxy before a server."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.request import ProxyHandler, build_opener

import pytest
from catalog_cases import opened
from rest_cases import NO_REPORTS

from frazil.errors import ConfigurationError, StorageError
from rest_server import Server

PAUSE = 0.1
SILENCE = {"rest.client.socket-timeout-ms": "500", "rest.client.max-retries": "0"}
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
CONFIG = json.dumps({"defaults": {}, "overrides": {}}).encode()
NAMES = json.dumps({"namespaces": [["a"]]}).encode()


def plainly(connection: socket.socket, data: bytes) -> None:
    connection.sendall(data)


def slowly(connection: socket.socket, data: bytes) -> None:
    """A byte at a time; a quarter of what a client lets a server be silent lies between two."""
    for byte in data:
        connection.sendall(bytes([byte]))
        time.sleep(PAUSE)


Send = Callable[[socket.socket, bytes], None]


@contextmanager
def answering(*ways: tuple[Send, Send]) -> Iterator[str]:
    """A server that sends the heads and bodies of a connection so; the last way stays."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                try:
                    answer(connection)
                except OSError:
                    continue

    def answer(connection: socket.socket) -> None:
        for number in range(10):
            request = b""
            while b"\r\n\r\n" not in request:
                part = connection.recv(65536)
                if not part:
                    return
                request += part
            body = CONFIG if b"/v1/config" in request else NAMES
            head, rest = ways[min(number, len(ways) - 1)]
            head(connection, HEAD % len(body))
            rest(connection, body)

    threading.Thread(target=serve, daemon=True).start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    listener.close()


def asked(address: str, **more: Any) -> list[Any]:
    catalog = opened({"type": "rest", "uri": address, **SILENCE, **NO_REPORTS, **more})
    try:
        return catalog.list_namespaces()
    finally:
        catalog.close()


@pytest.mark.parametrize("first", [0, 1])
def test_a_head_that_comes_slowly_is_not_waited_for(first: int) -> None:
    """Also on a connection that has served before."""
    ways = [(plainly, plainly)] * first + [(slowly, plainly)]
    started = time.monotonic()
    with answering(*ways) as address, pytest.raises(StorageError, match="no answer came"):
        asked(address)
    # Whole, it would take seven seconds.
    assert 0.4 < time.monotonic() - started < 6.5


def test_a_body_may_take_longer_than_a_silence() -> None:
    started = time.monotonic()
    with answering((plainly, plainly), (plainly, slowly)) as address:
        assert asked(address) == [("a",)]
    assert time.monotonic() - started > (len(NAMES) - 1) * PAUSE


def test_a_proxy_of_the_environment_is_used(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_for: list[str] = []

    class Proxy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked_for.append(self.path)
            with build_opener(ProxyHandler({})).open(self.path) as answer:
                content = answer.read()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args: Any) -> None:
            pass

    proxy = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", f"127.0.0.1:{proxy.server_port}")
    # What serves other protocols is none of ours, whatever its address.
    monkeypatch.setenv("ftp_proxy", "gopher://127.0.0.1:1")
    monkeypatch.setenv("https_proxy", "")
    try:
        assert asked(server.address) == []
        assert [each.partition("?")[0].rpartition("/")[2] for each in asked_for] == [
            "config", "namespaces",
        ]  # fmt: skip
        assert asked_for[0].startswith(server.address)
        asked_for.clear()
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        assert asked(server.address) == []
        assert asked_for == []
        monkeypatch.setenv("http_proxy", "gopher://me:hush-hush@127.0.0.1:1")
        with pytest.raises(ConfigurationError, match="names for http cannot be used") as caught:
            asked(server.address)
        assert "hush" not in str(caught.value)
    finally:
        proxy.shutdown()
        proxy.server_close()
