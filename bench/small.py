"""What a small job feels: a warm append of 1 000 rows, a warm read of 10 small files."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator

from bench.context import Context
from bench.figures import Bar, Figure, compare, interleaved, report
from bench.rows import FLAT_DDL, flat

ROUNDS = 25


def run(context: Context) -> Iterator[Figure]:
    """Against the Java runtime, with plain Parquet beside it."""
    lake, spark = context.lake, context.spark
    plain = context.folder / "plain-small"
    ours = lake.create_table("bench.small_ours", FLAT_DDL)
    rows = lambda: flat(spark, 1000).coalesce(1)  # noqa: E731
    sides: dict[str, Callable[[], object]] = {
        "ours": lambda: ours.append(rows()),
        "parquet": lambda: rows().write.mode("append").parquet(str(plain)),
    }
    if context.has_java:
        lake.create_table("bench.small_java", FLAT_DDL)
        sides["java"] = lambda: rows().writeTo("java.bench.small_java").append()
    took = interleaved(sides, rounds=ROUNDS, warm=5)
    title = "warm append of 1 000 rows" + context.suffix
    yield report(title, took["ours"], unit="s", against="plain Parquet", theirs=took["parquet"])
    if context.has_java:
        yield compare(title, "Java runtime", took["ours"], took["java"], Bar(at_most=1.0))
        lake.purge_table("bench.small_java")
    lake.purge_table("bench.small_ours")

    shutil.rmtree(plain, ignore_errors=True)
    table = lake.create_table("bench.small_read", FLAT_DDL)
    for _ in range(10):
        table.append(rows())
    paths = [row.file_path for row in table.files().select("file_path").collect()]
    sides = {
        "ours": lambda: lake.load_table("bench.small_read").to_df().collect(),
        "parquet": lambda: spark.read.parquet(*paths).collect(),
    }
    if context.has_java:
        sides["java"] = lambda: context.java("bench.small_read").collect()
    took = interleaved(sides, rounds=ROUNDS, warm=5)
    title = "warm read of 10 small files" + context.suffix
    yield report(title, took["ours"], unit="s", against="plain Parquet", theirs=took["parquet"])
    if context.has_java:
        yield compare(title, "Java runtime", took["ours"], took["java"], Bar(at_most=1.0))
    lake.purge_table("bench.small_read")
