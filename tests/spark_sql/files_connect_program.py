"""Files of statements over Spark Connect; run by `test_sql_connect`."""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession
from sql_cases import CASES, RECORDED, Player, failures_of, state_of

import frazil


def main(folder: str, address: str, way: str, *names: str) -> None:
    """Run files by `lake.sql` or by an attached session; what goes wrong is printed.

    Args:
        way: `lake` or `attached` for what was recorded, `cases` for the other files by `lake.sql`.
    """
    cases, tells = (CASES, True) if way == "cases" else (RECORDED, False)
    spark = SparkSession.builder.remote(address).getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    failures = []
    for name in names:
        with frazil.connect(spark, warehouse=str(Path(folder) / name), name="lake") as lake:
            lake.create_namespace("db")
            run = lake.sql
            if way == "attached":
                lake.attach(name="lake")
                spark.sql("USE lake")
                run = spark.sql
            player = Player(run, tells=tells, state=lambda: state_of(lake), asks_spark=False)
            failures += failures_of(name, player, cases)
            if way == "attached":
                spark.sql("USE spark_catalog.default")
            left = [each.name for each in spark.catalog.listTables() if each.isTemporary]
            failures += [f"{name}: {each} is left" for each in left]
    print(*failures, sep="\n")
    print("right" if not failures else f"{len(failures)} went wrong")


main(*sys.argv[1:])
