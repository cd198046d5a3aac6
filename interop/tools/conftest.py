"""Tools that know nothing of Frazil, each run in a process of its own or in this one.

They are run by `make interop-tools`, in an environment that has them beside Spark and Frazil.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent

# Many small queries: compiling them further costs more than it saves.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

Run = Callable[..., str]


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The session that looks at what tools have made."""
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("spark")))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture
def warehouse(tmp_path: Path) -> str:
    """The folder of a lake."""
    return str(tmp_path / "lake")


@pytest.fixture
def run_plainly() -> Run:
    """Runs a program as it is, and returns what it says."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))

    def run(program: Sequence[str], *, folder: Path, **settings: str) -> str:
        done = subprocess.run(
            [*program],
            cwd=folder,
            env={**os.environ, "TZ": "UTC", "PATH": path, **settings},
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
        return done.stdout

    return run


@pytest.fixture
def frazil_run(warehouse: str, run_plainly: Run) -> Run:
    """Runs a program with `frazil run` on the lake, and returns what it says."""

    def run(program: Sequence[str], *, folder: Path, use: str = "lake.db", **settings: str) -> str:
        words = [*_on_lake(warehouse), "run", "--use", use, "--", *program]
        return run_plainly(words, folder=folder, **settings)

    return run


@pytest.fixture
def thrift(warehouse: str, tmp_path: Path) -> Iterator[int]:
    """The port of a server of Spark with the lake, for clients that ask as those of JDBC do."""
    # PyHive begins each session with USE default.
    made = [*_on_lake(warehouse), "create-namespace", "default"]
    subprocess.run(made, check=True, capture_output=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    conf = ("spark.ui.enabled=false", "spark.master=local[2]", "spark.sql.shuffle.partitions=2")
    settings = [f"--conf={each}" for each in conf]
    said = tmp_path / "server.txt"
    with said.open("w") as written:
        server = subprocess.Popen(
            [*_on_lake(warehouse), "spark-server", "--thrift", str(port), *settings],
            stdout=written,
            stderr=subprocess.STDOUT,
        )
    try:
        deadline = time.monotonic() + 300
        while "is served on" not in said.read_text():
            assert server.poll() is None, said.read_text()[-4000:]
            assert time.monotonic() < deadline, said.read_text()[-4000:]
            time.sleep(0.2)
        yield port
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0, said.read_text()[-4000:]
    finally:
        server.kill()
        server.wait()


def _on_lake(warehouse: str) -> list[str]:
    return [sys.executable, "-m", "frazil.cli", "--catalog", "lake", "--warehouse", warehouse]
