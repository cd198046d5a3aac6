"""Reading a table after 100 small upsert commits: at first, again, and after one more commit."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

from bench.context import Context, run_all
from bench.figures import Bar, Figure, compare, report
from bench.upserted_data import KEYS, TABLE, make_table

COMMITS = 100
MORE = 4
SHARE = 10
CHANGES = 1_000


def run(context: Context) -> Iterator[Figure]:
    """By a long and by a string; the Java runtime reads each table once after the last commit."""
    rows = context.rows // SHARE
    made = make_table(context.spark, context.lake, rows, CHANGES)
    for number in range(COMMITS):
        made.commit(number)
    after: dict[str, list[float]] = {column: [] for column in KEYS.values()}
    first: dict[str, float] = {}
    again: dict[str, float] = {}
    for column in KEYS.values():
        _read(context, column)
        context.lake.clear_caches()
        first[column] = _read(context, column)
        again[column] = statistics.median(_read(context, column) for _ in range(3))
    for number in range(COMMITS, COMMITS + MORE):
        made.commit(number)
        for column in KEYS.values():
            after[column].append(_read(context, column))
    for key, column in KEYS.items():
        found = context.lake.load_table(TABLE).scan(ref=column).to_df().count()
        if found != rows:
            raise AssertionError(f"{found} rows are left by {key}, not {rows}")
        name = f"{COMMITS} upsert commits by {key}"
        yield report(f"{name}, first read{context.suffix}", first[column], unit="s")
        yield report(f"{name}, again{context.suffix}", again[column], unit="s")
        title = f"{name}, after one more{context.suffix}"
        ours = statistics.median(after[column])
        if context.has_java:
            started = time.perf_counter()
            run_all(context.spark.read.option("branch", column).table(f"java.{TABLE}"))
            java = time.perf_counter() - started
            yield compare(title, "Java read", ours, java, Bar(at_most=0.5))
        else:
            yield report(title, ours, unit="s")
    context.lake.purge_table(TABLE)


def _read(context: Context, column: str) -> float:
    started = time.perf_counter()
    run_all(context.lake.load_table(TABLE).scan(ref=column).to_df())
    return time.perf_counter() - started
