"""A transaction over Spark Connect; prints `right`. Run by `test_transaction_statements`."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession
from transaction_cases import ROWS, both, collected, frame, make_tables

import frazil


def main(warehouse: str, remote: str) -> None:
    """By statements and by methods."""
    spark = SparkSession.builder.remote(remote).getOrCreate()
    lake = frazil.connect(spark, warehouse=warehouse)
    make_tables(lake)
    lake.sql("BEGIN TRANSACTION")
    lake.sql("INSERT INTO db.a VALUES (3, 30)")
    lake.sql("DELETE FROM db.b WHERE id IN (SELECT id - 2 FROM db.a)")
    assert collected(lake.sql("SELECT id FROM db.b")) == [(2,)]
    assert both(lake) == (ROWS, ROWS)
    lake.sql("COMMIT")
    assert both(lake) == ([*ROWS, (3, 30)], ROWS[1:])
    with lake.transaction() as tx:
        tx.table("db.b").append(frame(spark, [(1, 11)]))
        tx.table("db.a").delete("id = 1")
    assert both(lake) == ([ROWS[1], (3, 30)], [(1, 11), ROWS[1]])
    print("right")


main(*sys.argv[1:])
