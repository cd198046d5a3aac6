"""Operations on a store of S3: how many requests, how many wait for each other, and seconds.

The server runs in a process of its own and lets each request take 30 ms. Frazil and the Java
runtime over s3a do the same work in one session, each with a catalog in SQLite and tables of its
own; nothing of a table is in memory unless the row says *again*. Each operation is done in three
rounds, each with catalogs and a bucket of its own, and the sides begin in turns; figures are the
medians.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from pyspark.sql import SparkSession
from tests.s3_counted import CountedStore, counted_s3

from bench.context import Context
from bench.figures import REPORTED, Figure
from bench.stores_sides import (
    FLAT,
    Operation,
    Ours,
    OursByHadoop,
    Side,
    Theirs,
    TheirsByFileIO,
    make_table,
    operations,
)

REQUEST_MS = 30
BY_SPARK = 1.15
FIRST = 1.1
AGAIN = 1.0
ROUNDS = 3
NEW_PROCESS = "first append in a new process"
PARTS = (*operations(), NEW_PROCESS)
"""An operation alone finds the table as its first three appends have left it."""
_FROM_NOTHING = ("connect", NEW_PROCESS)


def run(context: Context) -> Iterator[Figure]:
    """Nine figures for each operation, where the Java runtime is there: three a side."""
    if not context.has_java:
        return
    folder = context.folder / "stores"
    with counted_s3() as store:
        rounds = [
            _Round(context.spark, store, folder / f"lake{number}") for number in range(ROUNDS)
        ]
        for name, operation in operations().items():
            if context.part in (None, name):
                done = [each.measure(operation) for each in rounds]
                if len({repr(one.rows) for ran in done for one in ran}) > 1:
                    raise AssertionError(f"{name}: the rows of a side differ")
                ours, theirs, by_hadoop, by_file_io = map(_median, zip(*done, strict=True))
                yield from _figures(name, ours, theirs)
                yield from _figures(f"{name}, io=hadoop", by_hadoop, theirs)
                yield from _reported(name, ours, by_file_io)
        if context.part in (None, NEW_PROCESS):
            done = [each.measure_new_processes() for each in rounds]
            yield from _figures(NEW_PROCESS, *map(_median, zip(*done, strict=True)))


@dataclass(frozen=True, slots=True)
class _Measure:
    """What a side did.

    Attributes:
        rows: that it returned, where it returns some.
        requests, depth: counted at the server.
        seconds: on the clock.
        written: how many data files Spark's writer made.
    """

    rows: object
    requests: float
    depth: float
    seconds: float
    written: float


def _median(measures: Sequence[_Measure]) -> _Measure:
    return _Measure(
        measures[0].rows,
        *(
            median(getattr(each, name) for each in measures)
            for name in ("requests", "depth", "seconds", "written")
        ),
    )


class _Round:
    """The sides, each with tables of its own in one bucket."""

    def __init__(self, spark: SparkSession, store: CountedStore, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._store, self._folder = store, folder
        self._is_odd = folder.name[-1] in "13579"
        store.new_bucket(folder.name)
        self._sides: list[Side] = [
            made(spark, store, folder) for made in (Ours, Theirs, OursByHadoop, TheirsByFileIO)
        ]
        for side in self._sides:
            side.sql("CREATE NAMESPACE IF NOT EXISTS db")
            make_table(side, "t", FLAT, inserts=3)

    def measure(self, operation: Operation) -> list[_Measure]:
        """Do an operation by each side."""
        done = []
        for side in reversed(self._sides) if self._is_odd else self._sides:
            operation.before(side)
            self._store.take()
            self._store.wait(REQUEST_MS)
            started = time.perf_counter()
            try:
                rows = operation.do(side)
            finally:
                seconds = time.perf_counter() - started
                self._store.wait(0)
            done.append(self._measure(rows if isinstance(rows, list) else None, seconds))
        return done[::-1] if self._is_odd else done

    def measure_new_processes(self) -> list[_Measure]:
        """What a process does whose session is there: it connects, and appends one file."""
        done = []
        started = (sys.executable, "-m", "bench.started")
        for side in ("ours", "theirs"):
            self._store.take()
            self._store.wait(REQUEST_MS)
            try:
                ran = subprocess.run(
                    [*started, side, str(self._folder), self._store.endpoint],
                    check=True,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            finally:
                self._store.wait(0)
            done.append(self._measure(None, float(ran.stdout.splitlines()[-1])))
        return done

    def _measure(self, rows: object, seconds: float) -> _Measure:
        counted = self._store.take()
        written = {
            each.path.rpartition("/")[2]
            for each in counted.requests
            if each.of_java and each.action == "PUT" and each.kind == "data"
        }
        return _Measure(rows, len(counted), counted.depth, seconds, len(written))


def _figures(name: str, ours: _Measure, theirs: _Measure) -> Iterator[Figure]:
    # A look at the footer of each file that Spark's writer has made.
    most = theirs.requests + ours.written
    yield _limited(f"requests: {name}", "requests", ours.requests, theirs.requests, most)
    yield _limited(f"depth: {name}", "requests", ours.depth, theirs.depth, theirs.depth)
    bar = BY_SPARK if ours.written else FIRST if name.startswith(_FROM_NOTHING) else AGAIN
    yield _limited(f"seconds: {name}", "s", ours.seconds, theirs.seconds, bar * theirs.seconds)


def _reported(name: str, ours: _Measure, theirs: _Measure) -> Iterator[Figure]:
    """The same beside S3FileIO, without a bar."""
    for what, unit, one, other in (
        ("requests", "requests", ours.requests, theirs.requests),
        ("depth", "requests", ours.depth, theirs.depth),
        ("seconds", "s", ours.seconds, theirs.seconds),
    ):
        ratio = one / other if other else None
        yield Figure(
            f"{what}: {name}", TheirsByFileIO.name, one, other, unit, str(REPORTED), ratio, True
        )


def _limited(name: str, unit: str, ours: float, theirs: float, most: float) -> Figure:
    ratio = ours / theirs if theirs else None
    return Figure(name, "Java, s3a", ours, theirs, unit, f"≤ {most:.4g}", ratio, ours <= most)
