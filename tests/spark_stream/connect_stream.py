"""Reads a stream over Spark Connect: argv are the server's address and a folder."""

import json
import os
import sys
import threading
import time

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

import frazil


class Told(StreamingQueryListener):
    """Knows when Spark has told of a query's end."""

    def __init__(self):
        self.of_an_end = threading.Event()

    def onQueryStarted(self, event):
        """Nothing."""

    def onQueryProgress(self, event):
        """Nothing."""

    def onQueryTerminated(self, event):
        """Another listener, which was added before, has been told by now."""
        self.of_an_end.set()


def main(address, folder):
    """Drains, then follows rows that come while the query runs, and drains again."""
    spark = SparkSession.builder.remote(address).getOrCreate()
    lake = frazil.connect(spark, warehouse=f"{folder}/lake")
    lake.create_namespace("db")
    table = lake.create_table("db.t", "id bigint, city string")
    checkpoint = f"{folder}/checkpoint"

    def append(*ids):
        table.append(spark.createDataFrame([(i, "Oslo") for i in ids], "id bigint, city string"))

    def started(**trigger):
        rows = lake.read_stream(
            "db.t", checkpoint=checkpoint, max_files_per_batch=1, poll_interval=0.1
        )
        writer = rows.writeStream.format("parquet").option("path", f"{folder}/out")
        writer = writer.option("checkpointLocation", checkpoint)
        return writer.trigger(**trigger).start()

    def ids():
        return sorted(row.id for row in spark.read.parquet(f"{folder}/out").collect())

    def files():
        return {name for *_, names in os.walk(f"{checkpoint}/frazil") for name in names}

    append(1, 2)
    append(3)
    started(availableNow=True).awaitTermination()
    first = ids()
    query = started(processingTime="0 seconds")
    append(4)
    append(5)
    end = time.monotonic() + 120
    while len(found := ids()) < 5 and time.monotonic() < end and query.isActive:
        pass
    query.stop()
    before = files()
    append(6)
    told = Told()
    spark.streams.addListener(told)
    rate = spark.readStream.format("rate").load().writeStream.format("noop")
    rate.option("checkpointLocation", f"{folder}/rate").start().stop()
    told.of_an_end.wait(60)
    new_files = len(files() - before)
    started(availableNow=True).awaitTermination()
    last = ids()
    # PySpark's thread for listeners keeps the process until then.
    spark.stop()
    result = {"first": first, "second": found, "last": last}
    print("RESULT", json.dumps(result | {"new_files": new_files}))


if __name__ == "__main__":
    main(*sys.argv[1:])
