"""Eight writers that change rows of the same data files, alone and beside a compaction.

The table has a tenth of `--rows`. The parts are `alone` and `beside`. A side that is not done after
`MOST_SECONDS` begins no merge any more, and its commits a second are those that it made until then.
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
MOST_SECONDS = 240
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
        merges: merges that took place.
        seconds: how long they took.
        again: merges that were run again because another commit was first.
        rewrites: compactions that replaced files.
        lost: groups of files that compactions gave up.
    """

    merges: int
    seconds: float
    again: int
    rewrites: int = 0
    lost: int = 0

    @property
    def seconds_a_merge(self) -> float:
        """Of a side that made none: as if it had just made one, which favours it."""
        return self.seconds / max(self.merges, 1)


def run(context: Context) -> Iterator[Figure]:
    """Each writer has keys of its own, which lie in every file."""
    for part in PARTS:
        if context.part not in (None, part):
            continue
        beside = part == "beside"
        name = f"{WRITERS} × {MERGES} merges{' beside compactions' if beside else ''}"
        ours = _ours(context, beside)
        yield limit(f"{name}, merges run again{context.suffix}", ours.again, 0, unit="")
        yield report(f"{name}, merges made{context.suffix}", ours.merges, unit="")
        if beside:
            yield limit(f"{name}, groups given up{context.suffix}", ours.lost, 0, unit="")
            yield report(f"compactions meanwhile{context.suffix}", ours.rewrites, unit="")
        if not context.has_java:
            yield report(f"{name}, a merge{context.suffix}", ours.seconds_a_merge, unit="s")
            continue
        theirs = _java(context, beside)
        yield compare(
            f"{name}, a merge{context.suffix}",
            "Java runtime",
            ours.seconds_a_merge,
            theirs.seconds_a_merge,
            Bar(at_least=4),
        )
        yield report(f"{name}, Java's merges made{context.suffix}", theirs.merges, unit="")
        yield report(f"{name}, Java's run again{context.suffix}", theirs.again, unit="")
        if beside:
            yield report(f"Java's compactions meanwhile{context.suffix}", theirs.rewrites, unit="")
            yield report(f"{name}, Java's files given up{context.suffix}", theirs.lost, unit="")


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
    """Run all writers to their end or to the last second, and compactions until then."""
    made: list[int] = []
    again: list[int] = []
    rewrites: list[tuple[int, int]] = []
    done = threading.Event()

    def write(writer: int) -> None:
        number = 0
        while number < MERGES and time.perf_counter() - started < MOST_SECONDS:
            try:
                merge(writer, number)
            except conflict:
                again.append(writer)
            else:
                made.append(writer)
                number += 1

    def keep_compacting() -> None:
        while compact is not None and not done.is_set():
            try:
                rewrites.append(compact())
            except conflict:
                rewrites.append((0, 1))

    maintenance = threading.Thread(target=keep_compacting)
    started = time.perf_counter()
    maintenance.start()
    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(write, range(WRITERS)))
    took = time.perf_counter() - started
    done.set()
    maintenance.join()
    return Contest(
        merges=len(made),
        seconds=took,
        again=len(again),
        rewrites=sum(files > 0 for files, _ in rewrites),
        lost=sum(lost for _, lost in rewrites),
    )
