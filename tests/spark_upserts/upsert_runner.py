"""A process that upserts a feed and kills itself: warehouse, feed, checkpoint, where, when.

It dies the n-th time that it comes to a place: `write` before files are written, `written` after
that, `commit` before the pointer is swapped, `committed` right after it; `time` after n/100 seconds
of the first batch.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
import threading

from pyspark.sql import SparkSession

import frazil
from frazil.spark.upserts import apply
from frazil.table import transaction

CHANGES = "id bigint, name string, part string, op string, seq int"


def die():
    """As a power cut would have it."""
    os.kill(os.getpid(), signal.SIGKILL)


def deadly(module, name, before, after, where, when):
    """Wrap a function of a module so that the process dies around one of its calls."""
    function, calls = getattr(module, name), itertools.count(1)

    def wrapped(*args, **options):
        number = next(calls)
        if where == before and number == when:
            die()
        if where == "time" and number == 1:
            threading.Timer(when / 100, die).start()
        result = function(*args, **options)
        if where == after and number == when:
            die()
        return result

    setattr(module, name, wrapped)


def main(warehouse, feed, checkpoint, where, when):
    """Run until the feed is drained, or until death."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.memory", "1g")
        .getOrCreate()
    )
    deadly(apply, "write_data_files", "write", "written", where, int(when))
    deadly(transaction, "commit", "commit", "committed", where, int(when))
    table = frazil.connect(spark, warehouse=warehouse).load_table("db.t")
    reader = spark.readStream.schema(CHANGES).option("maxFilesPerTrigger", 1)
    query = table.upsert_stream(
        reader.json(feed, pathGlobFilter="*.json"),
        keys="id",
        op="op",
        order_by="seq",
        mode="equality-deletes",
        checkpoint=checkpoint,
        trigger={"availableNow": True},
    )
    query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
