"""A process that runs a stream until it is killed: argv are warehouse, checkpoint, out, once."""

import os
import sys

from pyspark.sql import SparkSession

import frazil


def main(warehouse, checkpoint, out, mode):
    """Each batch is one file, written aside and renamed: the same batch again replaces it."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.memory", "1g")
        .getOrCreate()
    )

    def take(batch, batch_id):
        ids = sorted(row[0] for row in batch.collect())
        name = os.path.join(out, str(batch_id))
        with open(name + ".part", "w") as file:
            file.write(" ".join(map(str, ids)))
        os.replace(name + ".part", name)

    lake = frazil.connect(spark, warehouse=warehouse)
    df = lake.read_stream("db.t", checkpoint=checkpoint, max_files_per_batch=2, poll_interval=0.05)
    writer = df.writeStream.foreachBatch(take).option("checkpointLocation", checkpoint)
    trigger = {"availableNow": True} if mode == "drain" else {"processingTime": "0 seconds"}
    writer.trigger(**trigger).start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
