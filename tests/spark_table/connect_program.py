"""A day's work over Spark Connect; prints one JSON document. Run by `test_spark_table_connect`."""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession

import frazil


def main(remote: str, warehouse: str) -> None:
    """Create, append, overwrite, scan, look."""
    spark = SparkSession.builder.remote(remote).getOrCreate()
    found: dict[str, object] = {"session": type(spark).__module__}
    lake = frazil.connect(spark, warehouse=warehouse)
    lake.create_namespace("db")
    table = lake.create_table(
        "db.t", "id bigint not null, city string, tags array<string>", partition_by=["city"]
    )
    table.append(
        spark.sql("select id, if(id % 2 = 0, 'a', 'b') city, array('x', 'y') tags from range(10)")
    )
    table.overwrite(
        spark.sql("select 100L as id, 'a' as city, array('n') as tags"), where="id >= 6"
    )
    rows = table.scan(where="city = 'a' and id > 1", columns=["id", "tags"]).to_df().collect()
    found["rows"] = sorted([row.id, list(row.tags)] for row in rows)
    found["count"] = table.scan().count()
    found["history"] = [bool(row.is_current_ancestor) for row in table.history().collect()]
    found["operations"] = [row.operation for row in table.snapshots().collect()]
    found["formats"] = sorted({row.file_format for row in table.files().collect()})
    found["partitions"] = sorted(
        [row.partition.city, row.record_count] for row in table.partitions().collect()
    )
    made = lake.create_table_as_select("db.u", table.scan(where="city = 'b'").to_df())
    made.overwrite_partitions(spark.sql("select 7L as id, 'q' as city, array('r') as tags"))
    found["made"] = [row.id for row in made.to_df().collect()]
    made.append(spark.sql("select 8L as id, 'q' as city, array('r') as tags"))
    compact = "CALL system.rewrite_data_files('db.u', options => map('rewrite-all', 'true'))"
    found["compacted"] = lake.sql(compact).collect()[0].asDict()["rewritten_data_files_count"]
    try:
        table.append(spark.sql("select cast(null as bigint) id"))
    except frazil.FrazilError as error:
        found["refused"] = f"{type(error).__name__}: {error}"
    print("RESULT " + json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
