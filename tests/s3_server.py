"""moto's S3 over HTTP on a loopback port, with made-up credentials."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

_FAILED = b"<Error><Code>InternalError</Code><Message>the answer was lost</Message></Error>"

Application = Callable[[dict[str, Any], Any], Iterable[bytes]]


@dataclass(frozen=True)
class S3Store:
    """A server of the S3 protocol on a loopback port.

    Attributes:
        client: boto3's, to make buckets and to look at what lies there without this library.
        properties: what a catalog or FileIO needs to reach it.
    """

    client: Any
    properties: dict[str, str]

    def new_bucket(self, name: str) -> str:
        """Make a bucket of that name and return its URI."""
        self.client.create_bucket(Bucket=name)
        return f"s3://{name}"

    def keys(self, bucket: str) -> list[str]:
        """Every key in a bucket, folder markers too."""
        name = bucket.removeprefix("s3://")
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=name)
        return [item["Key"] for page in pages for item in page.get("Contents", ())]


class AnswersLost:
    """Takes each object's first write and answers that it failed, so that the driver repeats it."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self.paths: list[str] = []

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        is_object = environ["REQUEST_METHOD"] == "PUT" and path.strip("/").count("/")
        if not is_object or path in self.paths:
            return self._application(environ, start_response)
        self.paths.append(path)
        b"".join(self._application(environ, lambda status, headers, info=None: None))
        start_response("500 Internal Server Error", [("Content-Type", "application/xml")])
        return [_FAILED]


@contextmanager
def s3_server(wrapped: Callable[[Application], Application] = lambda app: app) -> Iterator[S3Store]:
    """A server whose application is wrapped in another."""
    import boto3
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Handler(WSGIRequestHandler):
        disable_nagle_algorithm = True

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            pass

    app = wrapped(DomainDispatcherApplication(create_backend_app))
    # One request at a time: moto itself does not make a condition and its write one step.
    server = make_server("127.0.0.1", 0, app, threaded=False, request_handler=Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    properties = {
        "s3.endpoint": f"http://127.0.0.1:{server.server_port}",
        "s3.access-key-id": "AKIAMADEUPFORTESTS",
        "s3.secret-access-key": "made-up-secret-of-tests",
        "s3.region": "us-east-1",
    }
    client = boto3.client(
        "s3",
        endpoint_url=properties["s3.endpoint"],
        aws_access_key_id=properties["s3.access-key-id"],
        aws_secret_access_key=properties["s3.secret-access-key"],
        region_name=properties["s3.region"],
    )
    try:
        yield S3Store(client, properties)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
