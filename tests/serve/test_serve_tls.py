"""The server over TLS: who it is, is checked by every client before anything else is sent."""

from __future__ import annotations

import shutil
import signal
import socket
import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path

import httpx
import pyiceberg.exceptions
import pytest
import requests.exceptions
from catalog_cases import made_table, opened, set_properties
from pyiceberg.catalog.rest import RestCatalog as PyIcebergCatalog
from serve_cases import running, sql_catalog, started, tokens_of

from ci_share import only_in_soak
from frazil.errors import ConfigurationError, StorageError
from frazil.serve.server import CatalogServer
from frazil.serve.settings import Listening

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl")
TOKEN = "s3cr3t-token-of-a-client"
ONE_TRY = {"rest.client.max-retries": "0"}


@dataclass(frozen=True)
class Certificates:
    """An authority, and what it says of servers."""

    folder: Path

    @property
    def authority(self) -> str:
        return str(self.folder / "ca.pem")

    def of(self, host: str) -> dict[str, Path]:
        """The certificate and key of a server of that name."""
        name = host.replace(":", "-")
        certificate, key = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        if not certificate.exists():
            _openssl(
                *("-CA", self.authority, "-CAkey", str(self.folder / "ca.key")),
                *("-subj", "/CN=server", "-addext", f"subjectAltName={host}"),
                *("-addext", "basicConstraints=critical,CA:FALSE"),
                *("-out", str(certificate), "-keyout", str(key)),
            )
        return {"certificate": certificate, "key": key}


def _openssl(*arguments: str) -> None:
    new_key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    command = ["openssl", "req", "-x509", *new_key, "-days", "2", *arguments]
    subprocess.run(command, check=True, capture_output=True)


def made_authority(folder: Path) -> Certificates:
    folder.mkdir()
    paths = ("-out", str(folder / "ca.pem"), "-keyout", str(folder / "ca.key"))
    # Python asks for it from 3.13 on.
    use = ("-addext", "keyUsage=critical,keyCertSign,cRLSign")
    _openssl("-subj", "/CN=authority", *use, *paths)
    return Certificates(folder)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return made_authority(tmp_path_factory.mktemp("tls") / "authority")


HERE = "IP:127.0.0.1"


@pytest.fixture(autouse=True)
def no_authorities_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)


def test_clients_that_know_the_authority(tmp_path: Path, certificates: Certificates) -> None:
    with running(sql_catalog(tmp_path), **certificates.of(HERE)) as server:
        assert server.uri.startswith("https://127.0.0.1:")
        ours = opened({"type": "rest", "uri": server.uri, "ssl.cabundle": certificates.authority})
        made_table(ours)
        set_properties(ours, "db.t", a="1")
        theirs = PyIcebergCatalog("lake", uri=server.uri, ssl={"cabundle": certificates.authority})
        assert theirs.load_table("db.t").properties["a"] == "1"
        port = httpx.URL(server.uri).port
        context = ssl.create_default_context(cafile=certificates.authority)
        with (
            socket.create_connection(("127.0.0.1", port)) as plain,
            context.wrap_socket(plain, server_hostname="127.0.0.1") as connection,
        ):
            assert connection.version() in ("TLSv1.2", "TLSv1.3")
        # What speaks no TLS gets no answer, and disturbs nobody.
        with pytest.raises(httpx.TransportError):
            httpx.get(f"http://127.0.0.1:{port}/health")
        assert ours.load_table("db.t").metadata.properties["a"] == "1"


def test_an_authority_that_the_client_does_not_know(
    tmp_path: Path, certificates: Certificates
) -> None:
    other = made_authority(tmp_path / "other")
    with running(sql_catalog(tmp_path / "lake"), **certificates.of(HERE)) as server:
        for bundle in ({}, {"ssl.cabundle": other.authority}):
            with pytest.raises(StorageError, match=r"(?i)certificate") as caught:
                opened({"type": "rest", "uri": server.uri, "token": TOKEN, **ONE_TRY, **bundle})
            assert TOKEN not in str(caught.value)
        with pytest.raises((requests.exceptions.SSLError, pyiceberg.exceptions.RESTError)):
            PyIcebergCatalog("lake", uri=server.uri, token=TOKEN)
        assert server.recorder.exchanges == []


def test_a_browser_keeps_its_login_for_tls(tmp_path: Path, certificates: Certificates) -> None:
    tokens = tokens_of(tmp_path, f"tokens: [{{token: {TOKEN}, write: ['*']}}]")
    context = ssl.create_default_context(cafile=certificates.authority)
    with (
        running(sql_catalog(tmp_path), tokens=tokens, **certificates.of(HERE)) as server,
        httpx.Client(base_url=server.uri, verify=context) as client,
    ):
        sent = {"Origin": server.uri}
        answer = client.post("/login", data={"token": TOKEN}, headers=sent)
        assert answer.headers["set-cookie"].endswith("; Secure")
        assert client.get("/", headers={"Accept": "text/html"}).status_code == 200


@pytest.mark.parametrize("host", ["DNS:other.example", "IP:127.0.0.2"])
def test_a_certificate_of_another_host(
    tmp_path: Path, certificates: Certificates, host: str
) -> None:
    with running(sql_catalog(tmp_path), **certificates.of(host)) as server:
        with pytest.raises(StorageError, match=r"(?i)certificate"):
            opened(
                {
                    "type": "rest",
                    "uri": server.uri,
                    "token": TOKEN,
                    "ssl.cabundle": certificates.authority,
                    **ONE_TRY,
                }
            )
        assert server.recorder.exchanges == []


def test_a_server_that_answers_without_tls(tmp_path: Path, certificates: Certificates) -> None:
    with running(sql_catalog(tmp_path)) as server:
        uri = server.uri.replace("http://", "https://")
        with pytest.raises(StorageError):
            opened({"type": "rest", "uri": uri, "ssl.cabundle": certificates.authority, **ONE_TRY})


def test_files_that_are_no_certificate(tmp_path: Path, certificates: Certificates) -> None:
    good, other = certificates.of(HERE), certificates.of("DNS:other.example")
    empty = tmp_path / "empty.pem"
    empty.write_text("")
    for pair in (
        {**good, "key": other["key"]},
        {**good, "certificate": empty},
        {"certificate": good["key"], "key": good["certificate"]},
    ):
        with pytest.raises(ConfigurationError, match="cannot be used"):
            CatalogServer(sql_catalog(tmp_path), listening=Listening(port=0, **pair))


@pytest.mark.check
@pytest.mark.parametrize("workers", ["1", only_in_soak("2")])
def test_the_command_with_a_certificate(
    tmp_path: Path, certificates: Certificates, workers: str
) -> None:
    pair = certificates.of(HERE)
    options = ("--tls-certificate", str(pair["certificate"]), "--tls-key", str(pair["key"]))
    server, uri = started(tmp_path, *options, "--workers", workers)
    try:
        assert uri.startswith("https://")
        catalog = opened({"type": "rest", "uri": uri, "ssl.cabundle": certificates.authority})
        made_table(catalog)
        catalog.close()
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) == 0
    finally:
        server.kill()
