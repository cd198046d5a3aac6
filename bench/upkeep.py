"""Upkeep: compaction of many small files by each strategy, and conversion of equality deletes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping

import numpy as np
from pyspark.sql import functions as F

import frazil
from bench.context import Context, run_all
from bench.equality_data import add_deletes
from bench.figures import Bar, Figure, compare, report
from bench.rows import FLAT_DDL, flat

FILES = 500
KEYS = 1_000_000
ROUNDS = 3
TABLE = "bench.upkeep"
CONVERTED = "bench.upkeep_deletes"
_BARS: Mapping[str, Bar] = {
    "binpack": Bar(at_most=0.9),
    "sort": Bar(at_most=0.85),
    "zorder": Bar(at_most=0.9),
}
_ORDERS = {"sort": "k, id", "zorder": "zorder(k, ts)"}


def run(context: Context) -> Iterator[Figure]:
    """Against the Java runtime on the same files, in turns."""
    for strategy in _BARS:
        yield from _compaction(context, strategy)
    yield from _conversion(context)


def _make(context: Context, name: str) -> frazil.Table:
    """Rows in many small files."""
    table = context.lake.create_table(name, FLAT_DDL, format_version=2)
    rows = flat(context.spark, context.rows).repartition(FILES)
    table.append(rows, options={"distribution-mode": "none"})
    return table


def _compaction(context: Context, strategy: str) -> Iterator[Figure]:
    """Each round begins from the same files: the table is set back to its first snapshot."""
    ours = _make(context, TABLE)
    first = ours.current_snapshot
    assert first is not None
    expected = _checksum(context, TABLE)
    order = _ORDERS.get(strategy)
    sides: dict[str, Callable[[], object]] = {
        "ours": lambda: context.lake.load_table(TABLE).compact(
            strategy="binpack" if order is None else "sort", sort_order=order
        )
    }
    if context.has_java:
        text = "" if order is None else f", strategy => 'sort', sort_order => '{order}'"
        call = f"call java.system.rewrite_data_files(table => '{TABLE}'{text})"
        sides["java"] = lambda: context.spark.sql(call).collect()
    times: dict[str, list[float]] = {side: [] for side in sides}
    for number in range(ROUNDS + 1):
        for side in list(sides) if number % 2 == 0 else list(sides)[::-1]:
            context.lake.load_table(TABLE).set_current_snapshot(first.snapshot_id)
            started = time.perf_counter()
            sides[side]()
            took = time.perf_counter() - started
            if number:
                times[side].append(took)
            if _checksum(context, TABLE) != expected:
                raise AssertionError(f"{side} changed the rows by {strategy}")
    title = f"compaction, {context.rows:,} rows in {FILES} files, {strategy}{context.suffix}"
    took_ours = float(np.median(times["ours"]))
    if context.has_java:
        took_java = float(np.median(times["java"]))
        yield compare(title, "Java runtime", took_ours, took_java, _BARS[strategy])
    else:
        yield report(title, took_ours, unit="s")
    context.lake.purge_table(TABLE)


def _checksum(context: Context, name: str) -> tuple[int, int]:
    rows = context.lake.load_table(name).to_df()
    found = rows.agg(F.count("*"), F.expr("sum(xxhash64(id, k, d, s, i, ts) % 1000003)")).first()
    assert found is not None
    return int(found[0]), int(found[1])


def _conversion(context: Context) -> Iterator[Figure]:
    """Many keys over the whole table, and a read before and after."""
    spark, lake = context.spark, context.lake
    table = lake.create_table(CONVERTED, FLAT_DDL, format_version=2)
    table.append(flat(spark, context.rows))
    keys = int(KEYS * context.rows / 10_000_000)
    ids = np.random.default_rng(5).choice(context.rows, keys, replace=False)
    add_deletes(table, "deleted", ("id",), ids, 20)

    def read() -> float:
        started = time.perf_counter()
        run_all(lake.load_table(CONVERTED).scan(ref="deleted").to_df())
        return time.perf_counter() - started

    read()
    before = read()
    started = time.perf_counter()
    result = lake.load_table(CONVERTED).convert_equality_deletes(branch="deleted")
    took = time.perf_counter() - started
    if result.deleted_rows_count != keys:
        raise AssertionError(f"{result.deleted_rows_count} rows were deleted, not {keys}")
    read()
    after = read()
    what = f"{keys:,} equality keys over {context.rows:,} rows{context.suffix}"
    yield report(f"conversion of {what}", took, unit="s")
    yield report(f"read after conversion, {what}", after, unit="s", against="before", theirs=before)
    lake.purge_table(CONVERTED)
