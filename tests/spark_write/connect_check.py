"""Writes through Spark Connect, as a process of its own: a process holds one kind of session."""

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from frazil.errors import UnsupportedError
from frazil.format import types as I
from frazil.format.new_table import new_table_metadata
from frazil.format.partitions.partitioning import spec_for
from frazil.format.schema import Schema
from frazil.spark.write.columns.align import align
from frazil.spark.write.files import FileWrite, write_data_files
from frazil.spark.write.in_place import IN_PLACE_SETTING
from frazil.spark.write.rows import rows_of
from frazil.storage.file_kinds import DATA_FILES
from frazil.storage.files import FileIO, local_path


def main(remote, folder):
    spark = SparkSession.builder.remote(remote).getOrCreate()
    rows = spark.sql(
        "select id, timestamp'2024-01-01' ts, array(id) l, string(id) s from range(20)"
    )
    schema = Schema(
        (
            I.NestedField(1, "id", I.LongType()),
            I.NestedField(2, "ts", I.TimestamptzType()),
            I.NestedField(3, "l", I.ListType(5, I.LongType())),
            I.NestedField(4, "s", I.StringType()),
        )
    )
    spec = spec_for(schema, ["bucket(2, s)", "month(ts)"])
    metadata = new_table_metadata(schema, spec, location=f"file://{folder}/t", format_version=2)
    files = write_data_files(spark, rows, metadata=metadata, io=FileIO())
    assert {f.partition for f in files} == {(0, 648), (1, 648)}, files
    spark.conf.set(IN_PLACE_SETTING, "always")
    with pytest.raises(UnsupportedError, match=IN_PLACE_SETTING):
        write_data_files(spark, rows, metadata=metadata, io=FileIO(), schema=schema)
    spark.conf.unset(IN_PLACE_SETTING)
    held = {f"file://{each}" for each in Path(folder).rglob("*.parquet")}
    assert held == {f.file_path for f in files}, held
    tables = [pq.ParquetFile(local_path(f.file_path)).read() for f in files]
    assert sorted(n for t in tables for n in t["id"].to_pylist()) == list(range(20))
    assert tables[0].schema.field("l").type.value_field.metadata == {b"PARQUET:field_id": b"5"}
    frame = pa.table(
        {"id": pa.array([1, None], pa.uint32()), "n": pa.array([0, 1], pa.timestamp("s"))}
    )
    given = rows_of(spark, frame)
    assert [f.dataType.simpleString() for f in given.schema] == ["bigint", "timestamp_ntz"]
    assert rows_of(spark, given) is given
    assert given.count() == 2
    # The rows that Spark counted on their way are compared with those in the files.
    counted = FileWrite.planned(metadata, FileIO(), None, schema, DATA_FILES, None)
    counted.natively(spark, align(rows, schema))
    counted.count.ask()
    assert counted.count.result() == 20
    counted.staging.discard()
    spark.stop()
    print("written")


if __name__ == "__main__":
    main(*sys.argv[1:])
