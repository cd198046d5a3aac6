"""Maintenance: compaction, conversion, reads before and after, expiry, orphan files, manifests."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import numpy as np
from pyspark.sql import functions as F

import frazil
from bench import maintenance_files, maintenance_manifests
from bench.context import Context, run_all
from bench.equality_data import add_deletes
from bench.figures import Bar, Figure, compare, report
from bench.rows import FLAT_DDL, flat

ROWS_PER_FILE = 20_000
KEYS = 1_000_000
TABLE = "bench.maintenance"
CONVERTED = "bench.maintenance_deletes"
CHANGED = "bench.maintenance_changed"
_BARS: Mapping[str, Bar] = {
    "binpack": Bar(at_most=0.9),
    "sort": Bar(at_most=0.85),
    "zorder": Bar(at_most=0.9),
}
_ORDERS = {"sort": "k, id", "zorder": "zorder(k, ts)"}


def run(context: Context) -> Iterator[Figure]:
    """Against the Java runtime on the same files, in turns."""
    for name, part in PARTS.items():
        if context.part in (None, name):
            yield from part(context)


def _files(context: Context) -> int:
    return max(1, context.rows // ROWS_PER_FILE)


def _make(context: Context, name: str) -> frazil.Table:
    """Rows in many small files."""
    table = context.lake.create_table(name, FLAT_DDL, format_version=2)
    rows = flat(context.spark, context.rows).repartition(_files(context))
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
    for number in range(context.rounds + 1):
        for side in list(sides) if number % 2 == 0 else list(sides)[::-1]:
            context.lake.load_table(TABLE).set_current_snapshot(first.snapshot_id)
            started = time.perf_counter()
            sides[side]()
            took = time.perf_counter() - started
            if number or not context.rounds:
                times[side].append(took)
            if _checksum(context, TABLE) != expected:
                raise AssertionError(f"{side} changed the rows by {strategy}")
    size = f"{context.rows:,} rows in {_files(context):,} files"
    title = f"compaction, {size}, {strategy}{context.suffix}"
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


def _changed(context: Context) -> Iterator[Figure]:
    """A table as a stream of changes leaves it, read before and after each kind of maintenance."""
    lake = context.lake
    table = _make(context, CHANGED)
    ids = np.random.default_rng(7).choice(context.rows, context.rows // 20, replace=False)
    add_deletes(table, "changed", ("id",), ids, 50)
    expected = context.rows - len(ids)
    kinds: Mapping[str, Callable[[frazil.Table, str], object]] = {
        "conversion": lambda t, branch: t.convert_equality_deletes(branch=branch),
        "binpack": lambda t, branch: t.compact(rewrite_all=True, branch=branch),
        "sort": lambda t, branch: t.compact(
            strategy="sort", sort_order=_ORDERS["sort"], rewrite_all=True, branch=branch
        ),
        "zorder": lambda t, branch: t.compact(
            strategy="sort", sort_order=_ORDERS["zorder"], rewrite_all=True, branch=branch
        ),
        "optimize": lambda t, branch: t.optimize(branch=branch),
    }

    def read(branch: str) -> float:
        taken = []
        for _ in range(context.rounds + 1):
            started = time.perf_counter()
            run_all(lake.load_table(CHANGED).scan(ref=branch).to_df())
            taken.append(time.perf_counter() - started)
        return float(np.median(taken[1:] or taken))

    head = table.refresh().metadata.refs["changed"].snapshot_id
    before = read("changed")
    for kind, work in kinds.items():
        table.create_branch(kind, snapshot_id=head)
        started = time.perf_counter()
        work(lake.load_table(CHANGED), kind)
        took = time.perf_counter() - started
        if lake.load_table(CHANGED).scan(ref=kind).count() != expected:
            raise AssertionError(f"{kind} changed the rows")
        title = f"read after {kind} ({took:.1f} s){context.suffix}"
        yield report(title, read(kind), unit="s", against="before", theirs=before)
    lake.purge_table(CHANGED)


PARTS: Mapping[str, Callable[[Context], Iterator[Figure]]] = {
    **{strategy: partial(_compaction, strategy=strategy) for strategy in _BARS},
    "conversion": _conversion,
    "reads": _changed,
    "expire": maintenance_files.expiry,
    "orphans": maintenance_files.orphans,
    "manifests": maintenance_manifests.manifests,
}
"""Each is one run's part by its name: `--part`."""
