"""Appends to tables on S3 through Hadoop's connector, counted by the store."""

from __future__ import annotations

import json
import sys

from pyspark import TaskContext

import frazil
from frazil.errors import StorageError
from frazil.spark.write.files import write_data_files
from frazil.spark.write.row_count import ExpectedRows
from frazil.storage.files import FileIO
from s3_counted import counted_s3
from s3_spark import spark_on

FEW = "select id, int(id % {}) p from range(0, 16, 1, 1)"


def fails_once(batches):
    """The rows; the first attempt of a task fails at the end."""
    yield from batches
    if TaskContext.get().attemptNumber() == 0:
        raise RuntimeError("the first attempt fails")


class Refused(FileIO):
    """Writes nothing on executors."""

    def upload_unique(self, local, path):
        raise StorageError(f"no credentials for {path}")


def main(folder, settings):
    with counted_s3() as store:
        place, given = store.new_bucket("lake"), store.properties
        spark = spark_on(given, "local[1, 2]", json.loads(settings))
        lake = frazil.connect(
            spark, uri=f"sqlite:///{folder}/c.db", warehouse=f"{place}/w", **given
        )
        lake.create_namespace("db")
        for partitions in (1, 8):
            table = lake.create_table(f"db.t{partitions}", "id bigint, p int", partition_by=["p"])
            # Of the first nothing is known, and Spark writes it; the second is expected to be like
            # it, and Arrow writes it.
            for writer in ("Spark", "Arrow"):
                store.take()
                table.append(spark.sql(FEW.format(partitions)))
                print(json.dumps([writer, partitions, store.take().kinds]))
            assert sorted(row["id"] for row in table.to_df().collect()) == sorted([*range(16)] * 2)
            print(json.dumps(["read", 2 * partitions, store.take().kinds]))
        table = lake.create_table("db.retried", "id bigint")
        table.append(spark.range(0, 40, 1, 2).mapInArrow(fails_once, "id bigint"))
        assert sorted(row["id"] for row in table.to_df().collect()) == [*range(40)]
        # The attempts that failed have removed theirs.
        kept = {file.path for file in FileIO(given).list(table.location)}
        data = {path for path in kept if path.endswith(".parquet")}
        assert data == set(table.inspect.files()["file_path"]), data
        # Executors' Python that may not write there: Spark's connector may.
        told, few = [], ExpectedRows(rows=16, partitions=8)
        rows, metadata = spark.sql(FEW.format(8)), lake.load_table("db.t8").metadata
        write_data_files(
            spark, rows, metadata=metadata, io=Refused(given), expected=few, on_progress=told.append
        )
        assert [each.writer.name for each in told] == ["Arrow", "Spark", "Spark", "Spark"], told
        assert told[-1].records == 16
        spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
