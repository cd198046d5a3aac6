"""The constants of `frazil.table.optimizing.costs.ReadCosts`: `python -m bench.read_costs`.

One core, a local disk, five runs of each read, the median counts. Differences that the machine's
noise swallows are printed as 0.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable

from pyspark.sql import SparkSession

import frazil
from bench.context import run_all
from bench.equality_data import TABLE, add_deletes, chosen_ids, make_table
from frazil.planning.cache import clear_cache
from frazil.spark.deletes.deletion_cache import DELETED_WORDS

ROWS = 4_000_000
FILES = 200
DELETE_FILES = 20
RUNS = 5


def main() -> None:
    """Measure each constant and print it."""
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "3g")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    with tempfile.TemporaryDirectory() as folder, frazil.connect(spark, warehouse=folder) as lake:
        lake.create_namespace("bench")
        for name, value in _measured(spark, lake).items():
            print(f"{name:<14} {max(value, 0.0):.2e}", flush=True)
    spark.stop()


def _measured(spark: SparkSession, lake: frazil.Lake) -> dict[str, float]:
    began = time.perf_counter()
    table = make_table(spark, lake, ROWS)
    table.compact(rewrite_all=True)
    written = time.perf_counter()
    table.compact(rewrite_all=True)
    rewrite = time.perf_counter() - written
    size = _bytes(table)
    plain = _read(lake, "main")
    table.create_branch("small")
    whole = table.to_df()
    table.overwrite(whole.repartition(FILES), branch="small", options={"distribution-mode": "none"})
    small = _read(lake, "small")
    by_key = {}
    for files in (1, DELETE_FILES):
        ids = chosen_ids(ROWS, ROWS // 20)
        add_deletes(table, f"keys{files}", ("s",), ids, files)
        by_key[files] = _read(lake, f"keys{files}")
    table.set_properties({"write.delete.mode": "merge-on-read"})
    table.create_branch("places")
    table.delete("id % 20 = 7", branch="places")
    places = _read(lake, "places")
    print(f"{ROWS:,} rows, {size:,} bytes, made in {written - began:.1f} s")
    print(f"{plain=:.3f} {small=:.3f} {by_key=} {places=:.3f} {rewrite=:.3f}")
    return {
        "open_file": (small - plain) / FILES,
        "read_byte": plain / size,
        "write_byte": (rewrite - plain) / size,
        "open_delete": (by_key[DELETE_FILES] - by_key[1]) / (DELETE_FILES - 1),
        "test_position": (places - plain) / ROWS,
        "test_key": (by_key[1] - plain) / ROWS,
    }


def _bytes(table: frazil.Table) -> int:
    return table.scan().plan().size_in_bytes


def _read(lake: frazil.Lake, branch: str) -> float:
    """The seconds that a read of all rows takes, with nothing known of its deletes."""

    def read() -> None:
        clear_cache()
        DELETED_WORDS.clear()
        run_all(lake.load_table(TABLE).scan(ref=branch).to_df())

    return _median(read)


def _median(run: Callable[[], None]) -> float:
    run()
    times = []
    for _ in range(RUNS):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


if __name__ == "__main__":
    main()
