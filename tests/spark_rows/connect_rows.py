"""Row-level commands in a mode and arriving changes, over Spark Connect; prints the rows."""

from __future__ import annotations

import sys
from decimal import Decimal

from pyspark.sql import SparkSession

import frazil


def main(remote: str, warehouse: str, mode: str, version: str) -> None:
    """Make two tables, change them, print what is in them."""
    spark = SparkSession.builder.remote(remote).getOrCreate()
    lake = frazil.connect(spark, warehouse=warehouse)
    lake.create_namespace("db")
    ddl = "id int, v int, d decimal(20, 10)"
    table = lake.create_table(
        "db.t",
        ddl,
        format_version=int(version),
        properties={f"write.{each}.mode": mode for each in ("delete", "update", "merge")},
    )
    table.append(spark.createDataFrame([(n, n, None) for n in range(1, 5)], ddl))
    spark.createDataFrame([(4,)], "id int").createOrReplaceTempView("gone")
    table.delete("id in (select id from gone)")
    table.update({"v": "v + 1", "d": Decimal("2.5000000001")}, "id = 1 or upper(id) = '2'")
    source = spark.createDataFrame([(1, 10), (3, 30), (5, 50)], "id bigint, v int")
    (
        table.merge(source, ["id"])
        .when_matched_update({"v": "source.v"})
        .when_not_matched_insert({"id": "source.id", "v": "source.v"})
        .when_not_matched_by_source_delete(condition="d is not null")
        .execute()
    )
    table.upsert(table.scan("id = 3").to_df().selectExpr("id", "v + 6 as v", "d"), "id")
    rows = table.to_df().selectExpr("id", "v", "string(d)").orderBy("id").collect()
    print("ROWS", [list(row) for row in rows])
    evolving = table.merge(spark.sql("select 1 as id, 7 as w"), ["id"]).with_schema_evolution()
    evolving.when_matched_update({"w": "w"}, condition="w = 7").execute()
    rows = table.scan("w = 7", columns=["id", "w"]).to_df().collect()
    print("ROWS", [list(row) for row in rows])
    table = lake.create_table("db.arriving", "id int, v int", format_version=3)
    changes = [(1, 1, "u"), (2, 1, "u"), (1, None, "d"), (2, 2, "u"), (3, 1, "u")]
    arrived = spark.createDataFrame(changes, "id int, v int, op string").coalesce(1)
    for more in (1, 0):
        table.apply_changes(
            arrived.selectExpr("id", f"v + {more} as v", "op"),
            keys="id",
            op="op",
            order_by=frazil.changes.ARRIVAL,
            mode="equality-deletes",
        )
    for reading in ("join", "resolve"):
        spark.conf.set("frazil.read.equality-deletes", reading)
        print("ROWS", sorted(list(row) for row in table.to_df().collect()))
    joined = table.scan("id > 2").to_df().join(table.to_df(), "id").count()
    print("ROWS", joined, sorted(row._change_type for row in table.changes().collect()))
    refused = []
    for wrong in (
        lambda: table.update({"v": "nope"}),
        lambda: table.merge(source, "target.id = nope").when_matched_delete().execute(),
        lambda: table.update({"v": "9000000000L"}),
    ):
        try:
            wrong()
        except frazil.FrazilError as error:
            refused.append(type(error).__name__)
    print("ROWS", *refused)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
