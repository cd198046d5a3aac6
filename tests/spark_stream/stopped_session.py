"""A process that stops its session beside a running stream, and makes another: argv is a folder."""

import os
import sys
import threading
import time

from pyspark.sql import SparkSession

import frazil
from frazil.spark.stream.source import queries


def session():
    """A small session."""
    return (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )


def started(spark, folder):
    """A stream at its work."""
    lake = frazil.connect(spark, warehouse=f"{folder}/lake")
    df = lake.read_stream("db.t", checkpoint=f"{folder}/checkpoint", poll_interval=0.05)
    writer = df.writeStream.format("noop").option("checkpointLocation", f"{folder}/checkpoint")
    return writer.start()


def main(folder):
    """Say what is left of the first session's stream."""
    spark = session()
    lake = frazil.connect(spark, warehouse=f"{folder}/lake")
    lake.create_namespace("db")
    table = lake.create_table("db.t", "id bigint")
    started(spark, folder)
    table.append(spark.range(3))
    spark.stop()
    end = time.monotonic() + 30
    left = 1
    while left and time.monotonic() < end:
        left = sum(t.name.startswith("frazil-stream") for t in threading.enumerate())
        time.sleep(0.05)
    before = sum(len(names) for *_, names in os.walk(f"{folder}/checkpoint/frazil"))
    time.sleep(0.5)
    after = sum(len(names) for *_, names in os.walk(f"{folder}/checkpoint/frazil"))
    again = session()
    started(again, folder).stop()
    print(f"threads {left}, watches {len(queries._WATCHES._kept)}, new files {after - before}")
    again.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
