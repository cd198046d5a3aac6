"""Clients of Spark Connect, each with a session and a thread of its own; they know no Frazil.

Arguments: the server's port, a folder of Parquet files, how many clients, rounds, and seconds.
Prints for each round of each side the statements a second.
"""

from __future__ import annotations

import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from pyspark.sql import SparkSession

SIDES = {"lake": "lake.bench.t", "plain": "plain_t"}
STATEMENTS = (
    "SELECT * FROM {t} WHERE id = {k}",
    "SELECT count(*), max(name) FROM {t} WHERE id < {k} + 100",
    "SELECT g, count(*) FROM {t} GROUP BY g",
    "SELECT a.id FROM {t} a JOIN {t} b ON a.id = b.id WHERE b.g = 3 AND a.id < {k} + 10",
    "WITH c AS (SELECT g, id FROM {t} WHERE id > {k}) SELECT max(id) FROM c WHERE g = 1",
)


def main(port: str, plain: str, clients: str, rounds: str, seconds: str) -> None:
    """Run the rounds, the sides in turns."""
    address = f"sc://127.0.0.1:{port}"
    first = SparkSession.builder.remote(address).create()
    first.sql("CREATE NAMESPACE IF NOT EXISTS lake.bench")
    first.sql(f"CREATE TABLE IF NOT EXISTS lake.bench.t AS SELECT * FROM parquet.`{plain}`")
    sessions = [SparkSession.builder.remote(address).create() for _ in range(int(clients))]
    for each in sessions:
        each.sql(f"CREATE TEMPORARY VIEW plain_t USING parquet OPTIONS (path '{plain}')")

    def answered(
        session: SparkSession, name: str, ends: float, start: int, all_ready: Barrier
    ) -> int:
        all_ready.wait()
        count = 0
        while time.monotonic() < ends:
            text = STATEMENTS[(start + count) % len(STATEMENTS)]
            session.sql(text.format(t=name, k=(start * 37 + count) % 1_000)).collect()
            count += 1
        return count

    with ThreadPoolExecutor(int(clients)) as threads:
        for number in range(-1, int(rounds)):
            sides = list(SIDES.items())
            for side, name in sides if number % 2 else sides[::-1]:
                began, all_ready = time.monotonic(), Barrier(int(clients))
                ends = began + float(seconds)
                waiting = [
                    threads.submit(answered, session, name, ends, index, all_ready)
                    for index, session in enumerate(sessions)
                ]
                count = sum(each.result() for each in waiting)
                if number >= 0:
                    print(side, count / (time.monotonic() - began), flush=True)
    # A channel of gRPC may wait for ever for calls that release what is read.
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
