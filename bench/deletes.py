"""Reading under position deletes and deletion vectors: 5 % of 10 million rows, scattered."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import frazil
from bench.context import Context, run_all
from bench.deletes_data import delete_by_vectors, delete_positions
from bench.figures import Bar, Figure, compare, interleaved
from bench.rows import FLAT_DDL, NESTED_DDL, flat, nested

SHARE = 0.05
COMMITS = 20
ROUNDS = 7


def one_column(df: DataFrame) -> None:
    """The sum of one column."""
    run_all(df.agg(F.sum("k").alias("total")))


def run(context: Context) -> Iterator[Figure]:
    """Against a plain Parquet scan of the same files, and against the Java runtime."""
    kinds: dict[str, tuple[int, Callable[[frazil.Table], None]]] = {
        "position deletes": (2, lambda table: delete_positions(table, SHARE)),
        "deletion vectors": (3, lambda table: delete_by_vectors(table, SHARE)),
        f"{COMMITS} delete commits": (
            2,
            lambda table: delete_positions(table, SHARE, commits=COMMITS),
        ),
    }
    for name, (version, delete) in kinds.items():
        table = context.lake.create_table("bench.deleted", FLAT_DDL, format_version=version)
        table.append(flat(context.spark, context.rows))
        delete(table)
        yield from flat_figures(context, name)
        context.lake.purge_table("bench.deleted")

    table = context.lake.create_table("bench.deleted", NESTED_DDL)
    table.append(nested(context.spark, context.rows // 4))
    delete_positions(table, SHARE)
    yield from nested_figures(context)
    context.lake.purge_table("bench.deleted")


def flat_figures(
    context: Context, kind: str, *, table: str = "bench.deleted", rounds: int = ROUNDS
) -> Iterator[Figure]:
    """All columns and the sum of one."""
    queries: dict[str, tuple[Callable[[DataFrame], None], Bar, Bar]] = {
        "all columns": (run_all, Bar(at_most=1.25), Bar(at_most=1.0)),
        "sum of one column": (one_column, Bar(), Bar(at_most=1.4)),
    }
    for what, (query, plain_bar, java_bar) in queries.items():
        took = interleaved(_sides(context, table, query), rounds=rounds, warm=2)
        title = f"{kind}, {what}{context.suffix}"
        yield compare(title, "plain Parquet", took["ours"], took["parquet"], plain_bar)
        if context.has_java:
            yield compare(title, "Java runtime", took["ours"], took["java"], java_bar)


def nested_figures(
    context: Context, *, table: str = "bench.deleted", rounds: int = ROUNDS
) -> Iterator[Figure]:
    """A struct, a list and a map."""
    took = interleaved(_sides(context, table, run_all), rounds=rounds, warm=2)
    title = f"position deletes, nested columns{context.suffix}"
    yield compare(title, "plain Parquet", took["ours"], took["parquet"], Bar())
    if context.has_java:
        yield compare(title, "Java runtime", took["ours"], took["java"], Bar(at_most=0.9))


def _sides(
    context: Context, name: str, query: Callable[[DataFrame], None]
) -> dict[str, Callable[[], object]]:
    table = context.lake.load_table(name)
    files = table.inspect.dataframes.data_files().select("file_path")
    paths = [row.file_path for row in files.collect()]
    sides: dict[str, Callable[[], object]] = {
        "ours": lambda: query(context.lake.load_table(name).to_df()),
        "parquet": lambda: query(context.spark.read.parquet(*paths)),
    }
    if context.has_java:
        sides["java"] = lambda: query(context.java(name))
    return sides
