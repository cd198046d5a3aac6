"""Commits a second with 8 writers on one table, beside the Java runtime's, for both catalogs."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import frazil
from bench.context import CATALOG, Context
from bench.figures import Figure, report

WRITERS = 8
COMMITS = 25
RETRIES = {"commit.retry.num-retries": "100", "commit.retry.min-wait-ms": "10"}

_WRITER = """
import sys
from frazil.catalog.config import load_catalog
from frazil.format.manifests import Content, DataFile
from frazil.table.handle import TableHandle

kind, warehouse, name, writer, commits = sys.argv[1:]
catalog = load_catalog(name, type=kind, warehouse=warehouse)
table = TableHandle(catalog, catalog.load_table("bench.commits"))
sys.stdin.readline()
for number in range(int(commits)):
    path = f"{table.location}/data/{writer}-{number}.parquet"
    table.files.fast_append(
        [
            DataFile(
                content=Content.DATA, file_path=path, file_format="parquet", spec_id=0,
                partition=(), record_count=1, file_size_in_bytes=1000,
            )
        ]
    )
"""


def run(context: Context) -> Iterator[Figure]:
    """Ours in 8 processes; the Java runtime's in 8 threads of one virtual machine."""
    for kind in ("sql", "hadoop"):
        ours = _ours(context, kind)
        theirs = _java(context, kind) if context.has_java else None
        yield report(
            f"fast appends a second, 8 writers, {kind} catalog",
            ours,
            unit="/s",
            against="Java runtime",
            theirs=theirs,
        )


def _ours(context: Context, kind: str) -> float:
    warehouse = str(context.folder / f"commits-{kind}")
    with frazil.connect(context.spark, type=kind, warehouse=warehouse, name=CATALOG) as lake:
        lake.create_namespace("bench")
        lake.create_table("bench.commits", "id bigint", properties=RETRIES)
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", _WRITER, kind, warehouse, CATALOG, str(writer), str(COMMITS)],
            stdin=subprocess.PIPE,
            text=True,
        )
        for writer in range(WRITERS)
    ]
    time.sleep(5)  # every process has started and loaded the table
    started = time.perf_counter()
    for writer in writers:
        writer.communicate("go\n")
    took = time.perf_counter() - started
    with frazil.connect(context.spark, type=kind, warehouse=warehouse, name=CATALOG) as lake:
        snapshots = len(lake.load_table("bench.commits").metadata.snapshots)
    if snapshots != WRITERS * COMMITS:
        raise AssertionError(f"{snapshots} snapshots instead of {WRITERS * COMMITS}")
    return snapshots / took


def _java(context: Context, kind: str) -> float:
    """The same appends through the core API of the Java runtime."""
    catalog = "java" if kind == "sql" else "java_hadoop_commits"
    if kind == "hadoop":
        conf = context.spark.conf
        conf.set(f"spark.sql.catalog.{catalog}", "org.apache.iceberg.spark.SparkCatalog")
        conf.set(f"spark.sql.catalog.{catalog}.type", "hadoop")
        conf.set(f"spark.sql.catalog.{catalog}.warehouse", str(context.folder / "commits-java"))
    name = f"{catalog}.bench.commits_java"
    settings = ", ".join(f"'{key}' = '{value}'" for key, value in RETRIES.items())
    context.spark.sql(f"create table {name} (id bigint) using iceberg tblproperties ({settings})")
    jvm: Any = context.spark.sparkContext._jvm
    session = context.spark._jsparkSession

    def write(writer: int) -> None:
        table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(session, name)
        for number in range(COMMITS):
            file = (
                jvm.org.apache.iceberg.DataFiles.builder(table.spec())
                .withPath(f"{table.location()}/data/{writer}-{number}.parquet")
                .withFileSizeInBytes(1000)
                .withRecordCount(1)
                .build()
            )
            table.newFastAppend().appendFile(file).commit()

    started = time.perf_counter()
    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(write, range(WRITERS)))
    return WRITERS * COMMITS / (time.perf_counter() - started)
