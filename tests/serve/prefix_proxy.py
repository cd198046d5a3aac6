"""A proxy that has a server below a prefix, as a web server before it would."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

_OWN = ("connection", "transfer-encoding", "content-length", "date", "server")


@contextmanager
def below(prefix: str, uri: str) -> Iterator[str]:
    """The address of the server below a prefix; what is asked for elsewhere is not found."""
    host = urlsplit(uri).netloc

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def pass_on(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length) if length else None
            if not self.path.startswith(f"{prefix}/"):
                self.send_error(404)
                return
            connection = http.client.HTTPConnection(host, timeout=30)
            sent = {**dict(self.headers), "X-Forwarded-Host": self.headers["Host"], "Host": host}
            connection.request(self.command, self.path.removeprefix(prefix), body, sent)
            answer = connection.getresponse()
            content = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in _OWN:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
            connection.close()

        do_GET = do_POST = pass_on

        def log_message(self, *_: object) -> None:
            pass

    proxy = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    proxy.daemon_threads = True
    thread = threading.Thread(target=proxy.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{proxy.server_port}{prefix}"
    finally:
        proxy.shutdown()
        proxy.server_close()
        thread.join()
