"""Plans: under deletes (row 1), handed to Spark (5), kept in memory (6), as metadata tables (7)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import frazil
from bench.context import Context
from bench.figures import Bar, Figure, compare, limit
from bench.planning_data import write_table
from bench.slopes_cost import Slope, cpu_of
from bench.slopes_data import write_table_of_files
from bench.slopes_java import java_plan

FILES = (1_000, 10_000, 100_000)


def plans_under_deletes(context: Context) -> Iterator[Figure]:
    """Row 1: files of 16 partitions, a tenth as many position deletes of partitions beside."""
    slope = Slope(
        context,
        "plan {} files, a tenth as many deletes",
        Bar(at_most=1),
        exponent=1.2,
        least=FILES[-1],
    )
    for files in FILES:
        made = write_table_of_files(
            context.folder / f"slopes-plan-{files}", files=files, deletes=files // 10
        )
        table = frazil.open_table(made, spark=context.spark)

        def cold(table: frazil.Table = table) -> None:
            table.io.caches.clear()
            table.scan().plan()

        theirs = None
        if context.has_java:
            context.lake.register_table(f"bench.plan_{files}", made)
            theirs = java_plan(context, f"bench.plan_{files}")
        yield from slope.measure(files, cold, theirs)
    peak = float(_in_fresh_process(_PEAK, made)[0])
    yield limit("peak memory of a process that plans those", peak, 500, unit="MB")
    yield slope.steepness()


def plans_for_spark(context: Context) -> Iterator[Figure]:
    """Row 5: a plan handed to Spark, and the same plan again."""
    slope = Slope(context, "hand {} planned files to Spark again")
    for files in (10_000, 100_000, 1_000_000):
        made = write_table_of_files(context.folder / f"slopes-handed-{files}", files=files)
        table = frazil.open_table(made, spark=context.spark)
        scan = table.scan()
        first = cpu_of(context, lambda scan=scan: scan.to_df().schema)
        again = min(cpu_of(context, lambda scan=scan: scan.to_df().schema) for _ in range(2))
        slope.ours[files] = again
        name = slope.name.format(f"{files:,}")
        yield compare(name, "first", again, first, Bar(at_most=0.2))
        if files == FILES[-1]:
            yield limit(name, again, 0.3)
        table.io.caches.clear()
    yield slope.steepness()


def kept_manifests(context: Context) -> Iterator[Figure]:
    """Row 6: what the cache of manifests counts, beside what the process takes more."""
    for manifests in (500, 1_000, 5_000):
        folder = context.folder / f"slopes-kept-{manifests}"
        made = write_table_of_files(folder, files=manifests * 20, per_manifest=20)
        more, counted, left = map(float, _in_fresh_process(_KEPT, made))
        name = f"memory of {manifests:,} manifests of 20 files"
        yield compare(name, "counted", more, counted, Bar(at_most=1.3), unit="MB")
        yield compare(f"{name}, cleared", "before", left, more, Bar(at_most=0.3), unit="MB")


def metadata_tables(context: Context) -> Iterator[Figure]:
    """Row 7: the metadata tables of a snapshot, of files of 20 columns with statistics."""
    names = ("files().count()", "entries().count()", "partitions()")
    slopes = {
        name: Slope(context, f"{name} of {{}} files", Bar(at_most=1), exponent=1.2, least=FILES[-1])
        for name in names
    }
    for files in FILES:
        made = write_table(
            context.folder / f"slopes-read-{files}",
            manifests=max(1, files // 10_000),
            files_per_manifest=min(files, 10_000),
        )
        table = frazil.open_table(made, spark=context.spark)
        if context.has_java:
            context.lake.register_table(f"bench.read_{files}", made)
        for name, slope in slopes.items():

            def ours(name: str = name, table: frazil.Table = table) -> None:
                table.io.caches.clear()
                rows = getattr(table.inspect.dataframes, name.split("(")[0])()
                rows.count() if "count" in name else rows.collect()

            def theirs(name: str = name, files: int = files) -> None:
                rows = context.java(f"bench.read_{files}.{name.split('(')[0]}")
                rows.count() if "count" in name else rows.collect()

            yield from slope.measure(files, ours, theirs)
    for slope in slopes.values():
        yield slope.steepness()


_STATUS = """
import ctypes, gc, sys, time

def memory(name):
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    lines = open('/proc/self/status').read().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(name))
"""
_PEAK = f"""{_STATUS}
from frazil.planning.plan import plan_file
plan_file(sys.argv[1])
print(memory('VmHWM'))
"""
_KEPT = f"""{_STATUS}
from pathlib import Path
from frazil.format.metadata import parse_metadata
from frazil.planning.load import ManifestLoader
from frazil.storage.files import FileIO

metadata = parse_metadata(Path(sys.argv[1]).read_bytes(), file=sys.argv[1])
io = FileIO()
loader = ManifestLoader.of(metadata, io)
manifests = loader.manifests(metadata.snapshots[-1])
loader.entries(manifests[:10])
io.caches.clear()
before = memory('VmRSS')
loader.entries(manifests)
print(memory('VmRSS') - before)
print(io.caches["manifests"].size_in_bytes / (1 << 20))
io.caches.clear()
gc.collect()
# The allocator of Polars gives pages back half a second after they were left.
time.sleep(2)
print(memory('VmRSS') - before)
"""


def _in_fresh_process(program: str, metadata_file: str) -> list[str]:
    """The lines that a program prints."""
    ran = subprocess.run(
        [sys.executable, "-c", program, metadata_file],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": "src"},
    )
    return ran.stdout.strip().splitlines()
