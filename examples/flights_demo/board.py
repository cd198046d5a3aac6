"""A board of flights, which a stream of their changes keeps up to date."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from rich.progress import BarColumn, Progress, TextColumn

import frazil
from flights_demo.show import console

BLIZZARD = "scheduled >= '2013-02-04' and scheduled < '2013-02-11'"
"""The week of the blizzard Nemo: 929 of 6,104 flights were cancelled."""

KEYS = ["origin", "carrier", "flight", "scheduled"]
COLUMNS = [*KEYS, "dest", "status", "dep_delay", "arr_delay"]
STATUSES = ("announced", "delayed", "departed", "landed")
HOURS_OF_A_FILE = 6
FILES_OF_A_BATCH = 2


def changes_of(flights: DataFrame) -> DataFrame:
    """What happened to each flight, and when: one row for each change of the board.

    A flight is announced a day before, late at its scheduled time, cancelled then, departs, and
    lands after its time in the air. The source has no taxi times.
    """
    none = F.lit(None).cast("double")
    late = F.col("dep_delay") >= 15
    happened = {
        "announced": ("i", "scheduled - interval 1 day", None, none, none),
        "delayed": ("u", "scheduled", late, none, none),
        "departed": ("u", "departed_at", F.col("dep_delay").isNotNull(), F.col("dep_delay"), none),
        "landed": (
            "u",
            "departed_at + make_dt_interval(0, 0, cast(air_time as int))",
            F.col("air_time").isNotNull(),
            F.col("dep_delay"),
            F.col("arr_delay"),
        ),
        "cancelled": ("d", "scheduled", F.col("dep_delay").isNull(), none, none),
    }
    departed_at = "scheduled + make_dt_interval(0, 0, cast(dep_delay as int))"
    rows = flights.withColumn("departed_at", F.expr(departed_at))
    changes = [
        rows.where(F.lit(True) if holds is None else holds).select(
            *KEYS,
            "dest",
            F.lit(status).alias("status"),
            dep_delay.alias("dep_delay"),
            arr_delay.alias("arr_delay"),
            F.lit(op).alias("op"),
            F.expr(at).alias("at"),
        )
        for status, (op, at, holds, dep_delay, arr_delay) in happened.items()
    ]
    every, *others = changes
    for each in others:
        every = every.unionByName(each)
    return every


def board_in_the_end(flights: DataFrame) -> DataFrame:
    """What the board has to show after the week, straight from the flights."""
    status = F.when(F.col("air_time").isNotNull(), "landed").otherwise("departed")
    landed = F.col("air_time").isNotNull()
    return flights.where("dep_delay is not null").select(
        *KEYS,
        "dest",
        status.alias("status"),
        "dep_delay",
        F.when(landed, F.col("arr_delay")).alias("arr_delay"),
    )


@dataclass(slots=True)
class Replay:
    """Files of changes that arrive in a folder one after the other, in the order of time.

    Attributes:
        files: by the time when each begins, the earliest first.
        arrived: the folder that the stream reads.
        changes: how many there are in all files.
        count: how many files have arrived.
        time: the flights' own, up to which changes have arrived.
    """

    files: list[tuple[datetime, Path]]
    arrived: Path
    changes: int
    count: int = 0
    time: datetime | None = None

    @classmethod
    def of(cls, changes: DataFrame, folder: Path) -> Replay:
        """Write the changes down, a file for each six hours."""
        hours = F.unix_timestamp(F.col("at").cast("timestamp")) / 3600
        slots = changes.withColumn("slot", F.floor(hours / HOURS_OF_A_FILE))
        slots.coalesce(1).write.partitionBy("slot").parquet(str(folder / "waiting"))
        found = []
        for file in (folder / "waiting").glob("slot=*/*.parquet"):
            slot = int(file.parent.name.removeprefix("slot="))
            began = datetime.fromtimestamp(slot * HOURS_OF_A_FILE * 3600, UTC)
            found.append((began, file))
        arrived = folder / "arrived"
        arrived.mkdir()
        return cls(sorted(found), arrived, changes.count())

    @property
    def is_over(self) -> bool:
        """Whether every file has arrived."""
        return self.count == len(self.files)

    def go_on(self, count: int) -> None:
        """Let files arrive, each with the flights' own time, until there are so many."""
        while not self.is_over and self.count < count:
            self.time, file = self.files[self.count]
            # Spark takes files in the order of their times.
            os.utime(file, (self.time.timestamp(), self.time.timestamp()))
            shutil.move(file, self.arrived / f"{self.count:04}.parquet")
            self.count += 1


@dataclass(frozen=True, slots=True)
class Look:
    """What a query saw beside the stream: flights by status, at one snapshot."""

    snapshot_id: int
    flights: dict[str, int]

    def __str__(self) -> str:
        return "  ".join(f"{name} {self.flights.get(name, 0):,}" for name in STATUSES)


def make_board(lake: frazil.Lake) -> frazil.Table:
    """An empty board; a row is a flight."""
    return lake.create_table(
        "nyc.board",
        "origin string not null, carrier string not null, flight int not null, "
        "scheduled timestamp_ntz not null, dest string, status string, "
        "dep_delay double, arr_delay double",
        partition_by=["origin"],
    )


def start_stream(
    spark: SparkSession, board: frazil.Table, changes: DataFrame, folder: Path
) -> StreamingQuery:
    """Upsert the files that arrive in a folder, two of them in each micro-batch."""
    events = (
        spark.readStream.schema(changes.schema)
        .option("maxFilesPerTrigger", FILES_OF_A_BATCH)
        .parquet(str(folder / "arrived"))
    )
    return board.upsert_stream(
        events,
        keys=KEYS,
        op="op",
        order_by="at",
        mode="equality-deletes",
        checkpoint=folder / "checkpoint",
    )


def follow(query: StreamingQuery, board: frazil.Table, replay: Replay) -> list[Look]:
    """Let the files arrive while the stream runs, and ask the table again and again beside it."""
    looks: list[Look] = []
    told = None
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=10),
        TextColumn("{task.fields[seen]}"),
    )
    with Progress(*columns, console=console, transient=True) as bars:
        task = bars.add_task("", total=len(replay.files), seen="the stream begins")
        while query.isActive and not replay.is_over:
            # The next batch waits while one is written.
            replay.go_on(FILES_OF_A_BATCH * (len(board.metadata.snapshots) + 2))
            look = _look(board)
            if look is None:
                time.sleep(0.2)
                continue
            looks.append(look)
            bars.update(
                task, completed=replay.count, description=f"{replay.time:%a %d %b %H:%M}", seen=look
            )
            if told != replay.time.date():
                told = replay.time.date()
                console.print(f"  {replay.time:%a %d %b %H:%M}  {look}")
        query.processAllAvailable()
    query.stop()
    board.refresh()
    return looks


def is_repeatable(board: frazil.Table, looks: list[Look]) -> bool:
    """Whether three of the looks, asked again by their snapshots, give what they gave."""
    some = {each.snapshot_id: each for each in (looks[0], looks[len(looks) // 2], looks[-1])}
    return all(_counted(board, id_) == look.flights for id_, look in some.items())


def differences(board: frazil.Table, expected: DataFrame) -> int:
    """The number of rows that the board has and should not, or should have and has not."""
    found, wanted = board.to_df().select(*COLUMNS), expected.select(*COLUMNS)
    return found.exceptAll(wanted).count() + wanted.exceptAll(found).count()


def _look(board: frazil.Table) -> Look | None:
    snapshot = board.refresh().current_snapshot
    if snapshot is None:
        return None
    return Look(snapshot.snapshot_id, _counted(board, snapshot.snapshot_id))


def _counted(board: frazil.Table, snapshot_id: int) -> dict[str, int]:
    rows = board.scan(snapshot_id=snapshot_id, columns=["status"]).to_df()
    return {row["status"]: row["count"] for row in rows.groupBy("status").count().collect()}
