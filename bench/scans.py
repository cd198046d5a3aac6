"""Full scan, grouped sum, selective filter, nested columns: 10 million rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from bench.context import Context, run_all
from bench.figures import Bar, Figure, compare, interleaved
from bench.rows import FLAT_DDL, NESTED_DDL, flat, nested


def full(df: DataFrame) -> None:
    """Every column of every row."""
    run_all(df)


def grouped(df: DataFrame) -> None:
    """A sum by a key of a thousand values."""
    run_all(df.groupBy("i").agg(F.sum("d").alias("total")))


def selective(df: DataFrame) -> None:
    """A filter that keeps one row in a thousand."""
    run_all(df.where("k < 1000"))


def run(context: Context) -> Iterator[Figure]:
    """Against `spark.read.parquet` on the same files, and against the Java runtime."""
    lake = context.lake
    table = lake.create_table("bench.flat", FLAT_DDL)
    table.append(flat(context.spark, context.rows))
    paths = [row.file_path for row in table.files().select("file_path").collect()]

    queries: dict[str, Callable[[DataFrame], None]] = {
        "full scan": full,
        "grouped sum": grouped,
        "selective filter": selective,
    }
    for name, query in queries.items():
        sides: dict[str, Callable[[], object]] = {
            "ours": lambda query=query: query(lake.load_table("bench.flat").to_df()),
            "parquet": lambda query=query: query(context.spark.read.parquet(*paths)),
        }
        if context.has_java:
            sides["java"] = lambda query=query: query(context.java("bench.flat"))
        took = interleaved(sides, rounds=7)
        title = name + context.suffix
        yield compare(title, "plain Parquet", took["ours"], took["parquet"], Bar(at_most=1.05))
        if context.has_java:
            yield compare(title, "Java runtime", took["ours"], took["java"], Bar(at_most=1.0))
    lake.purge_table("bench.flat")

    table = lake.create_table("bench.nested", NESTED_DDL)
    table.append(nested(context.spark, context.rows // 4))
    if context.has_java:
        took = interleaved(
            {
                "ours": lambda: full(lake.load_table("bench.nested").to_df()),
                "java": lambda: full(context.java("bench.nested")),
            },
            rounds=7,
        )
        yield compare(
            "struct, list and map columns" + context.suffix,
            "Java runtime",
            took["ours"],
            took["java"],
            Bar(at_most=0.95),
        )
    lake.purge_table("bench.nested")
