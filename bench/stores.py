"""Operations on a store of S3: how many requests, how many wait for each other, and seconds.

The server runs in a process of its own and lets each request take 30 ms. Frazil and the Java
runtime over s3a do the same work in one session, each with a catalog in SQLite and tables of its
own; nothing of a table is in memory unless the row says *again*.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.s3_counted import Counted, CountedStore, counted_s3

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
NEW_PROCESS = "first append in a new process"
PARTS = (*operations(Path()), NEW_PROCESS)
"""An operation alone finds the table as its first three appends have left it."""
_FROM_NOTHING = ("connect", NEW_PROCESS)
Measured = tuple[object, Counted, float]


def run(context: Context) -> Iterator[Figure]:
    """Nine figures for each operation, where the Java runtime is there: three a side."""
    if not context.has_java:
        return
    folder = context.folder / "stores"
    folder.mkdir()
    with counted_s3() as store:
        store.new_bucket("lake")
        sides: list[Side] = [
            made(context.spark, store, folder)
            for made in (Ours, Theirs, OursByHadoop, TheirsByFileIO)
        ]
        for side in sides:
            side.sql("CREATE NAMESPACE IF NOT EXISTS db")
            make_table(side, "t", FLAT, inserts=3)
        for name, operation in operations(folder).items():
            if context.part in (None, name):
                found = [_measured(store, side, operation) for side in sides]
                ours, theirs, by_hadoop, by_file_io = found
                yield from _figures(name, ours, theirs)
                yield from _figures(f"{name}, io=hadoop", by_hadoop, theirs)
                yield from _reported(name, ours, by_file_io)
        if context.part in (None, NEW_PROCESS):
            yield from _figures(
                NEW_PROCESS, *(_in_a_process(store, folder, side) for side in ("ours", "theirs"))
            )


def _in_a_process(store: CountedStore, folder: Path, side: str) -> Measured:
    """What a process does whose session is there: it connects, and appends one file."""
    store.take()
    store.wait(REQUEST_MS)
    try:
        ran = subprocess.run(
            [sys.executable, "-m", "bench.started", side, str(folder), store.endpoint],
            check=True,
            capture_output=True,
            text=True,
        )
    finally:
        store.wait(0)
    return None, store.take(), float(ran.stdout.splitlines()[-1])


def _measured(store: CountedStore, side: Side, operation: Operation) -> Measured:
    operation.before(side)
    store.take()
    store.wait(REQUEST_MS)
    started = time.perf_counter()
    try:
        rows = operation.do(side)
    finally:
        seconds = time.perf_counter() - started
        store.wait(0)
    return rows if isinstance(rows, list) else None, store.take(), seconds


def _figures(name: str, ours: Measured, theirs: Measured) -> Iterator[Figure]:
    if ours[0] != theirs[0]:
        raise AssertionError(f"{name}: the rows differ: {ours[0]} and {theirs[0]}")
    written = {
        each.path.rpartition("/")[2]
        for each in ours[1].requests
        if each.of_java and each.action == "PUT" and each.kind == "data"
    }
    # A look at the footer of each file that Spark's writer has made.
    most = len(theirs[1]) + len(written)
    yield _limited(f"requests: {name}", "requests", len(ours[1]), len(theirs[1]), most)
    yield _limited(f"depth: {name}", "requests", ours[1].depth, theirs[1].depth, theirs[1].depth)
    bar = BY_SPARK if written else FIRST if name.startswith(_FROM_NOTHING) else AGAIN
    yield _limited(f"seconds: {name}", "s", ours[2], theirs[2], bar * theirs[2])


def _reported(name: str, ours: Measured, theirs: Measured) -> Iterator[Figure]:
    """The same beside S3FileIO, without a bar."""
    for what, unit, one, other in (
        ("requests", "requests", len(ours[1]), len(theirs[1])),
        ("depth", "requests", ours[1].depth, theirs[1].depth),
        ("seconds", "s", ours[2], theirs[2]),
    ):
        ratio = one / other if other else None
        yield Figure(
            f"{what}: {name}", TheirsByFileIO.name, one, other, unit, str(REPORTED), ratio, True
        )


def _limited(name: str, unit: str, ours: float, theirs: float, most: float) -> Figure:
    ratio = ours / theirs if theirs else None
    return Figure(name, "Java, s3a", ours, theirs, unit, f"≤ {most:.4g}", ratio, ours <= most)
