"""A Spark Connect server as a process of its own, on a port that no one else has.

``SparkSession.builder.remote("local[2]")`` always takes Spark's default port, so that two programs
on one machine would end up in one server. Run as a script with a port; it ends with its input.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from programs import Program, free_port

READY = "SERVING"


@contextmanager
def connect_server(scratch: Path, *, python: str = sys.executable) -> Iterator[str]:
    """Start a server; gives the address that sessions connect to.

    Args:
        scratch: a folder of its own.
        python: of its executors; another one than the tests' does not find this checkout.

    Raises:
        AssertionError: the server did not start; its last words are in the message.
    """
    port = free_port()
    # Executors find what this process was given, and not the modules of tests.
    inherited = os.environ.get("PYTHONPATH") if python == sys.executable else None
    variables = {"PYSPARK_PYTHON": python, "PYTHONPATH": inherited}
    place = scratch / "warehouse"
    with Program(Path(__file__), port, place, cwd=scratch, variables=variables) as server:
        server.wait_until(lambda: READY in server.printed)
        yield f"sc://127.0.0.1:{port}"
        server.end()


def main(port: str, warehouse: str) -> None:
    """Serve until the input ends."""
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.plugins", "org.apache.spark.sql.connect.SparkConnectPlugin")
        .config("spark.connect.grpc.binding.port", port)
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", warehouse)
        .getOrCreate()
    )
    print(READY, flush=True)
    sys.stdin.read()
    session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
