"""Deletes of every kind, read over Spark Connect. Run by `test_spark_read_connect`."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import frazil
from frazil.format.manifests import Content, DataFile

PATH = pa.field("file_path", pa.string(), metadata={"PARQUET:field_id": "2147483546"})
POS = pa.field("pos", pa.int64(), metadata={"PARQUET:field_id": "2147483545"})
ID = pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})
CITY = pa.field("city", pa.string(), metadata={"PARQUET:field_id": "2"})


def delete_file(folder: Path, columns: Mapping[pa.Field, Sequence[Any]], **entry: Any) -> DataFile:
    path = folder / f"delete-{len(list(folder.iterdir()))}.parquet"
    schema = pa.schema(list(columns))
    pq.write_table(pa.table([list(values) for values in columns.values()], schema=schema), path)
    return DataFile(
        file_path=f"file://{path}",
        record_count=len(next(iter(columns.values()))),
        file_size_in_bytes=path.stat().st_size,
        **entry,
    )


def main(remote: str, folder: str) -> None:
    """Rows, deletes by key and by position, rows again; then what is left."""
    spark = SparkSession.builder.remote(remote).getOrCreate()
    made = Path(folder) / "deletes"
    made.mkdir()
    with frazil.connect(spark, warehouse=f"{folder}/lake") as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.t", "id bigint, city string", partition_by=["city"])
        table.append(
            spark.sql(
                "select if(id = 9, null, id) id, if(id % 2 = 0, 'a', 'b') city from range(10)"
            ).coalesce(1)
        )
        equality = {"content": Content.EQUALITY_DELETES, "partition": ("b",)}
        table.files.row_delta(
            added_deletes=[
                delete_file(made, {ID: [1, 2, None]}, equality_ids=(1,), **equality),
                delete_file(made, {ID: [3, 5], CITY: ["b", "a"]}, equality_ids=(1, 2), **equality),
            ]
        )
        # Rows after the deletes: they do not reach them.
        table.append(spark.sql("select 1L id, 'b' city"))
        rows = table.scan(columns=["id", "_file", "_pos"]).to_df().collect()
        (six,) = [row for row in rows if row.id == 6]
        position = {PATH: [six._file], POS: [six._pos]}
        table.files.row_delta(
            added_deletes=[
                delete_file(made, position, content=Content.POSITION_DELETES, partition=("a",))
            ]
        )
        found = {
            "rows": sorted([row.id, row.city] for row in table.to_df().collect()),
            "filtered": sorted(row.id for row in table.scan(where="id > 6").to_df().collect()),
            "joined": table.to_df().join(table.to_df(), "id").count(),
            "deleted": sorted(
                row.id or -1 for row in table.changes().where("_change_type = 'DELETE'").collect()
            ),
        }
        spark.conf.set("frazil.read.equality-deletes", "resolve")
        found["resolved"] = sorted([row.id, row.city] for row in table.to_df().collect())
        for number in (0, 1):
            (made / f"delete-{number}.parquet").unlink()
        found["kept"] = sorted([row.id, row.city] for row in table.to_df().collect())
    print("RESULT " + json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
