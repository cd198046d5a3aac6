"""Writes and deletes whose tasks fail at their first attempt, after rows went into files."""

import sys
from pathlib import Path

from pyspark import TaskContext
from pyspark.sql import SparkSession

import frazil
from frazil.planning.plan import plan
from frazil.spark.delete_files import write
from frazil.spark.session import costs
from frazil.storage.files import FileIO


def fails_once(batches):
    """The rows; the first attempt fails at the end."""
    yield from batches
    if TaskContext.get().attemptNumber() == 0:
        raise RuntimeError("the first attempt fails")


class FailsOnce(FileIO):
    """Fails each task's first attempt once it has written a file."""

    def create_unique(self, path, data):
        super().create_unique(path, data)
        context = TaskContext.get()
        if context is not None and context.attemptNumber() == 0:
            raise RuntimeError("the first attempt fails")


def check_writes(spark, lake):
    rows = spark.range(0, 4000, 1, 2).mapInArrow(fails_once, "id bigint")
    hint = {"distribution-mode": "none"}
    expected = list(range(4000))
    for way, name, partition_by, options in (
        ("never", "plain", [], None),
        # Failing before the shuffle and behind it.
        ("never", "hashed", ["bucket(3, id)"], None),
        ("never", "direct", ["bucket(3, id)"], hint),
        ("always", "left", ["bucket(3, id)"], hint),
    ):
        spark.conf.set("frazil.write.in-place", way)
        table = lake.create_table(f"db.{name}", "id bigint", partition_by=partition_by)
        table.append(rows, options={"target-file-size-bytes": "4096", **(options or {})})
        found = sorted(row["id"] for row in table.to_df().collect())
        assert found == expected, (name, len(found))


def check_deletes(spark, lake, folder):
    costs.DELETED_ROWS = 0
    costs.WORDS_A_TASK = 1
    for version in (2, 3):
        table = lake.create_table(f"db.t{version}", "id bigint", format_version=version)
        table.append(spark.range(0, 4000, 1, 4))
        found = plan(table.metadata, table.current_snapshot, table.io)
        rows = (
            spark.range(4000).selectExpr("id % 4 as file", "id div 4 as pos").where("pos % 5 = 0")
        )
        written = write.write_deletes(rows, plan=found, metadata=table.metadata, io=FailsOnce())
        table.files.row_delta(added_deletes=written.added)
        assert written.deleted_rows == 800, written.deleted_rows
        assert table.refresh().scan().count() == 3200
        left = {path.as_uri() for path in Path(folder).rglob(f"t{version}/**/*-deletes.*")}
        assert left == set(written.paths), left


def main(folder):
    spark = (
        SparkSession.builder.master("local[2, 3]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "100")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    lake = frazil.connect(spark, warehouse=f"{folder}/lake")
    lake.create_namespace("db")
    check_writes(spark, lake)
    check_deletes(spark, lake, folder)
    spark.stop()
    print("right")


if __name__ == "__main__":
    main(*sys.argv[1:])
