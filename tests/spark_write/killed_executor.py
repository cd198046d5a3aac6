"""A write in place whose executor is killed when it has written files: its attempt never ends.

killed_executor.py <folder>: prints how many files nobody listed, and `right` at the end.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql import SparkSession

from frazil.spark.files.parquet.access import SparkAccess
from frazil.spark.write.in_place import IN_PLACE_SETTING, write_in_place

EXECUTORS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
ROWS = 40
# Files of an attempt that goes on are whole then, and hold its rows.
OPTIONS = {"maxRecordsPerFile": "2"}


def session():
    return (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.executor.extraJavaOptions", EXECUTORS)
        .config("spark.executorEnv.PYTHONPATH", os.environ["PYTHONPATH"])
        # A batch for each two rows: they are in files before the attempt is at its end.
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "2")
        .config(IN_PLACE_SETTING, "always")
        .getOrCreate()
    )


def kill_executor():
    """Kill the virtual machine whose daemon has made this worker."""
    asked = ["ps", "-o", "ppid=", "-p", str(os.getppid())]
    os.kill(int(subprocess.check_output(asked)), signal.SIGKILL)


def whole_files(folder, count):
    """Wait until a folder has so many files that are whole."""
    for _ in range(600):
        found = [path for path in Path(folder).glob("*.parquet") if path.stat().st_size > 100]
        if len(found) >= count:
            return
        time.sleep(0.05)
    raise AssertionError(f"no {count} files came in half a minute")


def lost(folder):
    def rows(batches):
        yield from batches
        context = TaskContext.get()
        if context.attemptNumber() == 0 and context.partitionId() == 0:
            whole_files(folder, 2)
            kill_executor()

    return rows


def main(folder):
    spark = session()
    spark.sparkContext.setLogLevel("OFF")
    written = f"{folder}/written"
    rows = spark.range(0, ROWS, 1, 2).mapInArrow(lost(written), "id bigint")
    place = f"file://{written}"
    access = SparkAccess(pl.Series([place]))
    files = write_in_place(rows, access, place, keys=[], options=OPTIONS, is_local=True)
    paths = [file.path.removeprefix("file://") for file in files]
    ids = sorted(n for path in paths for n in pq.read_table(path)["id"].to_pylist())
    assert ids == [*range(ROWS)], ids
    assert [Path(path).stat().st_size for path in paths] == [file.size for file in files]
    print(len(list(Path(written).glob("*.parquet"))) - len(paths))
    spark.stop()
    print("right")


if __name__ == "__main__":
    main(*sys.argv[1:])
