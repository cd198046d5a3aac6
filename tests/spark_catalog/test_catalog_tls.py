"""Spark Connect behind a proxy that ends TLS: clients show a token, which reaches no log."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import ssl
import subprocess
import threading
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path

import pytest

from absent import skip_without
from programs import free_port, run_program

pytestmark = pytest.mark.soak
TOKEN = "s3cr3t-token-of-a-client"
WRONG = "another-t0ken"
OF_NO_SPARK = {key: None for key in os.environ if key.startswith(("SPARK_", "PYSPARK_"))}
STEPS = [
    ("CREATE NAMESPACE lake.db", []),
    ("CREATE TABLE lake.db.t (id BIGINT, n STRING)", []),
    ("INSERT INTO lake.db.t VALUES (1, 'a'), (2, 'b')", []),
    ("DELETE FROM lake.db.t WHERE id = 1", []),
    ("py:s.range(3).selectExpr('id', \"'w' AS n\").writeTo('lake.db.t').append()", None),
    ("SELECT count(*), max(n) FROM lake.db.t", [[4, "w"]]),
    ("py:s.table('lake.db.t').where('_pos = 0').count() > 0", True),
]


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    """A folder with the certificate of an authority, and a server's certificate and key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        skip_without("there is no openssl (Debian: apt-get install openssl)")
    place = tmp_path_factory.mktemp("tls")

    def made(name, *more):
        new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
        files = ("-out", place / f"{name}.pem", "-keyout", place / f"{name}.key")
        command = [openssl, "req", "-x509", *new, "-subj", f"/CN={name}", *files, *more]
        subprocess.run(command, check=True, capture_output=True)

    made("authority")
    made(
        *("server", "-CA", place / "authority.pem", "-CAkey", place / "authority.key"),
        *("-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=CA:FALSE"),
    )
    return place


@contextmanager
def tls_before(port, authority):
    """The port of a proxy that ends TLS and hands on what is in it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority / "server.pem", authority / "server.key")
    context.set_alpn_protocols(["h2"])

    async def hand_on(reader, writer):
        while some := await reader.read(1 << 16):
            writer.write(some)
            await writer.drain()
        writer.close()

    async def meet(reader, writer):
        ours, theirs = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(hand_on(reader, theirs), hand_on(ours, writer), return_exceptions=True)

    loop = asyncio.new_event_loop()
    found = loop.run_until_complete(asyncio.start_server(meet, "127.0.0.1", 0, ssl=context))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    yield found.sockets[0].getsockname()[1]
    loop.call_soon_threadsafe(loop.stop)
    thread.join(30)


def health(port):
    """What the server says of itself."""
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", "/health")
    found = connection.getresponse()
    return found.status, json.loads(found.read())["status"]


def command_lines():
    """What all users of this machine see of its programs."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found.append(each.read_bytes())
    return found


def test_clients_of_a_proxy_that_ends_tls(server, client, authority, tmp_path):
    """Who has the token is answered, who has none is not."""
    connect, well = free_port(), free_port()
    (tmp_path / "token").write_text(TOKEN + "\n")
    (tmp_path / "steps.json").write_text(json.dumps([step for step, _ in STEPS]))
    (tmp_path / "one.json").write_text(json.dumps(["SELECT 1"]))
    knows = {**OF_NO_SPARK, "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": str(authority / "authority.pem")}

    def answers(where, steps):
        said = run_program(client, where, tmp_path / steps, cwd=tmp_path, variables=knows)
        return [json.loads(line) for line in said.splitlines()]

    options = ("--connect", connect, "--health", well, "--token-file", tmp_path / "token")
    with (
        server(tmp_path, *options) as running,
        tls_before(connect, authority) as port,
    ):
        address = f"sc://127.0.0.1:{port}/;use_ssl=true;token="
        for (step, expected), found in zip(
            STEPS, answers(address + TOKEN, "steps.json"), strict=True
        ):
            assert expected is None or found == expected, step
        for refused in (address + WRONG, f"sc://127.0.0.1:{connect}"):
            (found,) = answers(refused, "one.json")
            assert "UNAUTHENTICATED" in found["text"], found
            assert TOKEN not in found["text"]
        assert health(well) == (200, "ok")
        assert not [each for each in command_lines() if TOKEN.encode() in each]
        running.process.send_signal(signal.SIGTERM)
        running.end()
        said = running.printed + "".join(running.errors)
        assert TOKEN not in said
        assert WRONG not in said
