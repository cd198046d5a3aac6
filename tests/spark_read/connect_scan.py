"""A table of another engine, read over Spark Connect. Run by `test_spark_read_connect`."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from frazil.catalog.static import StaticCatalog
from frazil.spark.scan import Scan
from frazil.storage.files import FileIO


def main(remote: str, metadata_file: str, data_file: str) -> None:
    spark = SparkSession.builder.remote(remote).getOrCreate()
    catalog = StaticCatalog(metadata_file)
    metadata = catalog.load_table(catalog.identifier).metadata
    scan = Scan(spark, metadata, FileIO(), where="a > 1", columns=["b", "_file", "_pos", "a"])
    df = scan.to_df()
    print("ROWS", sorted((r.a, r.b, r._pos, r._file == data_file) for r in df.collect()))
    print("AGAIN", df.where("a = 2").count())
    rows = Scan(spark, metadata, FileIO()).to_df()
    found = [rows.where(each).count() for each in ("d > 5", "d = 0", "s.x > 5", "s.x = 0")]
    print("FLOATS", found, Scan(spark, metadata, FileIO(), where="d > 5 and a + 0 = 2").count())
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
