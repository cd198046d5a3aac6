"""A stream over 200 commits, drained: ours against the Java runtime's over the same table."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

from pyspark.sql import DataFrame

from bench.context import Context
from bench.figures import Bar, Figure, compare, interleaved, report
from bench.rows import FLAT_DDL, flat

COMMITS = 200
ROWS = 300
ROUNDS = 5
FILES_A_BATCH = 20
TABLE = "bench.streamed"


def run(context: Context) -> Iterator[Figure]:
    """In one batch, and in batches of 20 files; the batch query of the same rows beside it."""
    lake, spark = context.lake, context.spark
    table = lake.create_table(TABLE, FLAT_DDL)
    for _ in range(COMMITS):
        table.append(flat(spark, ROWS).coalesce(1))

    def checkpoint() -> str:
        return str(context.folder / "checkpoints" / uuid.uuid4().hex)

    def ours(**limit: int) -> None:
        place = checkpoint()
        drain(lake.read_stream(TABLE, checkpoint=place, **limit), place)

    def java(**options: str) -> None:
        reader = spark.readStream.format("iceberg").options(**options)
        drain(reader.load(f"java.{TABLE}"), checkpoint())

    per_batch = {"streaming-max-files-per-micro-batch": str(FILES_A_BATCH)}
    for title, mine, theirs in (
        (f"stream of {COMMITS} commits, one batch", {}, {}),
        (
            f"stream of {COMMITS} commits, {FILES_A_BATCH} files a batch",
            {"max_files_per_batch": FILES_A_BATCH},
            per_batch,
        ),
    ):
        sides: dict[str, Callable[[], object]] = {"ours": lambda limit=mine: ours(**limit)}
        if context.has_java:
            sides["java"] = lambda options=theirs: java(**options)
        took = interleaved(sides, rounds=ROUNDS, warm=1)
        name = title + context.suffix
        if context.has_java:
            yield compare(name, "Java runtime", took["ours"], took["java"], Bar(at_most=1.0))
        else:
            yield report(name, took["ours"], unit="s")
    lake.purge_table(TABLE)


def drain(rows: DataFrame, checkpoint: str) -> None:
    """Every row, thrown away, once."""
    query = (
        rows.writeStream.format("noop")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    read = sum(progress["numInputRows"] for progress in query.recentProgress)
    if read != COMMITS * ROWS:
        raise AssertionError(f"{read} rows instead of {COMMITS * ROWS}")
