"""Rows: read under deletes (row 0), changes of many snapshots (4), written to partitions (11)."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import frazil
from bench.context import Context, run_all
from bench.deletes_data import delete_by_vectors, delete_positions
from bench.figures import Bar, Figure, compare, limit
from bench.slopes_cost import Slope, Step, cpu_of
from frazil.format.manifests import DataFile
from frazil.planning.plan import plan
from frazil.planning.removal import data_files

DELETED = 0.05
DELETE_COMMITS = 20
SIZES = (10_000_000, 60_000_000)
LARGEST = 200_000_000

_KINDS: dict[str, tuple[int, Callable[[frazil.Table], None]]] = {
    "positions": (2, lambda table: delete_positions(table, DELETED)),
    "vectors": (3, lambda table: delete_by_vectors(table, DELETED)),
    "20 commits": (2, lambda table: delete_positions(table, DELETED, commits=DELETE_COMMITS)),
}
_QUERIES: dict[str, tuple[float, Callable[[frazil.Table | str, Context], DataFrame]]] = {
    "one column": (1.0, lambda table, context: _rows(table, context).agg(F.sum("v"))),
    "all columns": (0.9, lambda table, context: _rows(table, context)),
}


def deleted_rows(context: Context) -> Iterator[Figure]:
    """Row 0: rows of two columns of which 5 % are deleted, by position, vector, many commits."""
    slopes = {
        (kind, query): Slope(
            context,
            f"read {{}} rows, {kind}, {query}",
            Bar(at_most=at_most),
            exponent=1.1,
            least=SIZES[0],
        )
        for kind in _KINDS
        for query, (at_most, _) in _QUERIES.items()
    }
    for rows in (*SIZES, LARGEST) if context.large else SIZES:
        files = _written_rows(context, rows)
        for kind, (version, delete) in _KINDS.items():
            name = f"bench.deleted_{kind.replace(' ', '_')}_{rows}"
            table = context.lake.create_table(name, "id bigint, v bigint", format_version=version)
            table.files.fast_append(files)
            delete(table)
            yield from _reads(context, slopes, kind, name, rows)
            context.lake.drop_table(name)
        context.lake.purge_table(f"bench.written_{rows}")
    for slope in slopes.values():
        yield slope.steepness()


def _reads(
    context: Context, slopes: dict[tuple[str, str], Slope], kind: str, name: str, rows: int
) -> Iterator[Figure]:
    # Where a read takes seconds one is enough beside that which is not counted.
    rounds = 3 if rows <= SIZES[0] else 2
    context.lake.clear_caches()
    table = context.lake.load_table(name)
    first = cpu_of(context, lambda: run_all(_QUERIES["one column"][1](table, context)))
    theirs = 0.0
    for query, (_, rows_of) in _QUERIES.items():

        def ours(rows_of: Callable[..., DataFrame] = rows_of) -> None:
            run_all(rows_of(context.lake.load_table(name), context))

        def other(rows_of: Callable[..., DataFrame] = rows_of) -> None:
            run_all(rows_of(name, context))

        if query == "one column" and context.has_java:
            other()
            theirs = cpu_of(context, other)
        yield from slopes[kind, query].measure(rows, ours, other, rounds=rounds)
    if theirs:
        bar = Bar(at_most=1) if rows >= SIZES[0] else Bar()
        yield compare(f"first read of {rows:,} rows, {kind}", "Java runtime", first, theirs, bar)


def _rows(table: frazil.Table | str, context: Context) -> DataFrame:
    return context.java(table) if isinstance(table, str) else table.to_df()


def _written_rows(context: Context, rows: int) -> list[DataFile]:
    """Data files of so many rows, which tables of every kind share."""
    table = context.lake.create_table(f"bench.written_{rows}", "id bigint, v bigint")
    table.append(context.spark.range(rows).selectExpr("id", "id % 1000 as v"))
    found = plan(table.metadata, table.current_snapshot, table.io)
    return [
        replace(file, first_row_id=None)
        for file in data_files(table.metadata, found, found.files["ordinal"].to_list())
    ]


def changes_of_snapshots(context: Context) -> Iterator[Figure]:
    """Row 4: plan and count the changes of many snapshots; one in twenty removes a file."""
    slope = Slope(
        context, "count the changes of {} snapshots", Bar(at_most=0.8), exponent=1.1, least=1_000
    )
    table = context.lake.create_table("bench.changed", "id bigint")
    table.append(context.spark.range(100).coalesce(1))
    found = plan(table.metadata, table.current_snapshot, table.io)
    (file,) = data_files(table.metadata, found, [0])
    source = file.file_path.removeprefix("file://")
    made, earlier = 1, file
    for snapshots in (10, 100, 1_000):
        while made < snapshots:
            copy = replace(file, file_path=f"{table.location}/data/copy-{made}.parquet")
            shutil.copy(source, copy.file_path.removeprefix("file://"))
            if made % 20:
                table.files.append([copy])
            else:
                table.files.overwrite([copy], removed_paths=[earlier.file_path])
            made, earlier = made + 1, copy

        def ours() -> None:
            context.lake.clear_caches()
            context.lake.load_table("bench.changed").changes().count()

        def theirs() -> None:
            context.java("bench.changed.changes").count()

        yield from slope.measure(snapshots, ours, theirs, rounds=2)
    yield slope.steepness()
    context.lake.purge_table("bench.changed")


def writes_to_partitions(context: Context) -> Iterator[Figure]:
    """Row 11: a million rows into few and into many partitions."""
    rows = 1_000_000
    few = Slope(context, f"{rows:,} rows into {{}} partitions", Bar(at_most=1.1))
    for partitions in (10, 1_000, 10_000):
        frame = context.spark.range(rows).selectExpr("id", f"cast(id % {partitions} as int) as p")
        sides: dict[str, Step] = {}
        for side in ("ours", "theirs"):
            name = f"bench.into_{partitions}_{side}"
            table = context.lake.create_table(name, "id bigint, p int", partition_by=["p"])
            if side == "ours":
                into_many = table
                sides[side] = lambda table=table, frame=frame: table.append(frame)
            else:
                target = context.java_name(name)
                sides[side] = lambda target=target, frame=frame: frame.writeTo(target).append()
        # With its writers of 10 000 files the Java runtime runs out of memory.
        theirs = sides["theirs"] if partitions < 10_000 else None
        few.bar = Bar(at_most=1.1) if partitions == 10 else Bar()
        rounds = 2 if partitions == 10 else 1
        yield from few.measure(partitions, sides["ours"], theirs, rounds=rounds)
    many = f"{rows:,} rows into 10,000 partitions"
    yield limit(f"{many}, the first append", few.ours[10_000], 60)
    again = cpu_of(context, lambda: into_many.append(frame))
    yield limit(f"{many}, the append after it", again, 60)
    for partitions in (10, 1_000, 10_000):
        for side in ("ours", "theirs"):
            context.lake.purge_table(f"bench.into_{partitions}_{side}")
