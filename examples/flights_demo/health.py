"""A table's health after a stream: what maintenance it is worth, does, and gains for reads."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import functions as F

import frazil
from flights_demo.show import console, heading, step, step_on
from frazil.table.maintenance.optimizing.choices import OptimizingPlan

RUNS = 3


def query_seconds(table: frazil.Table) -> float:
    """How long a query over all rows takes: the best of three, in seconds."""
    found = []
    for _ in range(RUNS):
        started = time.perf_counter()
        table.to_df().groupBy("carrier").agg(F.avg("arr_delay"), F.count("*")).collect()
        found.append(time.perf_counter() - started)
    return min(found)


def maintenance(table: frazil.Table, report: Path) -> bool:
    """Optimize a table, report on it, and expire its snapshots; whether its rows stayed."""
    heading(f"The health of {table.name}")
    rows, seconds = table.scan().count(), query_seconds(table)
    with step("Look what maintenance is worth it (dry run): no data file is opened"):
        plan = table.optimize(dry_run=True)
    print(plan)
    with step_on(table, "Optimize"):
        result = table.optimize()
    print(result)
    faster = query_seconds(table)
    console.print(f"health   {plan.health}  →  {result.after.health}")
    console.print(f"deletes  {_deletes(plan)}  →  {_deletes(result.after)}")
    console.print(f"a query over all rows  {seconds:.2f} s  →  {faster:.2f} s, best of {RUNS}")

    # Before snapshots expire: the report shows them over time.
    with step(f"Report: {report}"):
        table.report(report)
    now = datetime.now(UTC)
    print(table.maintenance.expire_snapshots(older_than=now, dry_run=True))
    with step("Expire all snapshots but the newest, with the files that only they need"):
        expired = table.maintenance.expire_snapshots(older_than=now)
    print(expired)
    with step("Check every file that the metadata names"):
        check = table.maintenance.check()
    console.print(f"sound: {check.is_sound}; {check.files_count:,} files opened at their footers")
    return check.is_sound and table.scan().count() == rows


def _deletes(plan: OptimizingPlan) -> str:
    deleted = plan.partitions.sum()
    return (
        f"{deleted['equality_rows'].item():,.0f} rows by value, "
        f"{deleted['position_rows'].item():,.0f} by position"
    )
