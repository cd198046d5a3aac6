"""Append of 10 million rows, unpartitioned and into 50 partitions."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator

from bench.context import Context
from bench.figures import Bar, Figure, compare, interleaved
from bench.rows import FLAT_DDL, flat

ROUNDS = 5


def run(context: Context) -> Iterator[Figure]:
    """Against plain `df.write.parquet` (and `partitionBy`), and against the Java runtime."""
    yield from _unpartitioned(context)
    yield from _partitioned(context)


def _unpartitioned(context: Context) -> Iterator[Figure]:
    lake, spark = context.lake, context.spark
    plain = context.folder / "plain-append"
    ours = lake.create_table("bench.append_ours", FLAT_DDL)
    sides: dict[str, Callable[[], object]] = {
        "ours": lambda: ours.append(flat(spark, context.rows)),
        "parquet": lambda: _plain(lambda w: w, context, str(plain)),
    }
    if context.has_java:
        lake.create_table("bench.append_java", FLAT_DDL)
        sides["java"] = lambda: flat(spark, context.rows).writeTo("java.bench.append_java").append()
    took = interleaved(sides, rounds=ROUNDS)
    title = "append 10M rows" + context.suffix
    yield compare(title, "plain Parquet", took["ours"], took["parquet"], Bar(at_most=1.15))
    if context.has_java:
        yield compare(title, "Java runtime", took["ours"], took["java"], Bar(at_most=1.0))
        lake.purge_table("bench.append_java")
    lake.purge_table("bench.append_ours")
    shutil.rmtree(plain, ignore_errors=True)


def _partitioned(context: Context) -> Iterator[Figure]:
    lake, spark = context.lake, context.spark
    plain = context.folder / "plain-partitioned"
    rows = lambda: flat(spark, context.rows).selectExpr("*", "int(i % 50) as p")  # noqa: E731
    ddl = FLAT_DDL + ", p int"
    ours = lake.create_table("bench.parts_ours", ddl, partition_by=["p"])
    sides: dict[str, Callable[[], object]] = {
        "ours": lambda: ours.append(rows()),
        "parquet": lambda: (
            rows()
            .write.mode("overwrite")
            .option("compression", "zstd")
            .partitionBy("p")
            .parquet(str(plain))
        ),
    }
    if context.has_java:
        lake.create_table("bench.parts_java", ddl, partition_by=["p"])
        sides["java"] = lambda: rows().writeTo("java.bench.parts_java").append()
    took = interleaved(sides, rounds=ROUNDS)
    title = "append 10M rows, 50 partitions" + context.suffix
    yield compare(title, "partitionBy", took["ours"], took["parquet"], Bar(at_most=1.15))
    if context.has_java:
        yield compare(title, "Java runtime", took["ours"], took["java"], Bar(at_most=0.8))
        lake.purge_table("bench.parts_java")
    lake.purge_table("bench.parts_ours")
    shutil.rmtree(plain, ignore_errors=True)


def _plain(_: object, context: Context, folder: str) -> None:
    writer = flat(context.spark, context.rows).write.mode("overwrite")
    writer.option("compression", "zstd").parquet(folder)
