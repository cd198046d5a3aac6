"""How cost grows with a table: CPU seconds at several sizes, and the exponent between them.

CPU is that of this process and of the virtual machine together, so that what runs beside does not
count. An exponent of 1 is linear; 0 is a cost that the size has no part in.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import frazil
from bench.context import Context, run_all
from bench.figures import Bar, Figure, compare, limit, report
from bench.planning_data import write_table
from bench.slopes_data import write_table_with_deletes
from frazil.format.manifests import DataFile
from frazil.planning.cache import clear_cache
from frazil.planning.plan import plan
from frazil.planning.removal import data_files

_TICKS = os.sysconf("SC_CLK_TCK")
_ROUNDS = 3


def run(context: Context) -> Iterator[Figure]:
    """Plans under deletes, commits, expiry, reads of many files, metadata tables, deleted rows."""
    yield from _plans(context)
    yield from _commits(context)
    yield from _reads(context)
    yield from _deleted_rows(context)


def _plans(context: Context) -> Iterator[Figure]:
    """Plan files of 16 partitions, a tenth as many position delete files of partitions beside."""
    ours: dict[int, float] = {}
    for files in (1_000, 10_000, 100_000):
        made = write_table_with_deletes(context.folder / f"slopes-{files}", files=files)
        table = frazil.open_table(made, spark=context.spark)

        def cold(table: Any = table) -> None:
            clear_cache()
            table.scan().plan()

        sides: dict[str, Callable[[], object]] = {"frazil": cold}
        if context.has_java:
            sides["java"] = _java_plan(context, made, f"plan_{files}")
        took = cpu_seconds(context, sides)
        ours[files] = took["frazil"]
        yield _pair(f"plan {files} files, {files // 10} deletes", took, Bar(at_most=1))
    yield limit("peak memory of that plan of 100000 files", _peak_memory(made), 500, unit="MB")
    yield _exponent("plan under deletes", ours, at_most=1.2)


def _commits(context: Context) -> Iterator[Figure]:
    """Append, remove a planned file, expire: on a table of as many manifests as snapshots."""
    lake = context.lake
    properties = {"commit.manifest-merge.enabled": "false"}
    lake.create_table("bench.slopes_commits", "id bigint", properties=properties)
    ours: dict[str, dict[int, float]] = {}
    made = 0
    for snapshots in (50, 200, 800):
        table = lake.load_table("bench.slopes_commits")
        while made < snapshots:
            table.files.fast_append([_file(table.location, made)])
            made += 1
        found = plan(table.metadata, table.current_snapshot, table.io)
        (planned,) = data_files(table.metadata, found, [found.file_count // 2])
        oldest = [each.snapshot_id for each in table.snapshot_list[:10]]
        new, other = _file(table.location, 10_000 + made), _file(table.location, 20_000 + made)
        steps: Mapping[str, Callable[[], object]] = {
            "append": lambda table=table, new=new: table.files.fast_append([new]),
            "remove a file": lambda table=table, new=other, old=planned: table.files.overwrite(
                [new], removed=[old]
            ),
            "expire 10 snapshots": lambda table=table, ids=oldest: table.expire_snapshots(
                snapshot_ids=ids
            ),
        }
        for name, step in steps.items():
            clear_cache()
            # What this process committed itself it has at hand, as a writer has.
            lake.load_table("bench.slopes_commits")
            took = _cpu_of(context, step)
            ours.setdefault(name, {})[snapshots] = took
            theirs = None
            if context.has_java:
                theirs = _java_step(context, name, "bench.slopes_commits", made)
            yield report(
                f"{name} at {snapshots} snapshots", took, unit="s", against="Java", theirs=theirs
            )
    for name, at in ours.items():
        yield _exponent(name, at, at_most=1.1)


def _reads(context: Context) -> Iterator[Figure]:
    """Hand a plan to Spark again, and look at the metadata tables."""
    counts: dict[str, dict[int, float]] = {}
    for manifests in (1, 10):
        files = manifests * 10_000
        made = write_table(context.folder / f"slopes-read-{manifests}", manifests=manifests)
        table = frazil.open_table(made, spark=context.spark)
        scan = table.scan()
        clear_cache()
        first = _cpu_of(context, lambda scan=scan: scan.to_df().schema)
        again = _cpu_of(context, lambda scan=scan: scan.to_df().schema)
        yield compare(f"hand {files} files to Spark again", "first", again, first, Bar(at_most=0.2))
        looks: dict[str, Callable[[], object]] = {
            "files().count()": lambda table=table: table.inspect.dataframes.files().count(),
            "entries().count()": lambda table=table: table.inspect.dataframes.entries().count(),
            "partitions()": lambda table=table: table.inspect.dataframes.partitions().collect(),
        }
        if context.has_java:
            context.lake.register_table(f"bench.read_{manifests}", made)
        for name, look in looks.items():
            clear_cache()
            sides = {"frazil": look}
            if context.has_java:
                rows = context.java(f"bench.read_{manifests}.{name.split('(')[0]}")
                sides["java"] = rows.count if "count" in name else rows.collect
            took = cpu_seconds(context, sides)
            counts.setdefault(name, {})[files] = took["frazil"]
            yield _pair(f"{name} of {files} files", took, Bar(at_most=1))
    for name, at in counts.items():
        yield _exponent(name, at, at_most=1.2)


def _deleted_rows(context: Context) -> Iterator[Figure]:
    """Read rows of which 5 % are deleted by positions: below, and above the bounds of one array."""
    ours: dict[int, float] = {}
    for rows in (context.rows, 4 * context.rows):
        name = f"bench.slopes_rows_{rows}"
        properties = {"format-version": "2", "write.delete.mode": "merge-on-read"}
        table = context.lake.create_table(name, "id bigint, v bigint", properties=properties)
        table.append(context.spark.range(rows).selectExpr("id", "id % 1000 as v"))
        table.delete("id % 20 = 7")
        table = context.lake.load_table(name)
        clear_cache()
        first = _cpu_of(context, lambda table=table: run_all(table.to_df().selectExpr("sum(v)")))
        sides: dict[str, Callable[[], object]] = {
            "frazil": lambda table=table: run_all(table.to_df().selectExpr("sum(v)"))
        }
        if context.has_java:
            sides["java"] = lambda name=name: run_all(context.java(name).selectExpr("sum(v)"))
        took = cpu_seconds(context, sides)
        ours[rows] = took["frazil"]
        yield report(f"first read of {rows} rows, 5 % deleted", first, unit="s")
        yield _pair(f"read {rows} rows, 5 % deleted", took, Bar(at_most=1))
        context.lake.drop_table(name)
    yield _exponent("read under positions", ours, at_most=1.1)


def cpu_seconds(context: Context, sides: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """The least CPU seconds of each side, of rounds in turns after one that is not counted."""
    found: dict[str, float] = {}
    for number in range(_ROUNDS + 1):
        for name, side in sides.items():
            took = _cpu_of(context, side)
            if number:
                found[name] = min(took, found.get(name, took))
    return found


def _cpu_of(context: Context, step: Callable[[], object]) -> float:
    before = _cpu(context)
    step()
    return _cpu(context) - before


def _cpu(context: Context) -> float:
    own = os.times()
    jvm: Any = context.spark.sparkContext._jvm
    pid = jvm.java.lang.ProcessHandle.current().pid()
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    # Of user and system, with those of workers that have ended.
    machine = sum(int(value) for value in fields[11:15]) / _TICKS
    return own.user + own.system + own.children_user + own.children_system + machine


def _pair(name: str, took: Mapping[str, float], bar: Bar) -> Figure:
    if "java" not in took:
        return report(name, took["frazil"], unit="s")
    return compare(name, "Java runtime", took["frazil"], took["java"], bar)


def _exponent(name: str, at: Mapping[int, float], *, at_most: float) -> Figure:
    """How cost grew from the second largest to the largest size."""
    (small, few), (large, many) = sorted(at.items())[-2:]
    exponent = math.log(max(many, 1e-3) / max(few, 1e-3)) / math.log(large / small)
    return limit(f"exponent: {name}", exponent, at_most, unit="")


def _file(location: str, number: int) -> DataFile:
    return DataFile(
        file_path=f"{location}/data/{number:06d}.parquet", record_count=1, file_size_in_bytes=1000
    )


def _java_plan(context: Context, metadata_file: str, name: str) -> Callable[[], object]:
    context.lake.register_table(f"bench.{name}", metadata_file)
    table = _java_table(context, f"bench.{name}")
    jvm: Any = context.spark.sparkContext._jvm
    count = jvm.org.apache.iceberg.relocated.com.google.common.collect.Iterables.size
    return lambda: count(table.newScan().planFiles())


def _java_table(context: Context, name: str) -> Any:
    jvm: Any = context.spark.sparkContext._jvm
    load = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable
    return load(context.spark._jsparkSession, f"java.{name}")


def _java_step(context: Context, name: str, table_name: str, made: int) -> float:
    """The same step on the same table through the core API of the Java runtime."""
    table = _java_table(context, table_name)
    jvm: Any = context.spark.sparkContext._jvm
    path = f"{table.location()}/data/java-{name.split()[0]}-{made}.parquet"
    file = (
        jvm.org.apache.iceberg.DataFiles.builder(table.spec())
        .withPath(path)
        .withFileSizeInBytes(1000)
        .withRecordCount(1)
        .build()
    )
    if name == "append":
        return _cpu_of(context, lambda: table.newFastAppend().appendFile(file).commit())
    if name == "remove a file":
        planned = table.newScan().planFiles().iterator().next().file()
        change = table.newOverwrite().deleteFile(planned).addFile(file)
        return _cpu_of(context, change.commit)
    expiry = table.expireSnapshots()
    snapshots = table.snapshots().iterator()
    for _ in range(10):
        expiry = expiry.expireSnapshotId(snapshots.next().snapshotId())
    return _cpu_of(context, expiry.commit)


_PEAK = """
import sys
from frazil.planning.plan import plan_file
plan_file(sys.argv[1])
lines = open('/proc/self/status').read().splitlines()
print(next(int(line.split()[1]) / 1024 for line in lines if line.startswith('VmHWM')))
"""


def _peak_memory(metadata_file: str) -> float:
    """The peak resident memory of a fresh process that plans, in MB."""
    ran = subprocess.run(
        [sys.executable, "-c", _PEAK, metadata_file],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": "src"},
    )
    return float(ran.stdout.strip().splitlines()[-1])
