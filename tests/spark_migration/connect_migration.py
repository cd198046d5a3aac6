"""Files and tables come into a lake over Spark Connect. Run by `test_migration_connect`."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

import frazil


def main(remote: str, folder: str) -> None:
    spark = SparkSession.builder.remote(remote).getOrCreate()
    lake = frazil.connect(spark, warehouse=f"{folder}/lake")
    lake.create_namespace("default")
    rows = spark.sql("SELECT id, concat('x:', id % 2) AS k FROM range(4)")
    rows.write.partitionBy("k").parquet(f"{folder}/source")
    table = lake.create_table("default.added", "id bigint, k string", partition_by="k")
    print(
        "ADDED",
        lake.call(f"CALL system.add_files('default.added', 'parquet.`{folder}/source`')").collect(),
    )
    table.refresh().delete("id = 1")
    print("ROWS", sorted(map(tuple, table.to_df().collect())))
    spark.sql(
        "CREATE TABLE moved (id BIGINT, k STRING) USING parquet PARTITIONED BY (k) "
        f"LOCATION '{folder}/moved'"
    )
    rows.write.insertInto("moved")
    print("MOVED", sorted(map(tuple, lake.migrate("moved").to_df().collect())))
    view = table.create_changelog_view(
        options={"start-snapshot-id": str(table.metadata.snapshots[0].snapshot_id)}
    )
    print("CHANGES", view, [tuple(row)[:3] for row in spark.table(view).collect()])
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
