"""Servers of three clouds' protocols, each with a client that is not this library's."""

from __future__ import annotations

import contextlib
import json
import urllib.request
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import pytest
from emulators import program, running

from frazil.storage.files import FileIO
from programs import free_port


class RemoteStore(Protocol):
    """One of the stores.

    Attributes:
        properties: what a FileIO needs to reach it.
        schemes: other schemes of its URIs.
        no_bucket: the URI of a bucket that is not there.
    """

    properties: dict[str, str]
    schemes: tuple[str, ...]
    no_bucket: str

    def new_bucket(self) -> str:
        """Make a bucket and return its URI."""

    def names(self, bucket: str) -> list[str]:
        """Every object's name in a bucket, folder markers too."""


def check_literal_name(store: RemoteStore, io: FileIO, bucket: str, name: str) -> None:
    """Write, find, list and delete a file of this name in a folder of this name."""
    path = f"{bucket}/d/{name}/file {name}"
    io.create(path, b"1")
    assert store.names(bucket) == [path.removeprefix(f"{bucket}/")]
    assert io.read(path) == b"1"
    assert [(found.path, found.size) for found in io.list(f"{bucket}/d")] == [(path, 1)]
    io.delete(path)
    assert not io.exists(path)
    assert store.names(bucket) == []


@dataclass
class S3:
    """moto's server."""

    server: Any
    schemes: tuple[str, ...] = ("s3a", "S3")
    no_bucket: str = "s3://no-such-bucket"

    @property
    def properties(self) -> dict[str, str]:
        """As of the server."""
        return dict(self.server.properties)

    def new_bucket(self) -> str:
        """Make a bucket and return its URI."""
        return str(self.server.new_bucket(f"b{uuid.uuid4().hex}"))

    def names(self, bucket: str) -> list[str]:
        """Every object's name in a bucket, folder markers too."""
        return sorted(self.server.keys(bucket))


ACCOUNT = "devstoreaccount1"
# The emulator's key, the same everywhere and published with it.
ACCOUNT_KEY = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)


@dataclass
class Azure:
    """Azurite.

    Attributes:
        client: Microsoft's.
    """

    client: Any
    properties: dict[str, str]
    schemes: tuple[str, ...] = ("abfs", "ABFSS")
    no_bucket: str = f"abfss://nosuchcontainer@{ACCOUNT}.dfs.core.windows.net"

    def new_bucket(self) -> str:
        """Make a container and return its URI."""
        name = f"c{uuid.uuid4().hex}"
        self.client.create_container(name)
        return f"abfss://{name}@{ACCOUNT}.dfs.core.windows.net"

    def names(self, bucket: str) -> list[str]:
        """Every blob's name in a container, folder markers too."""
        return sorted(blob.name for blob in self.of(bucket).list_blobs())

    def of(self, bucket: str) -> Any:
        """Microsoft's client of the container of this URI."""
        return self.client.get_container_client(bucket.partition("://")[2].partition("@")[0])


@dataclass
class Gcs:
    """fake-gcs-server.

    Attributes:
        host: its URL.
    """

    host: str
    properties: dict[str, str]
    schemes: tuple[str, ...] = ("gcs", "GS")
    no_bucket: str = "gs://no-such-bucket"

    def new_bucket(self) -> str:
        """Make a bucket and return its URI."""
        name = f"b{uuid.uuid4().hex}"
        self._asked("/storage/v1/b?project=p", {"name": name})
        return f"gs://{name}"

    def names(self, bucket: str) -> list[str]:
        """Every object's name in a bucket, folder markers too."""
        found = self._asked(f"/storage/v1/b/{bucket.removeprefix('gs://')}/o")
        return sorted(item["name"] for item in found.get("items", []))

    def _asked(self, path: str, body: dict[str, str] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        with urllib.request.urlopen(
            urllib.request.Request(self.host + path, data, headers)
        ) as answer:
            return json.load(answer)


@contextlib.contextmanager
def running_azure() -> Iterator[Azure]:
    """The emulator while it runs; the test is skipped where it cannot."""
    pytest.importorskip("adlfs", reason="adlfs is not installed: install frazil[abfs]")
    from azure.storage.blob import BlobServiceClient

    azurite = program("FRAZIL_AZURITE", "azurite-blob", "npm install -g azurite")
    port = free_port()
    connection = (
        f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={ACCOUNT_KEY};"
        f"BlobEndpoint=http://127.0.0.1:{port}/{ACCOUNT};"
    )
    options = ["--inMemoryPersistence", "--skipApiVersionCheck", "--silent"]
    command = [azurite, "--blobHost", "127.0.0.1", "--blobPort", str(port), *options]
    with running(command, port), BlobServiceClient.from_connection_string(connection) as client:
        yield Azure(client, {"adls.connection-string": connection})


@contextlib.contextmanager
def running_gcs() -> Iterator[Gcs]:
    """The emulator while it runs; the test is skipped where it cannot."""
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
