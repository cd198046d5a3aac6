"""Rewriting the manifests of many files, beside the session and by executors, and by Java's."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial

from bench.context import Context
from bench.figures import Bar, Figure, compare, report
from bench.planning_data import write_table
from frazil.spark.session import costs

TABLE = "bench.maintenance_manifests"
FILES_PER_MANIFEST = 10_000
ROWS_PER_MANIFEST = 500_000
_HERE = 1 << 40


def manifests(context: Context) -> Iterator[Figure]:
    """Each manifest has files of every partition, so that it gives entries to every new one."""
    count = max(2, context.rows // ROWS_PER_MANIFEST)
    folder = context.folder / "maintenance-manifests"
    (folder / "metadata").mkdir(parents=True)
    location = write_table(folder, manifests=count, files_per_manifest=FILES_PER_MANIFEST)
    size = sum(path.stat().st_size for path in (folder / "metadata").glob("*-m*.avro"))
    here, there = "beside the session", "by executors"
    sides: dict[str, Callable[[], object]] = {
        here: partial(_ours, context, _HERE),
        there: partial(_ours, context, 0),
    }
    taken_way = here if size <= costs.REWRITTEN_BYTES else there
    if context.has_java:
        call = f"call java.system.rewrite_manifests('{TABLE}', false)"
        sides["java"] = lambda: context.spark.sql(call).collect()
    times: dict[str, list[float]] = {side: [] for side in sides}
    for number in range(context.rounds + 1):
        for side in list(sides) if number % 2 == 0 else list(sides)[::-1]:
            context.lake.register_table(TABLE, location)
            context.lake.clear_caches()
            started = time.perf_counter()
            sides[side]()
            took = time.perf_counter() - started
            if number or not context.rounds:
                times[side].append(took)
            _check(context, side, count * FILES_PER_MANIFEST)
            context.lake.drop_table(TABLE)
    java = times.pop("java", None)
    for side, taken in times.items():
        title = f"rewrite of {count} manifests ({size >> 20} MiB), {side}{context.suffix}"
        ours = statistics.median(taken)
        if java is None:
            yield report(title, ours, unit="s")
        else:
            # The other way shows what is beyond the limit.
            bar = Bar(at_most=1.0) if side == taken_way else Bar()
            yield compare(title, "Java runtime", ours, statistics.median(java), bar)


def _ours(context: Context, on_driver_bytes: int) -> None:
    kept = costs.REWRITTEN_BYTES
    costs.REWRITTEN_BYTES = on_driver_bytes  # type: ignore[misc]
    try:
        context.lake.load_table(TABLE).maintenance.rewrite_manifests()
    finally:
        costs.REWRITTEN_BYTES = kept  # type: ignore[misc]


def _check(context: Context, side: str, files: int) -> None:
    table = context.lake.load_table(TABLE)
    snapshot = table.current_snapshot
    assert snapshot is not None
    found = sum(table.inspect.manifests()["existing_data_files_count"])
    if found != files or snapshot.operation != "replace":
        raise AssertionError(f"{side} left {found} of {files} files in {snapshot.operation}")
