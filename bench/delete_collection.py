"""`python -m bench.delete_collection`: deletes whose places are collected one by one, and as words.

The two sides of the limit `PLACES_HERE`, at one size of a table.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import frazil
from bench.figures import interleaved, line, report
from bench.sessions import start
from frazil.spark.session import costs

ROUNDS = 4


def main() -> None:
    """Print the seconds of a delete of 1 % by vectors, either way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of the table")
    rows = parser.parse_args().rows
    folder = Path(tempfile.mkdtemp(prefix="frazil-bench-"))
    spark = start(folder)
    try:
        with frazil.connect(spark, warehouse=str(folder)) as lake:
            lake.create_namespace("bench")
            table = lake.create_table(
                "bench.deleted",
                "id bigint, k bigint, p int",
                partition_by=["p"],
                format_version=3,
                properties={"write.delete.mode": "merge-on-read"},
            )
            table.append(spark.range(rows).selectExpr("id", "id % 1000 as k", "int(id % 10) as p"))
            sides = {"one by one": _deleting(table, rows), "then as words": _deleting(table, 0)}
            for name, seconds in interleaved(sides, rounds=ROUNDS).items():
                print(line(report(f"delete 1 % of {rows} rows, {name}", seconds, unit="s")))
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _deleting(table: frazil.Table, most_rows: int) -> Callable[[], object]:
    base = table.current_snapshot
    assert base is not None

    def delete() -> None:
        costs.PLACES_HERE = most_rows  # type: ignore[misc]
        table.delete("k % 100 = 7")
        table.refresh().rollback_to_snapshot(base.snapshot_id)

    return delete


if __name__ == "__main__":
    main()
