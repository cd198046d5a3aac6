"""Plans: under deletes (row 1), handed to Spark (5), kept in memory (6), as metadata tables (7)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import frazil
from bench.context import Context
from bench.figures import Bar, Figure, compare, limit, report
from bench.planning_data import write_table
from bench.slopes_cost import Slope, cpu_of
from bench.slopes_data import write_table_of_files, write_table_of_one_file
from bench.slopes_java import is_out_of_memory, java_plan
from frazil.format.manifests import DataFile
from frazil.planning.plan import plan
from frazil.planning.removal import data_files
from frazil.spark.scan import Scan

FILES = (1_000, 10_000, 100_000)
HANDED = (10_000, 100_000, 1_000_000)
_FEW = 10
_Ask: TypeAlias = Callable[[DataFrame], object]
_Told: TypeAlias = list[object]
_ASKED: Mapping[str, tuple[str, _Ask]] = {
    "files().count()": ("files", DataFrame.count),
    "entries().count()": ("entries", DataFrame.count),
    "partitions()": ("partitions", lambda rows: len(rows.collect())),
    "sums of files()": (
        "files",
        lambda rows: rows.agg(F.sum("record_count"), F.sum("file_size_in_bytes")).collect(),
    ),
    "files() of many rows": ("files", lambda rows: rows.where("record_count > 150000").count()),
    "files() of one partition": ("files", lambda rows: rows.where("partition.bucket = 3").count()),
}
"""What is asked of which metadata table."""


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
    """Row 5: a plan handed to Spark, and the same plan again; a few rows read of it.

    A Spark with its default heap keeps what it was told, by Frazil's default settings.
    """
    file = _one_file(context)
    handed = Slope(context, "hand {} planned files to Spark again")
    read = Slope(context, "read a few rows of {} planned files again")
    steps: list[tuple[Slope, Callable[[Scan], object]]] = [
        (handed, lambda scan: scan.to_df().schema),
        (read, lambda scan: _few_rows(scan.to_df())),
    ]
    for files in HANDED:
        folder = context.folder / f"slopes-handed-{files}"
        made = write_table_of_one_file(folder, files=files, file=file)
        table = frazil.open_table(made, spark=context.spark)
        for slope, step in steps:
            table.io.caches.clear()
            scan = table.scan()
            first = cpu_of(context, lambda scan=scan, step=step: step(scan))
            again = min(cpu_of(context, lambda scan=scan, step=step: step(scan)) for _ in range(2))
            slope.ours[files] = again
            name = slope.name.format(f"{files:,}")
            # A read of few files has costs of its own, which only a long plan makes small.
            is_bound = slope is handed or files == HANDED[-1]
            yield compare(name, "first", again, first, Bar(at_most=0.2) if is_bound else Bar())
            if slope is handed and files == FILES[-1]:
                yield limit(name, again, 0.3)
        table.io.caches.clear()
        if context.has_java:
            yield _read_by_java(context, made, name, files, again)
    for slope, _ in steps:
        yield slope.steepness()


def _one_file(context: Context) -> DataFile:
    """A file of a few rows that is there."""
    table = context.lake.create_table("bench.handed", "id bigint")
    table.append(context.spark.range(_FEW).coalesce(1))
    found = plan(table.metadata, table.current_snapshot, table.io)
    return data_files(table.metadata, found, [0])[0]


def _few_rows(rows: DataFrame) -> None:
    """Read as many rows as one file has: Spark plans all files, and opens the first ones."""
    assert len(rows.limit(_FEW).collect()) == _FEW


def _read_by_java(context: Context, made: str, name: str, files: int, ours: float) -> Figure:
    """The same rows by the Java runtime, again."""
    table = f"bench.handed_{files}"
    context.lake.register_table(table, made)
    try:
        theirs = min(cpu_of(context, lambda: _few_rows(context.java(table))) for _ in range(3))
    except Py4JJavaError as error:
        if not is_out_of_memory(error):
            raise
        return report(f"{name}, not enough memory for", ours, unit="s", against="Java")
    return compare(name, "Java runtime", ours, theirs, Bar())


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
    """Row 7: the metadata tables of a snapshot, of files of 20 columns with statistics.

    The Java runtime's answers are compared with those of Frazil. Row 12 asks the same of millions.
    """
    slopes = {
        name: Slope(context, f"{name} of {{}} files", Bar(at_most=1), exponent=1.2, least=FILES[-1])
        for name in _ASKED
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
            of, ask = _ASKED[name]
            answers: list[object] = []

            def ours(
                of: str = of, ask: _Ask = ask, table: frazil.Table = table, to: _Told = answers
            ) -> None:
                table.io.caches.clear()
                to.append(ask(getattr(table.inspect.dataframes, of)()))

            def theirs(
                of: str = of, ask: _Ask = ask, files: int = files, to: _Told = answers
            ) -> None:
                to.append(ask(context.java(f"bench.read_{files}.{of}")))

            yield from slope.measure(files, ours, theirs)
            assert all(answer == answers[0] for answer in answers), f"{name}: {answers}"
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
