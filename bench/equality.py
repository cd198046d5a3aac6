"""Reading under equality deletes: files of 20 000 keys over 10 million rows, and 1 GB of memory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import frazil
from bench.context import Context, run_all
from bench.equality_data import KEYS, TABLE, add_deletes, chosen_ids, make_table
from bench.figures import Bar, Figure, compare, interleaved, report

KEYS_A_FILE = 20_000
MANY = "many"
MANY_FILES = 50
SECONDS = 600

_BARS = {"one long": (Bar(at_most=0.8), Bar(at_most=0.35))}
_OTHER_BARS = (Bar(at_most=1.0), Bar(at_most=0.4))


def run(context: Context) -> Iterator[Figure]:
    """Against the Java runtime: the first read of a table, and those after it."""
    table = make_table(context.spark, context.lake, context.rows)
    scale = context.rows / 10_000_000
    for name, columns in KEYS.items():
        for files in (1, 5, 50):
            count = int(KEYS_A_FILE * files * scale)
            branch = f"{columns[0]}{len(columns)}x{files}"
            add_deletes(table, branch, columns, chosen_ids(context.rows, count), files)
            _check(context, branch, context.rows - count)
            bars = _BARS.get(name, _OTHER_BARS) if files == 50 else (Bar(), Bar())
            yield from _figures(context, f"{files} files by {name}", branch, bars)
    yield from _in_one_gigabyte(context, table, int(5_000_000 * scale))
    context.lake.purge_table(TABLE)


def _check(context: Context, branch: str, rows: int) -> None:
    found = context.lake.load_table(TABLE).scan(ref=branch).to_df().count()
    if found != rows:
        raise AssertionError(f"{found} rows are left on {branch}, not {rows}")


def _figures(context: Context, what: str, branch: str, bars: tuple[Bar, Bar]) -> Iterator[Figure]:
    def read() -> None:
        run_all(context.lake.load_table(TABLE).scan(ref=branch).to_df())

    def read_first() -> None:
        context.lake.clear_caches()
        read()

    sides: dict[str, Callable[[], object]] = {"first": read_first, "again": read}
    if context.has_java:
        java = context.spark.read.option("branch", branch)
        sides["java"] = lambda: run_all(java.table(f"java.{TABLE}"))
    took = interleaved(sides, rounds=5)
    for side, bar in zip(("first", "again"), bars, strict=True):
        title = f"equality deletes, {what}, {side}{context.suffix}"
        if context.has_java:
            yield compare(title, "Java runtime", took[side], took["java"], bar)
        else:
            yield report(title, took[side], unit="s")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a read in a process of its own ended.

    Attributes:
        seconds: of two reads, one that counts the rows and one of all columns; None if it failed.
        failure: what it died of, "" if it did not.
    """

    seconds: float | None
    failure: str


def _in_one_gigabyte(context: Context, table: frazil.Table, count: int) -> Iterator[Figure]:
    """Each engine in a session of its own with ``spark.driver.memory=1g``."""
    ids = chosen_ids(context.rows, count)
    add_deletes(table, MANY, KEYS["one long"], ids, MANY_FILES)
    left = context.rows - count
    title = f"{count:,} equality keys in 1 GB{context.suffix}"
    ours = outcome("frazil", context.folder, left)
    java = outcome("java", context.folder, left) if context.has_java else None
    against = "" if java is None else f"Java: {java.failure or 'finished'}"
    yield Figure(
        title,
        against,
        ours.seconds or float("nan"),
        None if java is None else java.seconds,
        "s",
        "finishes",
        None,
        ours.seconds is not None,
    )


def outcome(engine: str, folder: Path, rows: int) -> Outcome:
    """Run `bench.equality_memory` for an engine."""
    command = [sys.executable, "-m", "bench.equality_memory", engine, str(folder), str(rows)]
    try:
        ran = subprocess.run(command, check=False, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return Outcome(None, f"{SECONDS} s")
    if ran.returncode == 0:
        return Outcome(json.loads(ran.stdout.splitlines()[-1])["seconds"], "")
    memory = "OutOfMemoryError" in ran.stderr or "Java heap space" in ran.stderr
    return Outcome(None, "out of memory" if memory else "failed")
