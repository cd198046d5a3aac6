"""Statements a second of Spark Connect's clients: over tables of a lake, and over plain Parquet."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from tests.programs import free_port

from bench.context import Context
from bench.figures import Figure, at_least

CLIENTS = (8, 48)
ROUNDS = 3
SECONDS = 8.0
LEAST = 0.8
"""So much of the statements over plain Parquet views."""


def run(context: Context) -> Iterator[Figure]:
    """How many statements clients of `frazil spark-server` have answered, sides in turns."""
    folder = context.folder / "clients"
    folder.mkdir()
    rows = context.spark.range(context.rows // 10)
    parquet = rows.selectExpr("id", "id % 10 AS g", "cast(id AS string) AS name")
    parquet.repartition(4).write.parquet(str(folder / "plain"))
    with spark_server(folder) as port:
        for clients in CLIENTS:
            counts = _counts(port, folder / "plain", clients)
            ours, plain = median(counts["lake"]), median(counts["plain"])
            title = f"{clients} clients of Connect{context.suffix}"
            print(f"{title}: {ours:.1f} statements a second, plain Parquet {plain:.1f}")
            shares = [a / b for a, b in zip(counts["lake"], counts["plain"], strict=True)]
            yield at_least(f"{title}, of plain Parquet's", median(shares), LEAST, unit="")


def _counts(port: int, plain: Path, clients: int) -> dict[str, list[float]]:
    """What each round of each side has answered a second."""
    program = Path(__file__).with_name("clients_program.py")
    words = [str(each) for each in (port, plain, clients, ROUNDS, SECONDS)]
    done = subprocess.run(
        [sys.executable, str(program), *words], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-2_000:])
    found: dict[str, list[float]] = {"lake": [], "plain": []}
    for each in done.stdout.splitlines():
        side, number = each.split()
        found[side].append(float(number))
    return found


@contextmanager
def spark_server(folder: Path) -> Iterator[int]:
    """`frazil spark-server` in a process of its own; gives its port of Connect."""
    port = free_port()
    variables = {
        "FRAZIL_CATALOG__LAKE__URI": f"sqlite:///{folder}/catalog.db",
        "FRAZIL_CATALOG__LAKE__WAREHOUSE": str(folder / "lake"),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    with (folder / "server.log").open("w") as errors:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "frazil.cli", "spark-server", "--connect", str(port)),
                *("--conf", "spark.ui.enabled=false", "--conf", "spark.sql.shuffle.partitions=2"),
            ],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**os.environ, **variables},
        )
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield port
        finally:
            process.terminate()
            process.wait(120)
