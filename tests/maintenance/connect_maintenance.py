"""Maintenance and migration over Spark Connect; prints one JSON document."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import frazil
from frazil.spark.session import costs


def bring_in(spark: SparkSession, lake: frazil.Lake, folder: str) -> dict[str, object]:
    """Files and a table come into the lake, and a view shows what changed since."""
    lake.create_namespace("default")
    rows = spark.sql("SELECT id, concat('x:', id % 2) AS k FROM range(4)")
    rows.write.partitionBy("k").parquet(f"{folder}/source")
    table = lake.create_table("default.added", "id bigint, k string", partition_by="k")
    call = f"CALL system.add_files('default.added', 'parquet.`{folder}/source`')"
    found: dict[str, object] = {"added": lake.call(call).collect()[0].changed_partition_count}
    table.refresh().delete("id = 1")
    found["rows"] = sorted(map(list, table.to_df().collect()))
    spark.sql(
        "CREATE TABLE moved (id BIGINT, k STRING) USING parquet PARTITIONED BY (k) "
        f"LOCATION '{folder}/moved'"
    )
    rows.write.insertInto("moved")
    found["moved"] = sorted(map(list, lake.migrate("moved").to_df().collect()))
    start = {"start-snapshot-id": str(table.metadata.snapshots[0].snapshot_id)}
    view = table.create_changelog_view(options=start)
    found[view] = [list(row)[:3] for row in spark.table(view).collect()]
    return found


def main(remote: str, folder: str) -> None:
    """Executors look for orphans and broken files, and count values."""
    spark = SparkSession.builder.remote(remote).getOrCreate()
    lake = frazil.connect(spark, warehouse=f"{folder}/lake")
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
    expired = table.maintenance.expire_snapshots(older_than="2999-01-01")
    found["expired"] = [expired.deleted_data_files, len(expired.failures)]
    found["sound"] = table.maintenance.check().is_sound
    print("RESULT " + json.dumps(found | bring_in(spark, lake, folder)))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
