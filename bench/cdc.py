"""Changes streamed into a table of 50 partitions, beside Java's MERGE in `foreachBatch`."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery

import frazil
from bench.context import Context, run_all
from bench.figures import Bar, Figure, compare, limit, report
from bench.rows import FLAT_DDL, flat

PARTITIONS = 50
READS = 3
SHARE = 10
"""One row in so many is changed by all batches together."""

FEW_BATCHES, MANY_BATCHES, MANY_ROWS = 20, 100, 60_000_000
"""Tables of so many rows get the many batches."""

ROWS_DDL = f"{FLAT_DDL}, p int"
CHANGES_DDL = f"{ROWS_DDL}, op string, seq bigint"


@dataclass(frozen=True, slots=True)
class Changes:
    """Files of changes, one a batch.

    Attributes:
        streamed: the folder of those that both sides stream.
        later: those that are applied afterwards, each followed by a read.
    """

    streamed: Path
    later: tuple[Path, ...]


def _batches(context: Context) -> int:
    return MANY_BATCHES if context.rows >= MANY_ROWS else FEW_BATCHES


def run(context: Context) -> Iterator[Figure]:
    """All batches, the last beside the first, what appends cost, and reads of what was written."""
    made = _changes(context)
    _warm(context, made.streamed)
    sides: dict[str, list[float]] = {}
    tables: dict[str, frazil.Table] = {}
    for side in ("ours", "java") if context.has_java else ("ours",):
        tables[side] = _table(context, f"bench.cdc_{side}")
        start = _ours if side == "ours" else _java
        sides[side] = _drained(start(context, tables[side], _stream(context, made.streamed)))
    changes = context.rows // SHARE
    name = f"{changes:,} changes in {_batches(context)} batches{context.suffix}"
    ours = sides["ours"]
    if context.has_java:
        java = sides["java"]
        yield compare(name, "Java MERGE", sum(ours), sum(java), Bar(at_least=6.0))
        yield report(f"Java's last batch{context.suffix}", java[-1] / java[0], unit="x its first")
        yield from _checked(tables, context)
    else:
        yield report(name, sum(ours), unit="s")
    yield limit(f"the last batch{context.suffix}", ours[-1] / ours[0], 1.2, unit="x the first")
    yield from _reads(context, tables["ours"], made.later)
    for table in tables.values():
        context.lake.purge_table(table.name)
    yield from _appends(context, made.streamed)


def _warm(context: Context, folder: Path) -> None:
    """Both sides once, on a small table: what a session pays only once is nobody's batch."""
    small = Context(context.spark, context.lake, context.folder, context.rows // 100)
    for side in (_ours, _java) if context.has_java else (_ours,):
        table = _table(small, "bench.cdc_warm")
        _drained(side(context, table, _stream(context, folder).where("id % 100 = 1")))
        context.lake.purge_table(table.name)


def _changes(context: Context) -> Changes:
    """Updates, one insert in ten, one delete in ten."""
    streamed = context.folder / f"cdc-changes-{uuid.uuid4().hex}"
    streamed.mkdir()
    count = _batches(context)
    return Changes(
        streamed,
        tuple(
            _batch(context, number, streamed if number < count else context.folder)
            for number in range(count + READS)
        )[count:],
    )


def _batch(context: Context, number: int, folder: Path) -> Path:
    rows = context.rows
    each = rows // SHARE // _batches(context)
    made = (
        context.spark.range(each)
        .selectExpr(
            f"case when id % 10 = 0 then {rows} + {number * each} + id "
            f"else pmod(xxhash64(id, {number}), {rows}) end as id",
            "case when id % 10 = 1 then 'd' else 'u' end as op",
            f"{number * each} + id as seq",
        )
        .selectExpr(
            "id",
            "id + 1 as k",
            "-1.5d as d",
            f"'changed-{number}' as s",
            f"{number} as i",
            "timestamp_micros(1704067200000000 + id) as ts",
            f"int(id % {PARTITIONS}) as p",
            "op",
            "seq",
        )
    )
    part = context.folder / f"cdc-batch-{uuid.uuid4().hex}"
    made.coalesce(1).write.parquet(str(part))
    [written] = part.glob("*.parquet")
    return written.rename(folder / f"{number:04}.parquet")


def _table(context: Context, name: str) -> frazil.Table:
    table = context.lake.create_table(
        name,
        ROWS_DDL,
        partition_by=["p"],
        format_version=2,
        properties={"write.merge.mode": "merge-on-read"},
    )
    rows = flat(context.spark, context.rows).selectExpr("*", f"int(id % {PARTITIONS}) as p")
    table.append(rows)
    return table


def _stream(context: Context, folder: Path) -> DataFrame:
    reader = context.spark.readStream.schema(CHANGES_DDL).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(folder), pathGlobFilter="*.parquet")


def _checkpoint(context: Context) -> str:
    return str(context.folder / "checkpoints" / uuid.uuid4().hex)


def _ours(context: Context, table: frazil.Table, stream: DataFrame) -> StreamingQuery:
    return table.upsert_stream(
        stream,
        keys="id",
        op="op",
        order_by="seq",
        mode="equality-deletes",
        checkpoint=_checkpoint(context),
        trigger={"availableNow": True},
    )


def _java(context: Context, table: frazil.Table, stream: DataFrame) -> StreamingQuery:
    name = f"java.{table.name}"

    def merge(df: DataFrame, number: int) -> None:
        session = df.sparkSession
        last = df.selectExpr("*", "row_number() over (partition by id order by seq desc) as n")
        last.where("n = 1").drop("n").createOrReplaceTempView("cdc_changes")
        columns = [part.split()[0] for part in ROWS_DDL.split(", ")]
        values = ", ".join(f"s.{each}" for each in columns)
        assignments = ", ".join(f"t.{each} = s.{each}" for each in columns)
        session.sql(
            f"MERGE INTO {name} t USING cdc_changes s ON t.id = s.id "
            "WHEN MATCHED AND s.op = 'd' THEN DELETE "
            f"WHEN MATCHED THEN UPDATE SET {assignments} "
            f"WHEN NOT MATCHED AND s.op <> 'd' THEN INSERT ({', '.join(columns)}) "
            f"VALUES ({values})"
        )

    writer = stream.writeStream.foreachBatch(merge)
    writer = writer.option("checkpointLocation", _checkpoint(context))
    return writer.trigger(availableNow=True).start()


def _drained(query: StreamingQuery) -> list[float]:
    """Seconds of each batch, in their order."""
    query.awaitTermination()
    found: dict[int, Any] = {each["batchId"]: each for each in query.recentProgress}
    return [found[n]["durationMs"]["triggerExecution"] / 1000 for n in sorted(found)]


def _checked(tables: dict[str, frazil.Table], context: Context) -> Iterator[Figure]:
    """Both tables must hold the same rows."""
    sums = [
        table.refresh().scan().to_df().selectExpr("count(*)", "sum(hash(*))").collect()[0]
        for table in tables.values()
    ]
    if len(set(sums)) != 1:
        raise AssertionError(f"the two sides differ: {sums}")
    yield from ()


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _reads(context: Context, table: frazil.Table, batches: Sequence[Path]) -> Iterator[Figure]:
    """After each of some more batches both engines read the table."""
    ours, java = [], []
    for batch in batches:
        changes = context.spark.read.parquet(str(batch))
        table.apply_changes(changes, keys="id", op="op", order_by="seq", mode="equality-deletes")
        ours.append(_timed(lambda: run_all(table.scan().to_df())))
        if context.has_java:
            java.append(_timed(lambda: run_all(context.java(table.name))))
    name = f"the read after a batch{context.suffix}"
    if java:
        yield compare(name, "Java read", max(ours), max(java), Bar(at_most=0.5))
    else:
        yield report(name, max(ours), unit="s")


def _appends(context: Context, folder: Path) -> Iterator[Figure]:
    """What a batch of an append stream takes beside the same append to plain Parquet."""
    table = context.lake.create_table("bench.cdc_appended", CHANGES_DDL, format_version=2)
    query = table.append_stream(
        _stream(context, folder),
        checkpoint=_checkpoint(context),
        trigger={"availableNow": True},
    )
    ours = _drained(query)
    plain = (
        _stream(context, folder)
        .writeStream.format("parquet")
        .option("path", str(context.folder / f"plain-{uuid.uuid4().hex}"))
        .option("checkpointLocation", _checkpoint(context))
        .trigger(availableNow=True)
        .start()
    )
    theirs = _drained(plain)
    over = sorted(ours)[len(ours) // 2] - sorted(theirs)[len(theirs) // 2]
    yield limit(f"append_stream over plain Parquet{context.suffix}", over, 0.3)
    context.lake.purge_table(table.name)
