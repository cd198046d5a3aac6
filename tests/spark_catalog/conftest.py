"""`frazil spark-server` as a process of its own, and clients without Frazil."""

from __future__ import annotations

import os
import shutil
import signal
import sysconfig
import venv
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from absent import skip_without
from programs import Program, free_port

SETTINGS = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
}


@dataclass(frozen=True)
class Served:
    """A server that runs.

    Attributes:
        connect: its port of Spark Connect.
        thrift: its port of JDBC.
        health: its port of HTTP.
    """

    connect: int
    thrift: int
    health: int


@contextmanager
def serving(place: Path, *options: Any, **settings: str) -> Iterator[Program]:
    """A server with two lakes in a folder, by its command line and settings of Spark."""
    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        skip_without("there is no Java 17 or newer (Debian: apt-get install default-jre-headless)")
    variables = {
        "FRAZIL_CATALOG__LAKE__URI": f"sqlite:///{place}/catalog.db",
        "FRAZIL_CATALOG__LAKE__WAREHOUSE": str(place / "lake"),
        "FRAZIL_CATALOG__OTHER__URI": f"sqlite:///{place}/other.db",
        "FRAZIL_CATALOG__OTHER__WAREHOUSE": str(place / "other"),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    conf = [f"--conf={key}={value}" for key, value in {**SETTINGS, **settings}.items()]
    words = ("spark-server", *options, *conf)
    with Program("frazil.cli", *words, cwd=place, variables=variables) as server:
        server.wait_until(lambda: "is served on" in server.printed)
        yield server


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that SIGTERM ends as it should."""
    found = Served(free_port(), free_port(), free_port())
    ports = ("--connect", found.connect, "--thrift", found.thrift, "--health", found.health)
    with serving(tmp_path_factory.mktemp("served"), *ports) as server:
        yield found
        server.process.send_signal(signal.SIGTERM)
        server.end()


@pytest.fixture(scope="session")
def server() -> Callable[..., AbstractContextManager[Program]]:
    """Starts a server of a test's own: see `serving`."""
    return serving


@pytest.fixture(scope="session")
def client() -> Path:
    """A program that is a client of Spark Connect."""
    return Path(__file__).with_name("connect_client.py")


@pytest.fixture(scope="session")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that has the packages of this one, and no Frazil."""
    place = tmp_path_factory.mktemp("bare")
    venv.create(place, symlinks=True)
    base = {"base": str(place), "platbase": str(place)}
    for kind in ("purelib", "platlib"):
        packages = Path(sysconfig.get_path(kind, "venv", base))
        for each in Path(sysconfig.get_path(kind)).iterdir():
            is_left_out = "frazil" in each.name or each.suffix == ".pth"
            if not is_left_out and not (packages / each.name).exists():
                (packages / each.name).symlink_to(each)
    return place / "bin" / "python"
