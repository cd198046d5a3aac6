"""The constants of `ReadCosts`, which `optimize` counts by: `python -m bench.read_costs`.

One core, a local disk. What counts is the time of the processor that this process, its virtual
machine and its Python workers take, since other work on the machine does not change it. All reads
are run in turns, and medians are compared. Then three tables are optimized, and the gains that the
constants predict stand beside the measured ones.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

import frazil
from bench.context import run_all
from bench.equality_data import TABLE, add_deletes, chosen_ids, make_table
from frazil.planning.plan import plan
from frazil.table.maintenance.optimizing import costs as costs_module
from frazil.table.maintenance.optimizing.costs import ReadCosts
from frazil.table.maintenance.optimizing.planner import plan_optimizing
from frazil.table.maintenance.optimizing.settings import OptimizingSettings
from frazil.table.snapshots.producer import now_ms

ROWS = 1_000_000
FILES = 200
DELETE_COMMITS = 50
DELETE_FILES = 200
WARM = 5
RUNS = 15
_TICK = os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Measure each constant and print it; then predict, optimize and measure."""
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
        found = _measured(spark, lake)
        for name, value in found.items():
            print(f"{name:<14} {value:.2e}", flush=True)
        measured = replace(
            costs_module.READ_COSTS, **{name: max(value, 0.0) for name, value in found.items()}
        )
        for costs, which in ((costs_module.READ_COSTS, "as set"), (measured, "as measured")):
            print(f"constants {which}: {costs}")
        _compared(spark, lake, measured)
    spark.stop()


def _measured(spark: SparkSession, lake: frazil.Lake) -> dict[str, float]:
    table = make_table(spark, lake, ROWS)
    table.compact(rewrite_all=True)
    before = cpu_of_all()
    table.compact(rewrite_all=True)
    rewrite = cpu_of_all() - before
    size = table.scan().plan().size_in_bytes
    whole = table.to_df()
    table.create_branch("small")
    table.overwrite(whole.repartition(FILES), branch="small", options={"distribution-mode": "none"})
    table.create_branch("row")
    table.overwrite(whole.limit(1), branch="row")
    ids = chosen_ids(ROWS, ROWS // 20)
    add_deletes(table, "text", ("s",), ids, 1)
    for files in (1, DELETE_FILES):
        add_deletes(table, f"numbers{files}", ("id",), ids, files)
    table.set_properties({"write.delete.mode": "merge-on-read"})
    for name, commits in (("places", 1), ("places many", DELETE_COMMITS)):
        table.create_branch(name)
        for part in range(commits):
            table.delete(f"id % 20 = 7 and (id div 20) % {commits} = {part}", branch=name)
    names = ("main", "row", "small", "text", "numbers1", f"numbers{DELETE_FILES}", "places")
    reads = {name: _reader(lake, TABLE, name) for name in (*names, "places many")}
    took = _in_turns(reads)
    print({name: round(value, 3) for name, value in took.items()}, f"{rewrite=:.3f} {size=:,}")
    plain = took["main"]
    return {
        "open_file": (took["small"] - plain) / (FILES - 1),
        "read_byte": (plain - took["row"]) / size,
        "write_byte": (rewrite - plain) / size,
        "open_delete": (
            (took["places many"] - took["places"])
            + (took[f"numbers{DELETE_FILES}"] - took["numbers1"])
        )
        / (DELETE_COMMITS - 1 + DELETE_FILES - 1),
        "test_position": (took["places"] - plain) / ROWS,
        "test_key": ((took["text"] - plain) * (took["numbers1"] - plain)) ** 0.5 / ROWS
        if min(took["text"], took["numbers1"]) > plain
        else 0.0,
    }


def _compared(spark: SparkSession, lake: frazil.Lake, measured: ReadCosts) -> None:
    soon = {"write.delete.mode": "merge-on-read", "self-optimizing.minor.trigger.interval": "0"}
    for name, make in _TABLES.items():
        full = f"bench.{name.replace(' ', '_')}"
        table = lake.create_table(full, "id bigint, k bigint, d double, s string", properties=soon)
        make(spark, table)
        predicted = {
            which: _predicted(table, costs)
            for which, costs in (("set", costs_module.READ_COSTS), ("measured", measured))
        }
        read = {name: _reader(lake, full, "main")}
        before = _in_turns(read)[name]
        done = table.optimize()
        after = _in_turns(read)[name]
        gain = before - after
        print(f"{name}: read {before:.3f} s before, {after:.3f} s after, gain {gain:.3f} s")
        for which, (all_seconds, told) in predicted.items():
            print(
                f"  by the constants as {which}: read {all_seconds:.3f} s, gain {told:.3f} s, "
                f"{told / gain:.2f} of the measured gain"
            )
        print(f"  {[str(step.work) for step in done.steps]}, failures {done.failures}", flush=True)


def _predicted(table: frazil.Table, costs: ReadCosts) -> tuple[float, float]:
    """The seconds of a read of everything, and the gain of all that is worth doing."""
    metadata = table.refresh().metadata
    found = plan_optimizing(
        metadata,
        plan(metadata, metadata.current_snapshot, table.io),
        OptimizingSettings.of(metadata.properties),
        now_ms=now_ms(),
        costs=costs,
    )
    return found.read_seconds, found.gain_seconds


def _append(spark: SparkSession, table: frazil.Table, files: int) -> None:
    table.append(
        spark.range(0, ROWS, 1, 4)
        .selectExpr(
            "id",
            "(id * 7919) % 1000003 as k",
            "cast(hash(id) as double) / 1000 as d",
            "concat('name-', cast(id as string)) as s",
        )
        .repartition(files),
        options={"distribution-mode": "none"},
    )


def _small_files(spark: SparkSession, table: frazil.Table) -> None:
    _append(spark, table, FILES)


def _by_position(spark: SparkSession, table: frazil.Table) -> None:
    """A fifth of the rows of four files, deleted by many commits."""
    _append(spark, table, 4)
    for part in range(20):
        table.delete(f"id % 100 = {part}")


def _by_key(spark: SparkSession, table: frazil.Table) -> None:
    _append(spark, table, 4)
    add_deletes(table, "keys", ("s",), chosen_ids(ROWS, ROWS // 20), DELETE_COMMITS)
    table.fast_forward("main", "keys")


_TABLES: Mapping[str, Callable[[SparkSession, frazil.Table], None]] = {
    "small files": _small_files,
    "position deletes": _by_position,
    "equality deletes": _by_key,
}


def _reader(lake: frazil.Lake, name: str, branch: str) -> Callable[[], None]:
    """A read of all rows with nothing known of the table and its deletes."""

    def read() -> None:
        lake.clear_caches()
        run_all(lake.load_table(name).scan(ref=branch).to_df())

    return read


def _in_turns(reads: Mapping[str, Callable[[], None]]) -> dict[str, float]:
    """The median seconds of the processor that each read takes."""
    taken: dict[str, list[float]] = {name: [] for name in reads}
    for number in range(RUNS + WARM):
        for name, read in reads.items():
            before = cpu_of_all()
            read()
            if number >= WARM:
                taken[name].append(cpu_of_all() - before)
    return {name: statistics.median(values) for name, values in taken.items()}


def cpu_of_all() -> float:
    """Seconds that this process and all below it have run, also those that have ended."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(entry.name)] = int(fields[1])
        # Its own time and that of its children that were waited for.
        ticks[int(entry.name)] = sum(map(int, fields[11:15]))
    below = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= more
    return sum(ticks[pid] for pid in below) / _TICK


if __name__ == "__main__":
    main()
