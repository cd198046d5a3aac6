"""Statements over Spark Connect; run by `test_sql_connect`."""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession
from sql_cases import as_text, cases_of

import frazil

NAMES = ("rows.test", "definitions.test", "views.test", "functions.test")


def main(folder: str, address: str) -> None:
    """Run the files; the first statement that goes wrong ends the program."""
    spark = SparkSession.builder.remote(address).getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    for name in NAMES:
        with frazil.connect(spark, warehouse=str(Path(folder) / name), name="lake") as lake:
            lake.create_namespace("db")
            for case in cases_of(name):
                _run(lake, case, f"{name}:{case.line}: {case.statement}")
    print("right")


def _run(lake, case, where) -> None:
    try:
        rows = as_text(lake.sql(case.statement).collect())
    except Exception as error:
        kind, _, words = case.said.partition(" ")
        if case.kind == "error" and type(error).__name__ == kind and words in str(error):
            return
        raise AssertionError(where) from error
    assert case.kind != "error", where
    if case.kind == "rows":
        expected = list(case.rows)
        if case.said != "ordered":
            rows, expected = sorted(rows), sorted(expected)
        assert rows == expected, (where, rows)


main(*sys.argv[1:])
