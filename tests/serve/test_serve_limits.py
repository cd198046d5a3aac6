"""What a server takes at most, to the byte, and how it says so."""

from __future__ import annotations

import gzip
import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import httpx
import pytest
from serve_cases import namespace, running, sql_catalog, table

from frazil.serve.running import protocols
from frazil.serve.settings import ServeSettings

LONGEST_HEAD = 65_536


def answered(uri: str, *parts: bytes) -> tuple[bytes, dict[str, str], bytes]:
    """The status line, the headers and the body that a connection gets."""
    where = httpx.URL(uri)
    with socket.create_connection((where.host, where.port or 80), timeout=10) as connection:
        # Each part is read by itself.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for part in parts:
            connection.sendall(part)
        answer = b""
        while more := connection.recv(65_536):
            answer += more
    head, _, body = answer.partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (each.partition(": ") for each in lines)}
    return status.encode(), headers, body


def head_of(length: int) -> bytes:
    begin, end = b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX: ", b"\r\n\r\n"
    return begin + b"x" * (length - len(begin) - len(end)) + end


@pytest.fixture(params=["httptools", "h11"])
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "h11":
            patch.setattr(protocols, "HttpToolsProtocol", None)
        with running(sql_catalog(tmp_path), ServeSettings(max_connections=3)) as server:
            yield server.uri


def test_heads_to_the_byte(uri: str) -> None:
    longest = head_of(LONGEST_HEAD)
    for parts in ((longest,), (longest[:-1], longest[-1:]), (longest[:40_000], longest[40_000:])):
        assert answered(uri, *parts)[0].startswith(b"HTTP/1.1 200")
    more = head_of(LONGEST_HEAD + 1)
    for parts in ((more,), (head_of(70_000)[:69_999],), (more[:40_000], more[40_000:])):
        status, headers, body = answered(uri, *parts)
        assert status.startswith(b"HTTP/1.1 400")
        assert headers["content-type"] == "application/json"
        assert json.loads(body)["error"]["type"] == "BadRequestException"
        assert "65536 bytes" in json.loads(body)["error"]["message"]


def test_the_second_head_of_a_connection_too(uri: str) -> None:
    first = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
    where = httpx.URL(uri)
    with socket.create_connection((where.host, where.port or 80), timeout=10) as connection:
        for head, status in (
            (first, b"HTTP/1.1 200"),
            (first, b"HTTP/1.1 200"),
            (head_of(LONGEST_HEAD + 1), b"HTTP/1.1 400"),
        ):
            connection.sendall(head)
            assert connection.recv(65_536).startswith(status)


def test_what_is_no_http(uri: str) -> None:
    status, _, body = answered(uri, b"\x16\x03\x01 hello\r\n\r\n")
    assert status.startswith(b"HTTP/1.1 400")
    assert json.loads(body)["error"]["code"] == 400


def test_beyond_its_connections_a_server_says_come_again(uri: str) -> None:
    where = httpx.URL(uri)
    request = b"GET /v1/config HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    with ExitStack() as held:
        for _ in range(3):
            idle = socket.create_connection((where.host, where.port or 80), timeout=10)
            held.enter_context(closing(idle))
        status, headers, body = answered(uri, request)
        assert status.startswith(b"HTTP/1.1 503")
        assert (headers["retry-after"], headers["connection"]) == ("1", "close")
        assert headers["content-type"] == "application/json"
        assert json.loads(body)["error"]["type"] == "ServiceUnavailableException"
    for _ in range(100):
        if answered(uri, request)[0].startswith(b"HTTP/1.1 200"):
            return
    raise AssertionError("connections that were closed count for ever")


def test_many_parameters(tmp_path: Path) -> None:
    with running(sql_catalog(tmp_path)) as server, server.client() as client:
        for name in ("a", "b"):
            namespace(client, name)
        more = "&".join(f"p{number}=x" for number in range(2000))
        listed = client.get(f"/v1/namespaces?{more}&pageToken=&pageSize=1").json()
        assert listed["namespaces"] == [["a"]]


def test_a_metadata_file_that_unpacks_to_gigabytes_is_not_registered(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    with running(sql_catalog(lake)) as server, server.client() as client:
        namespace(client, "a")
        assert table(client, "a", "t").status_code == 200
        file = lake / "a" / "big.gz.metadata.json"
        file.write_bytes(gzip.compress(b'{"x": "' + bytes(70 << 20), 1))
        body = {"name": "n", "metadata-location": str(file)}
        for kind in ("register", "register-view"):
            answer = client.post(f"/v1/namespaces/a/{kind}", json=body)
            assert answer.status_code == 400
