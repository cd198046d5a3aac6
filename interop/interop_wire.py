"""What clients of the REST protocol send, and whether it is what the specification describes."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
from serve_cases import Exchange


@dataclass
class Wire:
    """A proxy before a server, which keeps every exchange.

    Attributes:
        uri: where clients find it.
        exchanges: in the order of their answers.
    """

    uri: str
    exchanges: list[Exchange] = field(default_factory=list)

    def requests(self) -> list[str]:
        """The requests since the last call, as methods and paths."""
        found = [f"{each.method} {each.path}" for each in self.exchanges]
        self.exchanges.clear()
        return found


@contextmanager
def wire(server: str) -> Iterator[Wire]:
    """Stand before a server; its own address must not be in its answers."""
    made = Wire("")
    with httpx.Client(base_url=server, timeout=120) as client:

        class Requests(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _pass_on(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                asked = {key: value for key, value in self.headers.items() if key != "Host"}
                answer = client.request(self.command, self.path, headers=asked, content=body)
                made.exchanges.append(_exchange(self.command, self.path, asked, body, answer))
                self.send_response(answer.status_code)
                for key in ("Content-Type", "ETag"):
                    if key in answer.headers:
                        self.send_header(key, answer.headers[key])
                if answer.status_code not in (204, 304):
                    self.send_header("Content-Length", str(len(answer.content)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(answer.content)

            do_GET = do_HEAD = do_POST = do_DELETE = _pass_on

            def log_message(self, format: str, *args: Any) -> None:
                """They are kept."""

        with ThreadingHTTPServer(("127.0.0.1", 0), Requests) as proxy:
            made.uri = f"http://127.0.0.1:{proxy.server_port}"
            thread = threading.Thread(target=proxy.serve_forever, daemon=True)
            thread.start()
            try:
                yield made
            finally:
                proxy.shutdown()
                thread.join()


def _exchange(
    method: str, target: str, headers: Mapping[str, str], body: bytes, answer: httpx.Response
) -> Exchange:
    path, _, query = target.partition("?")
    return Exchange(
        method,
        path,
        dict(httpx.QueryParams(query)),
        body,
        answer.status_code,
        answer.content,
        answer.headers.get("content-type", ""),
        {key.lower(): value for key, value in headers.items()},
    )
