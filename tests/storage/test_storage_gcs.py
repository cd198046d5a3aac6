"""FileIO against fake-gcs-server, and what it says when Google Cloud Storage refuses."""

from __future__ import annotations

import datetime
import http.server
import json
import logging
import threading
import time
from collections.abc import Iterator

import pytest
from remote_stores import Gcs, check_literal_name

from frazil.catalog.pointer.filesystem import FilesystemCatalog
from frazil.errors import MissingFileError, StorageError
from frazil.storage.files import FileIO

TOKEN = "ya29.made-up/token+of=tests"


@pytest.fixture
def store(gcs: Gcs) -> Gcs:
    return gcs


@pytest.fixture
def refusing() -> Iterator[str]:
    """The URL of a server that refuses everything."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            body = json.dumps({"error": {"code": 403, "message": "denied by policy"}}).encode()
            self.send_response(403)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PUT = do_DELETE = answer

        def log_message(self, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("name", ["x?generation=1", "x?versionid=1"])
def test_versions_are_part_of_a_name(store: Gcs, io: FileIO, bucket: str, name: str) -> None:
    check_literal_name(store, io, bucket, name)


def test_another_host_is_asked_at_once_whatever_its_spelling(gcs: Gcs, bucket: str) -> None:
    io = FileIO({**gcs.properties, "gcs.service.host": f"{gcs.host}/"})
    start = time.monotonic()
    io.create(f"{bucket}/f", b"1")
    assert io.read(f"{bucket}/f") == b"1"
    assert time.monotonic() - start < 20


def test_a_token_goes_to_the_store_alone(
    gcs: Gcs, bucket: str, caplog: pytest.LogCaptureFixture
) -> None:
    io = FileIO({**gcs.properties, "gcs.oauth2.token": TOKEN})
    with caplog.at_level(logging.DEBUG):
        io.create(f"{bucket}/f", b"1")
    assert "tokeninfo" not in caplog.text
    assert TOKEN not in caplog.text


def test_a_refusal_is_not_absence(refusing: str) -> None:
    pytest.importorskip("gcsfs", reason="gcsfs is not installed: install frazil[gcs]")
    properties = {"gcs.service.host": refusing, "gcs.oauth2.token": TOKEN, "gcs.project-id": "p"}
    io = FileIO(properties)
    catalog = FilesystemCatalog("c", {"warehouse": "gs://bucket/w", **properties})
    for call in (io.read, io.exists, io.is_folder, io.size, io.list_folder, io.delete):
        with pytest.raises(StorageError, match="denied by policy") as caught:
            call("gs://bucket/d/f")
        assert not isinstance(caught.value, MissingFileError)
        assert TOKEN not in str(caught.value)
    with pytest.raises(StorageError, match="denied by policy"):
        catalog.namespace_exists("db")


def test_a_token_ends_when_it_is_said_to() -> None:
    pytest.importorskip("gcsfs", reason="gcsfs is not installed: install frazil[gcs]")
    from frazil.storage.stores.gcs import gcs_file_system
    from frazil.storage.stores.remote_options import AccessToken

    host = "http://127.0.0.1:9"
    found = gcs_file_system({"token": AccessToken(TOKEN, 4102444800000), "endpoint_url": host})
    assert found.credentials.credentials.token == TOKEN
    assert found.credentials.credentials.expiry == datetime.datetime(2100, 1, 1)
    forever = gcs_file_system({"token": AccessToken(TOKEN), "endpoint_url": host})
    assert forever.credentials.credentials.expiry is None
