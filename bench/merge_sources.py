"""`python -m bench.merge_sources`: merges whose source the driver just collects, or just does not.

The two sides of the limit `SOURCE_KEY_BYTES` on the keys of a source: one per cent fewer rows,
and more.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import frazil
from bench.figures import interleaved, line, report
from bench.rows import FLAT_DDL, flat
from bench.sessions import start
from frazil.spark.row_level.merging.keys.collected import CollectedKeys
from frazil.spark.row_level.merging.keys.equal_columns import EqualColumns
from frazil.spark.session import costs

BYTES_A_ROW = 24
"""Of a source with one key, a long: the row's number, the key's hash, and the key."""
PARTITIONS = 10
SIDES = {"just below": 0.99, "just above": 1.01}


def main() -> None:
    """Print the seconds of a merge on either side, in both modes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of the table")
    parser.add_argument("--rounds", type=int, default=4, help="merges on either side")
    options = parser.parse_args()
    rows = options.rows
    folder = Path(tempfile.mkdtemp(prefix="frazil-bench-"))
    spark = start(folder)
    try:
        with frazil.connect(spark, warehouse=str(folder)) as lake:
            lake.create_namespace("bench")
            sources = {}
            for name, share in SIDES.items():
                path = f"{folder}/{name}"
                most = costs.SOURCE_KEY_BYTES // BYTES_A_ROW
                _source(spark, int(most * share), rows).write.parquet(path)
                sources[name] = spark.read.parquet(path).coalesce(1)
            for mode in ("merge-on-read", "copy-on-write"):
                table = lake.create_table(
                    f"bench.{mode.replace('-', '_')}",
                    FLAT_DDL,
                    partition_by=[f"truncate({max(rows // PARTITIONS, 1)}, id)"],
                    properties={"write.merge.mode": mode},
                )
                table.append(flat(spark, rows))
                sides = {}
                for name, source in sources.items():
                    _check(table, source, is_collected=SIDES[name] < 1)
                    sides[f"{source.count()} rows, {name}"] = _merging(table, source)
                for name, seconds in interleaved(sides, rounds=options.rounds).items():
                    print(line(report(f"{mode}: {name}", seconds, unit="s")), flush=True)
                lake.purge_table(f"bench.{mode.replace('-', '_')}")
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _source(spark: SparkSession, count: int, rows: int) -> DataFrame:
    """So many rows, evenly of the whole table; those of its last hundredth are new to it."""
    is_chosen = f"(id * {count}) div {rows} <> ((id - 1) * {count}) div {rows}"
    changed = flat(spark, rows).where(is_chosen).withColumn("d", F.col("d") + 1)
    key = F.expr(f"if(id >= {rows} - {rows} div 100, id + {rows}, id)")
    return changed.withColumn("id", key).coalesce(1)


def _check(table: frazil.Table, source: DataFrame, *, is_collected: bool) -> None:
    """Check that a source lies on its side of the limit."""
    key = EqualColumns(("id",), table.schema.find_field("id"), "id", nulls_match=False)
    numbered = source.withColumn("number", F.monotonically_increasing_id())
    found = CollectedKeys.of(numbered, "number", [key])
    assert (found is not None) == is_collected


def _merging(table: frazil.Table, source: DataFrame) -> Callable[[], object]:
    base = table.current_snapshot
    assert base is not None

    def merge() -> None:
        (
            table.merge(source, on="target.id = source.id")
            .when_matched_update_all()
            .when_not_matched_insert_all()
            .execute()
        )
        table.refresh().rollback_to_snapshot(base.snapshot_id)

    return merge


if __name__ == "__main__":
    main()
