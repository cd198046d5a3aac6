"""A writer in a process of its own, with a session of its own: one fast append a commit.

Arguments: the catalog's warehouse, the writer's number, how many commits, and after how many
seconds of them the process is killed, 0 for never. Each commit that was acknowledged is a line.
"""

from __future__ import annotations

import os
import signal
import sys

from jvm_options import JVM_OPTIONS
from pyspark.sql import SparkSession
from table_cases import data_file

from frazil.spark.lake import connect
from frazil.table.handle import TableHandle


def session() -> SparkSession:
    """The smallest that there is."""
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.memory", "512m")
    builder = builder.config("spark.driver.bindAddress", "127.0.0.1")
    return builder.config("spark.driver.extraJavaOptions", JVM_OPTIONS).getOrCreate()


def main() -> None:
    warehouse, writer, commits, seconds = sys.argv[1], *map(float, sys.argv[2:])
    lake = connect(session(), type="filesystem", warehouse=warehouse, io="hadoop")
    table = TableHandle(lake.catalog, lake.catalog.load_table("db.t"))
    # All begin at once: the first line tells that this one is ready.
    print("ready", flush=True)
    sys.stdin.readline()
    if seconds:
        # The alarm ends the process as a kill does: nothing of it runs any more.
        signal.setitimer(signal.ITIMER_REAL, seconds)
    for number in range(int(commits)):
        name = f"w{int(writer)}-{number}"
        table.files.fast_append([data_file(name)])
        os.write(1, f"{name}\n".encode())
    lake.spark.stop()


if __name__ == "__main__":
    main()
