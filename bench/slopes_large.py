"""Tables of millions of files (row 12): plans, counts, sums and appends, of metadata alone.

Those of Frazil come first, so that what the Java runtime keeps is in none of their figures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import frazil
from bench.context import Context
from bench.figures import Bar, Figure, compare, limit, report
from bench.slopes_cost import DRIVER_MB, Cost, Slope, Step, costs, give_memory_back
from bench.slopes_data import FILE_SIZE, data_file
from bench.slopes_java import is_out_of_memory, java_merging_append, java_plan
from bench.slopes_large_data import (
    MADE,
    MANY_ROWS,
    PARTITIONS,
    files_of_many_rows,
    rows_of_files,
    write_large_table,
)

MILLION = 1_000_000
SIZES = (MILLION, 10 * MILLION)
_PARTITION = 500
_IDS = ("id", 100, 120)
_NUMBERS = count()


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One thing that is done to a table of millions of files.

    Attributes:
        name: of its figures; `{}` stands for the number of files.
        step: what is done to a table that is in nobody's cache.
        java: the same by the Java runtime, of the table's name.
        megabytes: the most that may be taken.
        answer: what both must find in so many files; None where nothing is compared.
        seconds: the longest that it may take; None where ten times as many files have a bar.
        times: the most that ten times as many files may take; None where `exponent` says it.
        rounds: 1 is enough where a step takes seconds.
        appends: whether it changes its table, so that the Java runtime does it once.
    """

    name: str
    step: Callable[[frazil.Table], object]
    java: Callable[[Context, str], Step]
    megabytes: float
    answer: Callable[[int], object] | None = None
    seconds: float | None = None
    times: float | None = None
    exponent: float | None = None
    rounds: int = 1
    appends: bool = False

    def check(self, found: object, files: int) -> None:
        """Compare what was found in so many files."""
        if self.answer is not None and found != self.answer(files):
            raise ValueError(f"{self.name.format(files)}: {found}, not {self.answer(files)}")


def _of_rows(
    name: str,
    table: str,
    ask: Callable[[DataFrame], object],
    answer: Callable[[int], object],
    *,
    times: float,
    megabytes: float,
    rounds: int = 1,
) -> Kind:
    """What is asked of the rows of a metadata table."""
    return Kind(
        name=name,
        step=lambda of: ask(getattr(of.inspect.dataframes, table)()),
        java=lambda context, of: lambda: ask(context.java(f"{of}.{table}")),
        answer=answer,
        times=times,
        megabytes=megabytes,
        rounds=rounds,
    )


def _sums(rows: DataFrame) -> tuple[int, ...]:
    return tuple(rows.agg(F.sum("record_count"), F.sum("file_size_in_bytes")).collect()[0])


KINDS: tuple[Kind, ...] = (
    Kind(
        name="plan one of 1,000 partitions, {} files",
        step=lambda table: table.scan(f"part = {_PARTITION}").plan().file_count,
        java=lambda context, name: java_plan(
            context, name, between=("part", _PARTITION, _PARTITION)
        ),
        answer=lambda files: files // PARTITIONS,
        seconds=3,
        megabytes=1_000,
        rounds=3,
    ),
    Kind(
        name="count the rows of {} files",
        step=lambda table: table.count(),
        java=lambda context, name: lambda: context.java(name).count(),
        answer=lambda files: rows_of_files(files),
        seconds=1,
        megabytes=1_000,
        exponent=1.1,
        rounds=3,
    ),
    Kind(
        name="plan all of {} files",
        step=lambda table: table.scan().plan().file_count,
        java=lambda context, name: java_plan(context, name),
        answer=lambda files: files,
        times=12,
        megabytes=2_048,
    ),
    Kind(
        name="plan by bounds of a column, {} files",
        step=lambda table: table.scan(f"{_IDS[0]} between {_IDS[1]} and {_IDS[2]}").plan(),
        java=lambda context, name: java_plan(context, name, between=_IDS),
        times=12,
        megabytes=2_048,
    ),
    *(
        _of_rows(
            f"{table}().count() of {{}} files",
            table,
            DataFrame.count,
            lambda files: files,
            times=15,
            megabytes=1_024,
            rounds=2,
        )
        for table in ("files", "entries")
    ),
    _of_rows(
        "sums of files() of {} files",
        "files",
        _sums,
        lambda files: (rows_of_files(files), files * FILE_SIZE),
        times=12,
        megabytes=2_048,
    ),
    _of_rows(
        "files() of many rows of {} files",
        "files",
        lambda rows: rows.where(f"record_count > {MANY_ROWS}").count(),
        lambda files: files_of_many_rows(files),
        times=12,
        megabytes=2_048,
    ),
    _of_rows(
        "files() of one partition of {} files",
        "files",
        lambda rows: rows.where(f"partition.part = {_PARTITION}").count(),
        lambda files: files // PARTITIONS,
        times=12,
        megabytes=2_048,
    ),
    _of_rows(
        "partitions() of {} files",
        "partitions",
        DataFrame.count,
        lambda files: PARTITIONS,
        times=12,
        megabytes=2_048,
    ),
    Kind(
        name="an append to {} files",
        step=lambda table: table.files.append([data_file(table.location, next(_NUMBERS))]),
        # Its first append merges all manifests that are small, ours a hundred of them at most.
        java=lambda context, name: java_merging_append(
            context, name, partition=f"part={_PARTITION}"
        ),
        seconds=1.5,
        megabytes=1_000,
        exponent=0.2,
        rounds=3,
        appends=True,
    ),
)


def millions_of_files(context: Context) -> Iterator[Figure]:
    """Row 12: manifests of 5 000 files, in 1 000 partitions that few manifests hold each."""
    made = {
        files: write_large_table(
            context.folder / f"slopes-large-{files}", files=files, made=min(MADE, files)
        )
        for files in SIZES
    }
    slopes = {kind.name: Slope(context, kind.name, exponent=kind.exponent) for kind in KINDS}
    ours: dict[tuple[str, int], Cost] = {}
    for files in SIZES:
        for kind, took in _our_costs(context, files, made[files]):
            ours[kind.name, files] = took
            yield from list(slopes[kind.name].told(files, {"frazil": took}))[:1]
            yield from _limits(kind, files, took)
    for kind in KINDS:
        slope = slopes[kind.name]
        if kind.times is None:
            yield slope.steepness()
        else:
            grew = slope.ours[SIZES[1]] / slope.ours[SIZES[0]]
            yield limit(kind.name.format("ten times as many"), grew, kind.times, unit="times")
    for files in SIZES if context.has_java else ():
        for kind, java in _java_costs(context, files, made[files]):
            yield from _beside(kind.name.format(f"{files:,}"), ours[kind.name, files], java)


def _limits(kind: Kind, files: int, took: Cost) -> Iterator[Figure]:
    """What a step may take of such a table."""
    name = kind.name.format(f"{files:,}")
    if kind.seconds is not None:
        yield limit(f"{name}, seconds", took.cpu, kind.seconds)
    yield limit(f"{name}, MB", took.peak, kind.megabytes, unit="MB")
    yield limit(f"{name}, resident", took.resident, DRIVER_MB, unit="MB")
    yield report(f"{name}, Python of executors", took.workers, unit="MB")


def _beside(name: str, ours: Cost, java: Cost | None) -> Iterator[Figure]:
    """A step beside what the Java runtime took for it; None where its memory was not enough."""
    if java is None:
        yield report(f"{name}, not enough memory for", ours.cpu, unit="s", against="Java")
        return
    yield compare(name, "Java runtime", ours.cpu, java.cpu, Bar())
    memory = f"{name}, memory"
    yield report(memory, ours.peak, unit="MB", against="Java runtime", theirs=java.peak)


def _our_costs(context: Context, files: int, made: str) -> Iterator[tuple[Kind, Cost]]:
    # A table of its own for appends: each merges another part of the manifests.
    tables = {
        "append": context.lake.register_table(f"bench.appended_{files}", made),
        "read": frazil.open_table(made, spark=context.spark),
    }
    for kind in KINDS:
        table = tables["append" if kind.appends else "read"]

        def cold(kind: Kind = kind, table: frazil.Table = table) -> None:
            table.io.caches.clear()
            kind.check(kind.step(table), files)

        table.io.caches.clear()
        give_memory_back()
        yield kind, costs(context, {"frazil": cold}, rounds=kind.rounds)["frazil"]


def _java_costs(context: Context, files: int, made: str) -> Iterator[tuple[Kind, Cost | None]]:
    names = {"append": f"bench.java_appended_{files}", "read": f"bench.java_read_{files}"}
    for name in names.values():
        context.lake.register_table(name, made)
    for kind in KINDS:
        step = kind.java(context, names["append" if kind.appends else "read"])

        def checked(kind: Kind = kind, step: Step = step) -> None:
            kind.check(step(), files)

        rounds = 1 if kind.appends else kind.rounds
        try:
            yield kind, costs(context, {"java": checked}, rounds=rounds)["java"]
        except Py4JJavaError as error:
            if not is_out_of_memory(error):
                raise
            yield kind, None
