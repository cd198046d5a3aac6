"""Maintenance over Spark Connect; prints one JSON document. Run by `test_maintenance_connect`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import frazil
from frazil.spark.session import costs


def main(remote: str, warehouse: str) -> None:
    """Executors look for orphans and broken files, and count values."""
    spark = SparkSession.builder.remote(remote).getOrCreate()
    lake = frazil.connect(spark, warehouse=warehouse)
    lake.create_namespace("db")
    table = lake.create_table("db.t", "id int, m decimal(9,2), city string", partition_by=["city"])
    row = ("int(id) as id", "cast(id % 4 as decimal(9,2)) as m", "string(id % 2) as city")
    table.append(spark.range(20).selectExpr(*row))
    stats = table.maintenance.compute_table_stats()
    found: dict[str, object] = {"counts": dict(stats.distinct_counts)}
    found["partitions"] = table.maintenance.compute_partition_stats().partitions_count
    orphan = Path(table.location.removeprefix("file://")) / "data" / "x.parquet"
    orphan.write_bytes(b"1")
    os.utime(orphan, (1e9, 1e9))
    costs.LISTED_FOLDERS = -1  # type: ignore[misc]
    costs.CHECKED_FILES = -1  # type: ignore[misc]
    removed = table.maintenance.remove_orphan_files()
    found["removed"] = [removed.deleted_files_count, orphan.exists()]
    table.delete("true")
    costs.DELETED_FILES = 0  # type: ignore[misc]
    expired = table.maintenance.expire_snapshots(older_than="2999-01-01")
    found["expired"] = [expired.deleted_data_files, len(expired.failures)]
    found["sound"] = table.maintenance.check().is_sound
    print("RESULT " + json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
