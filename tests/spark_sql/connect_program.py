"""Statements over Spark Connect; run by `test_sql_connect`."""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession
from sql_cases import CASES, Player, cases_of, state_of

import frazil


def main(folder: str, address: str, *names: str) -> None:
    """Run the files; the first statement that goes wrong ends the program."""
    spark = SparkSession.builder.remote(address).getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    for name in names:
        with frazil.connect(spark, warehouse=str(Path(folder) / name), name="lake") as lake:
            lake.create_namespace("db")
            player = Player(lake.sql, state=lambda: state_of(lake))
            for case in cases_of(name, CASES):
                player.play(case, name)
    print("right")


main(*sys.argv[1:])
