"""Eight writers that change rows of the same data files, alone and beside a compaction.

The table has a tenth of `--rows`. The parts are `alone` and `beside`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

import frazil
from bench.context import Context
from bench.figures import Bar, Figure, compare, limit, report
from frazil.errors import CommitError

PARTS = ("alone", "beside")
WRITERS = 8
MERGES = 25
ROWS_A_MERGE = 1_000
FILES = 8
_SETTINGS = {
    "write.merge.mode": "merge-on-read",
    "write.delete.mode": "merge-on-read",
    "commit.retry.num-retries": "100",
    "commit.retry.min-wait-ms": "10",
    "commit.retry.max-wait-ms": "200",
}


@dataclass(frozen=True, slots=True)
class Contest:
    """What writers did.

    Attributes:
        commits: merges that took place, a second.
        again: merges that were run again because another commit was first.
        rewrites: compactions that replaced files.
        lost: groups of files that compactions gave up.
    """

    commits: float
    again: int
    rewrites: int = 0
    lost: int = 0


def run(context: Context) -> Iterator[Figure]:
    """Each writer has keys of its own, which lie in every file."""
    for part in PARTS:
        if context.part not in (None, part):
            continue
        beside = part == "beside"
        name = f"{WRITERS} × {MERGES} merges{' beside compactions' if beside else ''}"
        ours = _ours(context, beside)
        yield limit(f"{name}, merges run again{context.suffix}", ours.again, 0, unit="")
        if beside:
            yield limit(f"{name}, groups given up{context.suffix}", ours.lost, 0, unit="")
            yield report(f"compactions meanwhile{context.suffix}", ours.rewrites, unit="")
        if not context.has_java:
            yield report(f"{name}{context.suffix}", ours.commits, unit="/s")
            continue
        theirs = _java(context, beside)
        # As seconds a commit, so that a smaller number is better.
        yield compare(
            f"{name}, a merge{context.suffix}",
            "Java runtime",
            1 / ours.commits,
            1 / theirs.commits,
            Bar(at_least=4),
        )
        yield report(f"{name}, Java's run again{context.suffix}", theirs.again, unit="")


def _filled(context: Context, name: str) -> frazil.Table:
    table = context.lake.create_table(
        f"bench.{name}", "id bigint, v bigint", format_version=3, properties=_SETTINGS
    )
    for part in range(FILES):
        # Neighbouring keys are in different files.
        last = context.rows // 10
        rows = context.spark.range(part, last, FILES).selectExpr("id", "0L as v").coalesce(1)
        table.append(rows)
    return table


def _merge(table: str, writer: int, number: int) -> str:
    return (
        f"merge into {table} t using ({_source(writer, number)}) s on t.id = s.id "
        "when matched then update set * when not matched then insert *"
    )


def _source(writer: int, number: int) -> str:
    first = number * ROWS_A_MERGE * WRITERS
    last = first + ROWS_A_MERGE * WRITERS
    # Of eight keys one is the writer's; each lies in another file.
    return (
        f"select id * {WRITERS} + (id + {writer}) % {WRITERS} as id, {writer * 100 + number}L as v "
        f"from range({first // WRITERS}, {last // WRITERS})"
    )


def _ours(context: Context, beside: bool) -> Contest:
    name = f"contest_{int(beside)}"
    _filled(context, name)

    def merge(writer: int, number: int) -> None:
        context.lake.sql(_merge(f"bench.{name}", writer, number)).collect()

    def compact() -> tuple[int, int]:
        done = context.lake.load_table(f"bench.{name}").compact(rewrite_all=True)
        return done.rewritten_data_files_count, len(done.failures)

    return _contest(merge, compact if beside else None, CommitError)


def _java(context: Context, beside: bool) -> Contest:
    name = f"contest_java_{int(beside)}"
    _filled(context, name)
    full = context.java_name(f"bench.{name}")
    catalog = full.split(".", 1)[0]

    def merge(writer: int, number: int) -> None:
        context.spark.sql(_merge(full, writer, number)).collect()

    def compact() -> tuple[int, int]:
        [row] = context.spark.sql(
            f"call {catalog}.system.rewrite_data_files(table => 'bench.{name}', "
            "options => map('rewrite-all', 'true'))"
        ).collect()
        return row["rewritten_data_files_count"], row["failed_data_files_count"]

    return _contest(merge, compact if beside else None, PySparkException, Py4JJavaError)


def _contest(
    merge: Callable[[int, int], None],
    compact: Callable[[], tuple[int, int]] | None,
    *conflict: type[Exception],
) -> Contest:
    """Run all writers, and compactions until they are done."""
    again: list[int] = []
    rewrites: list[tuple[int, int]] = []
    done = threading.Event()

    def write(writer: int) -> None:
        for number in range(MERGES):
            while True:
                try:
                    merge(writer, number)
                    break
                except conflict:
                    again.append(writer)

    def keep_compacting() -> None:
        while compact is not None and not done.is_set():
            try:
                rewrites.append(compact())
            except conflict:
                rewrites.append((0, 1))

    maintenance = threading.Thread(target=keep_compacting)
    maintenance.start()
    started = time.perf_counter()
    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(write, range(WRITERS)))
    took = time.perf_counter() - started
    done.set()
    maintenance.join()
    return Contest(
        commits=WRITERS * MERGES / took,
        again=len(again),
        rewrites=sum(files > 0 for files, _ in rewrites),
        lost=sum(lost for _, lost in rewrites),
    )
