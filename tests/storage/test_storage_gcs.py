"""FileIO against fake-gcs-server, and what it says when Google Cloud Storage refuses."""

from __future__ import annotations

import datetime
import http.server
import json
import logging
import threading
import time
import urllib.request
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from emulators import free_port, in_a_forked_child, program, running, winners

from frazil.catalog.filesystem import FilesystemCatalog
from frazil.errors import (
    AlreadyExistsError,
    MissingFileError,
    NamespaceNotEmptyError,
    StorageError,
)
from frazil.storage.files import FileIO

TOKEN = "ya29.made-up/token+of=tests"
ODD_NAMES = [
    *("a b", "a%20b", "a%2Fb", "[x]", "{y}", "k=v", "ü", "#1", "q?x", "*", "~", "a:b", "a'b"),
    *("a+b", "a&b", "x?generation=1", "x#1", "x?versionid=1"),
]


@dataclass(frozen=True)
class Gcs:
    """The emulator.

    Attributes:
        host: its URL.
        properties: what a FileIO needs to reach it.
    """

    host: str
    properties: dict[str, str]

    def new_bucket(self) -> str:
        """Make a bucket and return its URI."""
        name = f"b{uuid.uuid4().hex}"
        self.asked("/storage/v1/b?project=p", {"name": name})
        return f"gs://{name}"

    def names(self, bucket: str) -> list[str]:
        """Every object's name in a bucket, folder markers too."""
        found = self.asked(f"/storage/v1/b/{bucket.removeprefix('gs://')}/o")
        return sorted(item["name"] for item in found.get("items", []))

    def asked(self, path: str, body: dict[str, str] | None = None) -> Any:
        """What the server answers, without this library."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        with urllib.request.urlopen(
            urllib.request.Request(self.host + path, data, headers)
        ) as answer:
            return json.load(answer)


@pytest.fixture(scope="module")
def gcs() -> Iterator[Gcs]:
    pytest.importorskip("gcsfs", reason="gcsfs is not installed: install frazil[gcs]")
    server = program(
        "FRAZIL_FAKE_GCS",
        "fake-gcs-server",
        "go install github.com/fsouza/fake-gcs-server@latest",
    )
    port = free_port()
    host = f"http://127.0.0.1:{port}"
    place = ["-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-backend", "memory"]
    names = ["-public-host", f"127.0.0.1:{port}", "-external-url", host]
    with running([server, *place, *names], port):
        yield Gcs(
            host, {"gcs.service.host": host, "gcs.project-id": "p", "gcs.oauth2.token": "anon"}
        )


@pytest.fixture
def bucket(gcs: Gcs) -> str:
    return gcs.new_bucket()


@pytest.fixture
def io(gcs: Gcs) -> FileIO:
    return FileIO(gcs.properties)


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


@pytest.mark.parametrize("name", ODD_NAMES)
def test_names_are_literal(gcs: Gcs, io: FileIO, bucket: str, name: str) -> None:
    path = f"{bucket}/d/{name}/file {name}"
    io.create(path, b"1")
    assert gcs.names(bucket) == [path.removeprefix(f"{bucket}/")]
    assert io.read(path) == b"1"
    assert [(found.path, found.size) for found in io.list(f"{bucket}/d")] == [(path, 1)]
    io.delete(path)
    assert not io.exists(path)


def test_create_keeps_the_object_that_is_there(io: FileIO, bucket: str) -> None:
    path = f"{bucket}/f"
    assert io.creates_atomically(path)
    io.create(path, b"first")
    with pytest.raises(AlreadyExistsError, match="exists"):
        io.create(path, b"second")
    io.write(path, b"third", overwrite=True)
    assert io.read(path) == b"third"
    assert io.read_range(path, offset=1, length=9) == b"hird"
    assert io.read_range(path, offset=9, length=1) == b""


@pytest.mark.parametrize(("creators", "size"), [(6, 1), (3, 70 << 20)])
def test_of_many_creators_the_store_lets_one_win(
    gcs: Gcs, io: FileIO, bucket: str, creators: int, size: int
) -> None:
    (winner,) = winners(gcs.properties, f"{bucket}/f", creators, size)
    found = io.read(f"{bucket}/f")
    assert len(found) == size
    assert set(found) == {winner}


def test_folders_are_marked_and_markers_are_no_files(gcs: Gcs, io: FileIO, bucket: str) -> None:
    io.make_folder(f"{bucket}/a")
    io.make_folder(f"{bucket}/a/b")
    io.create(f"{bucket}/a/b/f", b"1")
    assert gcs.names(bucket) == ["a/", "a/b/", "a/b/f"]
    assert [found.path for found in io.list(f"{bucket}/a")] == [f"{bucket}/a/b/f"]
    assert io.list_folder(f"{bucket}/a") == (("b", True),)
    with pytest.raises(StorageError, match="not empty"):
        io.delete_empty_folder(f"{bucket}/a")
    io.make_folder(f"{bucket}/ab")
    io.delete_folder(f"{bucket}/a")
    assert gcs.names(bucket) == ["ab/"]
    io.delete_empty_folder(f"{bucket}/ab")
    assert gcs.names(bucket) == []
    assert not io.is_folder(f"{bucket}/ab")


def test_a_name_can_be_a_file_and_a_folder(gcs: Gcs, io: FileIO, bucket: str) -> None:
    io.create(f"{bucket}/d/f", b"1")
    assert not io.is_folder(f"{bucket}/d/f")
    io.create(f"{bucket}/d/f/g", b"1")
    assert io.is_folder(f"{bucket}/d/f")
    assert io.exists(f"{bucket}/d/f")
    with pytest.raises(StorageError, match="directory"):
        io.size(f"{bucket}/d")


def test_namespaces_of_the_filesystem_catalog_stay_while_they_hold_something(
    gcs: Gcs, bucket: str
) -> None:
    catalog = FilesystemCatalog("c", {"warehouse": f"{bucket}/w", **gcs.properties})
    catalog.create_namespace("db")
    catalog.create_namespace("db.sub")
    assert catalog.list_namespaces("db") == [("db", "sub")]
    with pytest.raises(NamespaceNotEmptyError):
        catalog.drop_namespace("db")
    catalog.drop_namespace("db.sub")
    catalog.drop_namespace("db")
    assert gcs.names(bucket) == []


@pytest.mark.parametrize("place", ["none", "d/none"])
def test_missing_objects_and_buckets_are_typed(io: FileIO, bucket: str, place: str) -> None:
    for path in (f"{bucket}/{place}", f"gs://no-such-bucket/{place}"):
        for call in (io.read, io.size, io.delete, io.open_input, io.list_folder):
            with pytest.raises(MissingFileError, match=place):
                call(path)
        assert not io.exists(path)
        assert not io.is_folder(path)
        assert list(io.list(path)) == []
    with pytest.raises(MissingFileError, match="no such bucket"):
        io.create(f"gs://no-such-bucket/{place}", b"")


@pytest.mark.parametrize("scheme", ["gcs", "GS"])
def test_every_scheme_names_the_same_objects(io: FileIO, bucket: str, scheme: str) -> None:
    other = bucket.replace("gs://", f"{scheme}://")
    io.create(f"{other}/d/f", b"1")
    assert io.read(f"{bucket}/d/f") == b"1"
    assert [found.path for found in io.list(f"{other}/d")] == [f"{other}/d/f"]


def test_another_host_is_asked_at_once_whatever_its_spelling(gcs: Gcs, bucket: str) -> None:
    io = FileIO({**gcs.properties, "gcs.service.host": f"{gcs.host}/"})
    start = time.monotonic()
    io.create(f"{bucket}/f", b"1")
    assert io.read(f"{bucket}/f") == b"1"
    assert time.monotonic() - start < 20


def test_a_bucket_is_no_file(io: FileIO, bucket: str) -> None:
    for path in (bucket, f"{bucket}/"):
        with pytest.raises(StorageError, match="directory"):
            io.delete(path)
    assert io.is_folder(bucket)


def test_it_works_in_a_forked_child(io: FileIO, bucket: str) -> None:
    io.create(f"{bucket}/f", b"1")
    assert in_a_forked_child(lambda: io.read(f"{bucket}/f")) == "b'1'"
    assert io.read(f"{bucket}/f") == b"1"


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
    from frazil.storage.gcs_store import gcs_file_system
    from frazil.storage.remote_options import AccessToken

    host = "http://127.0.0.1:9"
    found = gcs_file_system({"token": AccessToken(TOKEN, 4102444800000), "endpoint_url": host})
    assert found.credentials.credentials.token == TOKEN
    assert found.credentials.credentials.expiry == datetime.datetime(2100, 1, 1)
    forever = gcs_file_system({"token": AccessToken(TOKEN), "endpoint_url": host})
    assert forever.credentials.credentials.expiry is None
