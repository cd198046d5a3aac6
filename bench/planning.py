"""Planning 100 000 files of 20 columns with statistics in 10 manifests."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator

from pyiceberg.expressions import And, EqualTo, GreaterThanOrEqual
from pyiceberg.table import StaticTable

import frazil
from bench.context import Context
from bench.figures import Bar, Figure, compare, interleaved, limit, report
from bench.planning_data import write_table

WHERE = "c1 >= 500000 and c2 = 17"


def run(context: Context) -> Iterator[Figure]:
    """Cold and warm, against PyIceberg and the Java runtime; handing all files to Spark; memory."""
    metadata_file = write_table(context.folder / "planning")
    table = frazil.open_table(metadata_file, spark=context.spark)
    peer = StaticTable.from_metadata(metadata_file)

    def cold() -> None:
        table.io.caches.clear()
        table.scan(where=WHERE).plan()

    def warm() -> None:
        table.scan(where=WHERE).plan()

    def pyiceberg() -> None:
        list(
            peer.scan(
                row_filter=And(GreaterThanOrEqual("c1", 500000), EqualTo("c2", 17))
            ).plan_files()
        )

    sides: dict[str, Callable[[], object]] = {"cold": cold, "warm": warm}
    if context.has_java:
        sides["java"] = _java_planner(context, metadata_file)
    took = interleaved(sides, rounds=9, warm=3)
    theirs = interleaved({"pyiceberg": pyiceberg, "cold": cold}, rounds=3, warm=0)
    yield compare(
        "planning 100k files, cold",
        "PyIceberg",
        theirs["cold"],
        theirs["pyiceberg"],
        Bar(at_least=12),
    )
    yield compare(
        "planning 100k files, warm",
        "PyIceberg",
        took["warm"],
        theirs["pyiceberg"],
        Bar(at_least=100),
    )
    if context.has_java:
        yield compare(
            "planning 100k files, cold", "Java runtime", took["cold"], took["java"], Bar(at_least=1)
        )
        yield compare(
            "planning 100k files, warm", "Java runtime", took["warm"], took["java"], Bar(at_least=3)
        )

    handed = interleaved(
        {"plan": lambda: table.scan().plan(), "hand": lambda: table.scan().to_df().schema},
        rounds=7,
        warm=3,
    )
    yield limit("handing 100k files to Spark", handed["hand"] - handed["plan"], 1.5)
    for name, code in (("Frazil", _OURS), ("PyIceberg", _THEIRS)):
        yield report(
            f"peak memory of planning: {name}", _peak_memory(code, metadata_file), unit="MB"
        )
    if context.has_java:
        yield report("peak memory of planning: Java heap in use", _java_heap(context), unit="MB")


def _java_planner(context: Context, metadata_file: str) -> Callable[[], object]:
    """Java's own plan of the same scan; its manifest cache is off by default."""
    jvm = context.spark.sparkContext._jvm
    core = jvm.org.apache.iceberg
    context.lake.register_table("bench.planning", metadata_file)
    table = core.spark.Spark3Util.loadIcebergTable(
        context.spark._jsparkSession, "java.bench.planning"
    )
    expressions = core.expressions.Expressions
    predicate = getattr(expressions, "and")(
        expressions.greaterThanOrEqual("c1", 500000), expressions.equal("c2", 17)
    )
    count = jvm.org.apache.iceberg.relocated.com.google.common.collect.Iterables.size
    return lambda: count(table.newScan().filter(predicate).planFiles())


def _java_heap(context: Context) -> float:
    runtime = context.spark.sparkContext._jvm.java.lang.Runtime.getRuntime()
    return (runtime.totalMemory() - runtime.freeMemory()) / 1e6


_OURS = """
import sys
from frazil.planning.plan import plan_file
plan_file(sys.argv[1], where="c1 >= 500000 and c2 = 17")
lines = open('/proc/self/status').read().splitlines()
print(next(int(line.split()[1]) / 1024 for line in lines if line.startswith('VmHWM')))
"""
_THEIRS = """
import sys
from pyiceberg.table import StaticTable
from pyiceberg.expressions import And, EqualTo, GreaterThanOrEqual
table = StaticTable.from_metadata(sys.argv[1])
where = And(GreaterThanOrEqual("c1", 500000), EqualTo("c2", 17))
list(table.scan(row_filter=where).plan_files())
lines = open('/proc/self/status').read().splitlines()
print(next(int(line.split()[1]) / 1024 for line in lines if line.startswith('VmHWM')))
"""


def _peak_memory(code: str, metadata_file: str) -> float:
    """The peak resident memory of a fresh process that plans, in MB."""
    ran = subprocess.run(
        [sys.executable, "-c", code, metadata_file],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": "src"},
    )
    return float(ran.stdout.strip().splitlines()[-1])
