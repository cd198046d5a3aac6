"""A client of the REST protocol that does as little as it can: it shares the server's processors.

Arguments: the server's address, tables of the namespace `bench` with commas between, `loads` or
`commits`, seconds.
"""

from __future__ import annotations

import socket
import sys
import time


class Connection:
    """One connection, with one request at a time."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._left = b""

    def ask(self, request: bytes) -> tuple[bytes, bytes]:
        """Send a request; the head and body of its answer."""
        self._socket.sendall(request)
        content = self._left
        while b"\r\n\r\n" not in content:
            content += self._some()
        head, _, body = content.partition(b"\r\n\r\n")
        length = _header(head, b"content-length")
        while len(body) < int(length or 0):
            body += self._some()
        self._left = b""
        return head, body

    def _some(self) -> bytes:
        found = self._socket.recv(1 << 16)
        if not found:
            raise SystemExit("the server closed the connection")
        return found


def main() -> None:
    uri, tables, kind, seconds = sys.argv[1:]
    host, _, port = uri.removeprefix("http://").partition(":")
    connection = Connection(host, int(port))
    targets, loads = [], []
    for table in tables.split(","):
        target = f"/v1/namespaces/bench/tables/{table} HTTP/1.1\r\nHost: {host}\r\n"
        head, _ = connection.ask(f"GET {target}\r\n".encode())
        tag = _header(head, b"etag") or b""
        targets.append(target)
        loads.append(f"GET {target}If-None-Match: {tag.decode()}\r\n\r\n".encode())
    wanted = b"HTTP/1.1 304" if kind == "loads" else b"HTTP/1.1 200"
    print("ready", flush=True)
    sys.stdin.readline()
    ends, answers = time.monotonic() + float(seconds), 0
    while time.monotonic() < ends:
        turn = answers % len(targets)
        request = loads[turn] if kind == "loads" else _commit(targets[turn], answers)
        head, _ = connection.ask(request)
        if not head.startswith(wanted):
            raise SystemExit(f"answered with {head[:200]!r}")
        answers += 1
    print(answers, flush=True)


def _commit(target: str, number: int) -> bytes:
    body = (
        '{"requirements": [], "updates": [{"action": "set-properties", '
        f'"updates": {{"p": "{number}-{time.monotonic_ns()}"}}}}]}}'
    ).encode()
    head = f"POST {target}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def _header(head: bytes, name: bytes) -> bytes | None:
    for each in head.split(b"\r\n")[1:]:
        key, _, value = each.partition(b":")
        if key.lower() == name:
            return value.strip()
    return None


if __name__ == "__main__":
    main()
