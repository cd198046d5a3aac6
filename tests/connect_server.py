"""A Spark Connect server as a process of its own, on a port that no one else has.

``SparkSession.builder.remote("local[2]")`` always takes Spark's default port, so that two programs
on one machine would end up in one server. Run as a script with a port; it ends with its input.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

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
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = scratch / "connect-server.log"
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": python}
    if python != sys.executable:
        environment.pop("PYTHONPATH", None)
    with log.open("w") as errors:
        server = subprocess.Popen(
            [sys.executable, __file__, str(port), str(scratch / "warehouse")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=environment,
            cwd=scratch,
        )
    try:
        assert server.stdout is not None
        said = next((line for line in server.stdout if READY in line), None)
        assert said, log.read_text()[-3000:]
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.communicate()


def run_program(program: Path, *arguments: Any) -> str:
    """What a program prints; its own process, since a process holds one kind of session."""
    done = subprocess.run(
        [sys.executable, str(program), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=500,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


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
