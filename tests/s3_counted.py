"""moto's S3 in a process of its own: it counts requests, waits, and fails as it is told.

It speaks HTTP/1.1 and keeps connections open, as a store does. `python s3_counted.py` is it.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

_OWN: Final = "/__"
_OVERLAP: Final = 0.002
_CREDENTIALS: Final = {
    "s3.access-key-id": "AKIAMADEUPFORTESTS",
    "s3.secret-access-key": "made-up-secret-of-tests",
    "s3.region": "us-east-1",
}


@dataclass(frozen=True, slots=True)
class Request:
    """One request as the server saw it.

    Attributes:
        verb: HTTP's.
        path: the bucket and the key.
        query: as it was sent.
        span: the bytes that were asked for, as the header says; None for the whole object.
        of_java: whether Amazon's library for Java sent it.
        status: of the answer; 0 where the connection was cut instead.
        started, ended: seconds since the epoch.
    """

    verb: str
    path: str
    query: str
    span: str | None
    of_java: bool
    status: int
    started: float
    ended: float

    @property
    def action(self) -> str:
        """What it does: GET, HEAD, LIST, PUT or DELETE; of several objects is DELETE too."""
        is_bucket = self.path.strip("/").count("/") == 0
        if self.verb == "GET" and ("list-type" in self.query or "prefix=" in self.query):
            return "LIST"
        if self.verb == "GET" and is_bucket:
            return "LIST"
        if self.verb == "POST":
            return "DELETE" if re.search(r"(^|&)delete", self.query) else "PUT"
        return self.verb

    @property
    def kind(self) -> str:
        """What it is of: metadata, hint, list, manifest, data, or other."""
        for kind, pattern in _KINDS.items():
            if re.search(pattern, self.path):
                return kind
        return "other"


_KINDS: Final = {
    "metadata": r"\.metadata\.json(\.gz)?$",
    "hint": r"/version-hint\.text$",
    "list": r"/snap-[^/]*\.avro$",
    "manifest": r"\.avro$",
    "data": r"\.(parquet|puffin|orc)$",
}


@dataclass(frozen=True, slots=True)
class Fault:
    """What becomes of the next requests that fit.

    Attributes:
        times: how many.
        passes: how many that fit are answered before.
        status: of the answer in place of the store's; 0 cuts the connection.
        code: S3's word for it.
        is_done: whether the store does the work before, so that only the answer is lost.
        keeps: so many bytes of the answer's body are sent before the connection is cut.
        waits: seconds before the answer.
        verb: of requests that fit; any where it is empty.
        path: a pattern that is searched in the path.
        query: the same of the query.
    """

    times: int = 1
    passes: int = 0
    status: int = 503
    code: str = "SlowDown"
    is_done: bool = False
    keeps: int | None = None
    waits: float = 0
    verb: str = ""
    path: str = ""
    query: str = ""


@dataclass(frozen=True, slots=True)
class Counted:
    """The requests between two looks."""

    requests: tuple[Request, ...]

    def __len__(self) -> int:
        return len(self.requests)

    @property
    def actions(self) -> Mapping[str, int]:
        """How many of each action."""
        return Counter(request.action for request in self.requests)

    @property
    def kinds(self) -> Mapping[str, int]:
        """How many of each action on each kind of file, as `GET manifest`."""
        return Counter(f"{request.action} {request.kind}" for request in self.requests)

    @property
    def depth(self) -> int:
        """The longest row of requests none of which overlaps the next: they wait for each other."""
        end, length = 0.0, 0
        for request in sorted(self.requests, key=lambda each: each.ended):
            if request.started >= end - _OVERLAP:
                length, end = length + 1, request.ended
        return length


@dataclass(frozen=True, slots=True)
class CountedStore:
    """The server.

    Attributes:
        endpoint: its URL.
    """

    endpoint: str

    @property
    def properties(self) -> dict[str, str]:
        """What a catalog or FileIO needs to reach it."""
        return {"s3.endpoint": self.endpoint, **_CREDENTIALS}

    @property
    def client(self) -> Any:
        """boto3's client, whose requests are counted too."""
        import boto3

        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=_CREDENTIALS["s3.access-key-id"],
            aws_secret_access_key=_CREDENTIALS["s3.secret-access-key"],
            region_name=_CREDENTIALS["s3.region"],
        )

    def new_bucket(self, name: str) -> str:
        """Make a bucket of that name and return its URI."""
        self.client.create_bucket(Bucket=name)
        return f"s3://{name}"

    def take(self) -> Counted:
        """The requests since the last look."""
        return Counted(tuple(Request(**each) for each in self._tell("take")))

    def wait(self, milliseconds: float) -> None:
        """From now on every request takes so long more."""
        self._tell("wait", milliseconds / 1000)

    def fail(self, *faults: Fault) -> None:
        """What becomes of the next requests, in place of what was said before."""
        self._tell("fail", [asdict(fault) for fault in faults])

    def _tell(self, what: str, given: Any = None) -> Any:
        asked = urllib.request.Request(f"{self.endpoint}{_OWN}{what}", json.dumps(given).encode())
        with urllib.request.urlopen(asked, timeout=20) as answer:
            return json.load(answer)


@contextlib.contextmanager
def counted_s3() -> Iterator[CountedStore]:
    """The server while it runs."""
    server = subprocess.Popen([sys.executable, __file__], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield CountedStore(f"http://127.0.0.1:{int(server.stdout.readline())}")
    finally:
        server.terminate()
        server.wait()


# -- the process ---------------------------------------------------------------------------------


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    application: Any
    lock = threading.Lock()
    log: list[dict[str, Any]] = []
    faults: list[dict[str, Any]] = []
    waits = 0.0

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def handle_expect_100(self) -> bool:
        done = super().handle_expect_100()
        self.wfile.flush()
        return done

    def answer(self) -> None:
        started, body = time.time(), self._body()
        path, _, query = self.path.partition("?")
        if path.startswith(_OWN):
            self._own(path.removeprefix(_OWN), json.loads(body))
            return
        shown = urllib.parse.unquote(path)
        fault = self._fault(shown, query)
        time.sleep(type(self).waits + (fault["waits"] if fault else 0))
        if fault is None or fault["is_done"] or fault["keeps"] is not None:
            status, headers, out = self._asked(path, query, body)
        if fault is not None and fault["keeps"] is None:
            status, headers = fault["status"], [("Content-Type", "application/xml")]
            out = f"<Error><Code>{fault['code']}</Code><Message>no</Message></Error>".encode()
        span, agent = self.headers.get("Range"), self.headers.get("User-Agent", "")
        type(self).log.append(
            {"verb": self.command, "path": shown, "query": query, "span": span}
            | {"of_java": "aws-sdk-java" in agent, "status": status}
            | {"started": started, "ended": time.time()}
        )
        if status == 0:
            self.close_connection = True
            return
        self.send_response_only(status)
        names = {name.lower() for name, _ in headers}
        for name, value in headers:
            if name.lower() not in ("connection", "transfer-encoding"):
                self.send_header(name, value)
        if "content-length" not in names and status not in (204, 304):
            self.send_header("Content-Length", str(len(out)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(out if fault is None else out[: fault["keeps"]])
        self.wfile.flush()
        if fault is not None and fault["keeps"] is not None:
            self.close_connection = True

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = answer

    def _own(self, what: str, given: Any) -> None:
        own = type(self)
        answer: list[Any] = []
        with own.lock:
            if what == "wait":
                own.waits = given
            elif what == "fail":
                own.faults = given
            else:
                answer, own.log = own.log, []
        out = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(out)))
        self.end_headers()
        self.wfile.write(out)
        self.wfile.flush()

    def _fault(self, path: str, query: str) -> dict[str, Any] | None:
        with type(self).lock:
            for fault in type(self).faults:
                fits = fault["verb"] in ("", self.command) and re.search(fault["path"], path)
                fits = fits and re.search(fault["query"], query)
                if fits and fault["passes"]:
                    fault["passes"] -= 1
                elif fits and fault["times"]:
                    fault["times"] -= 1
                    return fault
        return None

    def _body(self) -> bytes:
        if "chunked" not in (self.headers.get("Transfer-Encoding") or ""):
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _asked(self, path: str, query: str, body: bytes) -> tuple[int, Sequence[Any], bytes]:
        environ = {
            "REQUEST_METHOD": self.command,
            "SCRIPT_NAME": "",
            "PATH_INFO": urllib.parse.unquote_to_bytes(path).decode("latin-1"),
            "RAW_URI": self.path,
            "REQUEST_URI": self.path,
            "QUERY_STRING": query,
            "SERVER_NAME": "127.0.0.1",
            "SERVER_PORT": str(self.server.server_address[1]),
            "SERVER_PROTOCOL": "HTTP/1.1",
            "REMOTE_ADDR": "127.0.0.1",
            "CONTENT_LENGTH": str(len(body)),
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "wsgi.input": io.BytesIO(body),
            "wsgi.url_scheme": "http",
            "wsgi.version": (1, 0),
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": True,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
        }
        left_out = ("content-type", "content-length", "transfer-encoding", "expect")
        for name, value in self.headers.items():
            if name.lower() not in left_out:
                environ["HTTP_" + name.upper().replace("-", "_")] = value
        said: list[Any] = []

        def start(status: str, headers: Sequence[Any], info: Any = None) -> None:
            said[:] = [int(status.split()[0]), headers]

        # One at a time: moto itself does not make a condition and its write one step.
        with type(self).lock:
            answered: Iterable[bytes] = type(self).application(environ, start)
            out = b"".join(answered)
        return said[0], said[1], out


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is no matter of the server's."""


def main() -> None:
    """Serve until the process is ended; the first line that is printed is the port."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

    _Handler.application = DomainDispatcherApplication(create_backend_app)
    server = _Server(("127.0.0.1", 0), _Handler)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
