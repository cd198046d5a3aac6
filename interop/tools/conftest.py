"""Tools that know nothing of Frazil, each run in a process of its own or in this one.

They are run by `make interop-tools`, in an environment that has them beside Spark and Frazil.
"""

from __future__ import annotations

import os
import subprocess
import sys
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
def frazil_run(warehouse: str) -> Run:
    """Runs a program with `frazil run` on the lake, and returns what it says."""

    def run(program: Sequence[str], *, folder: Path, use: str = "lake.db", **settings: str) -> str:
        command = [sys.executable, "-m", "frazil.cli", "--catalog", "lake", "--warehouse",
                   warehouse, "run", "--use", use, "--", *program]  # fmt: skip
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, "TZ": "UTC", **settings},
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
        return done.stdout

    return run
