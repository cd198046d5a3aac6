"""Queries and changes over Spark Connect beside plain Spark; run by `test_sql_connect`."""

from __future__ import annotations

import sys

from parameter_changes import CHANGES, ROWS
from plain_cases import CASES, TABLES
from pyspark.sql import SparkSession

import frazil


def main(folder: str, address: str, *numbers: str) -> None:
    """Print each text that gives other rows than plain Spark; ``right`` where none does.

    Args:
        numbers: of the queries; every change is run besides.
    """
    spark = SparkSession.builder.remote(address).getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    lake = frazil.connect(spark, warehouse=folder, name="lake")
    lake.create_namespace("db")
    for name, query in TABLES.items():
        spark.sql(query).coalesce(1).createOrReplaceTempView(f"plain_{name}")
        made = lake.create_table(("db", name), spark.table(f"plain_{name}").schema)
        made.append(spark.table(f"plain_{name}"))
    lake.attach(name="lake")
    wrong = []
    for case in (CASES[int(number)] for number in numbers):
        if case.over_connect:
            continue
        wanted = _rows(spark.sql, case.plain("plain_"))
        wrong += _compared(wanted, _rows(spark.sql, case.over("lake.db.")), case.text)
    shape = "id int, v int, k int"
    spark.createDataFrame(ROWS, shape).createOrReplaceTempView("model")
    for text, args, plain in CHANGES:
        lake.create_table("db.changed", shape).append(spark.table("model"))
        spark.sql(text.replace("db.t", "lake.db.changed").replace(" t.", " changed."), args)
        found = _rows(spark.sql, "SELECT * FROM lake.db.changed")
        wrong += _compared(_rows(spark.sql, plain, args)[1], found[1], text)
        lake.drop_table("db.changed")
    print("\n".join(wrong) or "right")


def _rows(sql, *given):
    try:
        found = sql(*given)
        return found.columns, sorted(map(str, found.collect()))
    except Exception as error:
        return "refused", f"{type(error).__name__} {str(error)[:200]}"


def _compared(wanted, found, text):
    return [] if found == wanted else [f"{text}: {found}, not {wanted}"]


main(*sys.argv[1:])
